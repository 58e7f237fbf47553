package engine

import (
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/tools/record"
	"sigs.k8s.io/sig-storage-lib-external-provisioner/v10/controller/metrics"

	"github.com/exeunt-io/exeunt/pkg/controller"
	"github.com/exeunt-io/exeunt/pkg/journal"
	"github.com/exeunt-io/exeunt/pkg/provisioner/deletion"
	"github.com/exeunt-io/exeunt/pkg/provisioner/journalstore"
	"github.com/exeunt-io/exeunt/pkg/provisioner/provisioning"
)

// unreached is a scope whose volumes are all on another node.
type unreached struct{ provisioning.Scope }

func (unreached) Reaches(*v1.PersistentVolume) bool { return false }

// newEngine returns an engine without a storage backend, which is never called.
func newEngine(t *testing.T, off bool) *Engine {
	t.Helper()
	client := fake.NewClientset()
	informers, arrivals := NewInformers(client, provisioning.Names{Driver: "driver"})
	core, reporter := informers.Core().V1(), controller.NewReporter(&record.FakeRecorder{})
	backoff := controller.Backoff{Initial: time.Second, Max: time.Second}
	e, err := New(Config{
		Client: client, Workers: 1, End: func(error) {},
		Journal: journalstore.Config{Client: client, Journal: journal.Journal{Namespace: "ns", Driver: "driver"}, Off: off,
			Metrics: journalstore.NewMetrics()},
		Provisioning: provisioning.Config{
			Client: client,
			Caches: provisioning.Caches{
				Claims: core.PersistentVolumeClaims().Informer(), Volumes: core.PersistentVolumes().Informer(),
				Classes: informers.Storage().V1().StorageClasses().Informer(), Arrivals: arrivals,
			},
			Scope: unreached{}, Backoff: backoff, Reporter: reporter, Metrics: metrics.New("p"),
		},
		Deletion: deletion.Config{Client: client, Volumes: core.PersistentVolumes().Informer(), Backoff: backoff,
			Reporter: reporter, Metrics: metrics.New("d")},
	})
	if err != nil {
		t.Fatal(err)
	}
	return e
}

// term is a term that lasts, or not.
type term bool

func (t term) Leading() bool { return bool(t) }
func (term) ID() controller.TermID {
	return controller.TermID{LeaseUID: "lease", Transitions: 7}
}

func TestCallsNeedALastingTerm(t *testing.T) {
	e := newEngine(t, false)
	if e.Provisioning.Leading() {
		t.Error("a call may begin before the term")
	}
	for term, want := range map[controller.Term]bool{
		controller.UnlimitedTerm(): true,
		term(true):                 true,
		term(false):                false,
	} {
		e.Begin(term)
		if got := e.Provisioning.Leading(); got != want {
			t.Errorf("leading = %v, want %v", got, want)
		}
	}
}

func TestCustodyIsThatOfTheTerm(t *testing.T) {
	e := newEngine(t, false)
	e.Begin(term(true))
	if got, want := e.store.Custody, (journal.Custody{LeaderLease: "lease", Transitions: 7}); got != want {
		t.Errorf("custody = %v, want %v", got, want)
	}
}

func TestGateOfTheJournal(t *testing.T) {
	for _, off := range []bool{true, false} {
		e := newEngine(t, off)
		if e.Provisioning.Journaled == off || e.Provisioning.Journal == nil {
			t.Errorf("off = %v: journaled = %v, journal = %v; earlier entries are finished in any case", off,
				e.Provisioning.Journaled, e.Provisioning.Journal)
		}
	}
}

func TestBothSidesShareLocksAndJournal(t *testing.T) {
	e := newEngine(t, false)
	if e.Provisioning.Locks == nil || e.Provisioning.Locks != e.Deletion.Locks {
		t.Error("a volume could be created and deleted at once")
	}
	if e.Deletion.RemoveEntry == nil {
		t.Error("a volume could be deleted before its journal entry is removed")
	}
	if e.Deletion.Reaches(&v1.PersistentVolume{}) {
		t.Error("a volume of another node could be deleted")
	}
}

func TestMetricsOfUpstream(t *testing.T) {
	if all := Collectors(metrics.New("controller")); len(all) != 6 {
		t.Errorf("%d metrics, want 6", len(all))
	}
}
