package provisioning

import (
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/tools/record"
	"sigs.k8s.io/sig-storage-lib-external-provisioner/v10/controller/metrics"

	"github.com/exeunt-io/exeunt/pkg/controller"
	"github.com/exeunt-io/exeunt/pkg/provision"
	"github.com/exeunt-io/exeunt/pkg/provisioner/csibackend"
	"github.com/exeunt-io/exeunt/test/enumtest"
	"github.com/exeunt-io/exeunt/test/fuzzobj"
	"github.com/exeunt-io/exeunt/test/fuzzobj/fuzzcache"
)

// fuzzedRecord returns what the memory may have of a claim.
func fuzzedRecord(d *fuzzobj.Choices, claim *v1.PersistentVolumeClaim) claimRecord {
	r := claimRecord{
		claim: claimFacts{unfit: fuzzobj.Pick(d, "", "node"), node: fuzzobj.Pick(d, "", "node"), openedAt: d.Time(),
			requested: d.Below(2) == 1},
		request: requestFacts{
			creation: provision.Creation(d.Below(int(provision.Created) + 1)), bypass: fuzzobj.Pick(d, "", "forbidden"),
			answers: answerFacts{unresolvedAt: d.Time(), unresolved: fuzzobj.Pick(d, "", "no answer")},
		},
		entry:  entryFacts{state: provision.Entry(d.Below(int(provision.UntrustedDiscarding) + 1))},
		disk:   diskFacts{unusable: fuzzobj.Pick(d, "", "too small")},
		object: objectFacts{conflict: d.Below(2) == 1, recorded: d.Below(2) == 1, seen: d.Below(2) == 1, savedAt: d.Time()},
	}
	if d.Below(2) == 1 {
		r.claim.last = claim
	}
	return r
}

// fuzzScope calls each volume v0.
type fuzzScope struct{ testScope }

func (fuzzScope) VolumeName(*v1.PersistentVolumeClaim) string { return "v0" }

// newFuzzed returns a controller and its caches, which were not started.
func newFuzzed(f *testing.F) (*Controller, fuzzcache.Caches) {
	f.Helper()
	client := fake.NewClientset()
	factory := informers.NewSharedInformerFactory(client, 0)
	fill := fuzzcache.Caches{
		Claims:  factory.Core().V1().PersistentVolumeClaims().Informer(),
		Volumes: factory.Core().V1().PersistentVolumes().Informer(),
		Classes: factory.Storage().V1().StorageClasses().Informer(),
	}
	c, err := New(Config{
		Client: client, Caches: Caches{Claims: fill.Claims, Volumes: fill.Volumes, Classes: fill.Classes}, Honor: true,
		Backend:  newBackend(csibackend.InputsConfig{Client: client, Driver: &echo{}, Translator: plugin{}}),
		Deletion: &echo{},
		Scope:    fuzzScope{serves("ours", fuzzobj.Driver)},
		Locks:    &controller.KeyLocks{}, Reporter: controller.NewReporter(&record.FakeRecorder{}),
		Metrics: metrics.New("fuzz"),
		Backoff: controller.Backoff{Initial: time.Millisecond, Max: time.Second},
	})
	if err != nil {
		f.Fatal(err)
	}
	return c, fill
}

// The state of any claim and memory is known and the same each time. The driver is called
// only for a claim that was read live, and with a durable entry
// where the journal is on.
func FuzzState(f *testing.F) {
	fuzzobj.AddSeeds(f, 100, 250)
	c, fill := newFuzzed(f)
	f.Fuzz(func(t *testing.T, data []byte) {
		d := fuzzobj.New(data)
		claim, volume := d.Claim("p0"), d.Volume("v0")
		c.journaled.Store(d.Below(2) == 1)
		c.memory = newMemory()
		expectUnchanged := fill.Fill(t, []runtime.Object{claim, d.Class("c0"), d.Class("c1")})
		if d.Below(3) > 0 {
			remembered := fuzzedRecord(d, claim)
			c.memory.update(subject{uid: claim.UID}, "v0", func(r *claimRecord) { *r = remembered })
		}
		observed, err := c.observe(t.Context(), keyOf(controller.Key(claim), claim.UID))
		if err != nil || observed == nil {
			return
		}
		observed.read = fuzzobj.Pick(d, observed.read, provision.Cached, provision.ClaimRead, provision.BothRead)
		if d.Below(2) == 1 {
			observed.volume = volume
		}
		observed.nodeRead, observed.called = d.Below(2) == 1, d.Below(2) == 1
		state := c.stateOf(observed)
		if again := c.stateOf(observed); again != state {
			t.Errorf("state %+v, the second time %+v", state, again)
		}
		decision := provision.Decide(state)
		enumtest.ExpectKnown(t, state)
		enumtest.ExpectKnown(t, decision)
		calls := decision.Action == provision.Create || decision.Action == provision.Discard
		if calls && (state.Read == provision.Cached || decision.Action == provision.Create && state.Journaled &&
			state.Entry != provision.Durable) {
			t.Errorf("action %v for state %+v", decision.Action, state)
		}
		expectUnchanged()
	})
}
