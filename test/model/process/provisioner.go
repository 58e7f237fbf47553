package process

import (
	"context"
	"strings"
	"time"

	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/record"
	librarymetrics "sigs.k8s.io/sig-storage-lib-external-provisioner/v10/controller/metrics"

	"github.com/exeunt-io/exeunt/pkg/controller"
	"github.com/exeunt-io/exeunt/pkg/journal"
	"github.com/exeunt-io/exeunt/pkg/migration"
	"github.com/exeunt-io/exeunt/pkg/provision"
	"github.com/exeunt-io/exeunt/pkg/provisioner/csibackend"
	"github.com/exeunt-io/exeunt/pkg/provisioner/deletion"
	"github.com/exeunt-io/exeunt/pkg/provisioner/engine"
	"github.com/exeunt-io/exeunt/pkg/provisioner/journalstore"
	"github.com/exeunt-io/exeunt/pkg/provisioner/provisioning"
)

// JournalNamespace is where the provisioner keeps its journal. LeaderLease is the UID of its leader
// Lease, which the model has no object of.
const (
	JournalNamespace = "system"
	LeaderLease      = types.UID("uid-leader")
)

// Provisioner builds the provisioner of one CSI driver.
func Provisioner(env *Env) (*Program, error) {
	names := provisioning.Names{Driver: DriverName}
	env.Filter("persistentvolumeclaims", func(object runtime.Object) bool {
		claim, ok := object.(*v1.PersistentVolumeClaim)
		return ok && names.OwnsClaim(claim)
	})
	env.Filter("persistentvolumes", func(object runtime.Object) bool {
		volume, ok := object.(*v1.PersistentVolume)
		return ok && names.OwnsVolume(volume)
	})
	e, err := engine.New(engineConfig(env))
	if err != nil {
		return nil, err
	}
	e.Begin(term{controller.UnlimitedTerm(), env.Term})
	start := func(ctx context.Context) error { // as Run of the engine does
		if err := e.Start(ctx); err != nil {
			env.End(err)
		}
		return nil
	}
	return &Program{
		Loops: stepped(e.Loops()), Start: start, Run: e.WriteJournal, Pending: e.Pending, Memory: e.Memory(),
	}, nil
}

func engineConfig(env *Env) engine.Config {
	reporter, counts := controller.NewReporter(&record.FakeRecorder{}), librarymetrics.New("model")
	backend := &csibackend.Backend{Driver: plainDriver{env.Driver}}
	backend.Inputs = csibackend.NewInputs(csibackend.InputsConfig{
		Client: env.Client, Driver: backend.Driver, Translator: migration.New().For(DriverName), Settings: settings,
	})
	return engine.Config{
		Client: env.Client, Workers: 1, End: env.End,
		Journal: journalstore.Config{
			Client: env.Client, Journal: journal.Journal{Namespace: JournalNamespace, Driver: DriverName},
			Holder: holder(env.Term), Interval: 1, Off: !env.Journaled, Metrics: journalstore.NewMetrics(), Now: now,
		},
		Provisioning: provisioning.Config{
			Client: env.Client,
			Caches: provisioning.Caches{
				Claims: env.Informers["persistentvolumeclaims"], Volumes: env.Informers["persistentvolumes"],
				Classes:  env.Informers["storageclasses"],
				Arrivals: provisioning.Arrivals{Streamed: env.Streamed, Creations: env.Creations},
			},
			Scope: scope{}, Nodes: nodes{}, Backend: backend, Honor: env.Honor,
			Reporter: reporter, Metrics: counts, Backoff: backoff,
		},
		Deletion: deletion.Config{
			Client: env.Client, Volumes: env.Informers["persistentvolumes"], Attachments: env.Informers["volumeattachments"],
			Deleter: &csibackend.Deleter{
				Client: env.Client, Driver: plainDriver{env.Driver}, Translator: migration.New().For(DriverName),
			},
			Reporter: reporter, Metrics: counts, Backoff: backoff, Honor: env.Honor,
		},
	}
}

// scope is that of one provisioner for all nodes.
type scope struct{}

func (scope) Serves(provisioner string) bool { return provisioner == DriverName }

func (scope) Node() string { return "" }

func (scope) Reaches(*v1.PersistentVolume) bool { return true }

func (scope) VolumeName(claim *v1.PersistentVolumeClaim) string {
	return provision.VolumeName(settings, claim.UID)
}

// nodes exist, but for those whose names begin with "gone". None is cached.
type nodes struct{}

func (nodes) FromCache(string) *v1.Node { return nil }

func (nodes) Read(_ context.Context, name string) (*v1.Node, error) {
	if strings.HasPrefix(name, "gone") {
		return nil, apierrors.NewNotFound(v1.Resource("nodes"), name)
	}
	return &v1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}}, nil
}

// now is the time in what the program writes, that of the API server: a program that is repeated writes the
// same.
func now() time.Time { return time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC) }

// settings are the defaults of the flags.
var settings = provision.Settings{NamePrefix: "pvc", NameLength: -1}

// backoff has no effect: the model decides when a key is reconciled again.
var backoff = controller.Backoff{Initial: time.Second, Max: time.Minute}

// holder names the process that leads in the term.
func holder(term int32) string { return "pod-" + string('a'+rune(term)) + controller.IdentitySuffix }

// term is the term of a leader whose lease lasts.
type term struct {
	controller.Term
	transitions int32
}

func (t term) ID() controller.TermID {
	return controller.TermID{LeaseUID: LeaderLease, Transitions: t.transitions}
}

// plainDriver is a CSI driver without optional capabilities.
type plainDriver struct{ Driver }

func (plainDriver) Name() string { return DriverName }

func (plainDriver) HasTopology() bool { return false }

func (plainDriver) HasSingleWriter() bool { return false }

func (plainDriver) Snapshots() bool { return false }

func (plainDriver) Clones() bool { return false }

func (plainDriver) Modifies() bool { return false }
