package reclaimer

import (
	"testing"

	v1 "k8s.io/api/core/v1"
	"k8s.io/client-go/kubernetes/fake"

	"github.com/exeunt-io/exeunt/pkg/controller"
	"github.com/exeunt-io/exeunt/pkg/migration"
	"github.com/exeunt-io/exeunt/pkg/pvcontroller/intree"
	"github.com/exeunt-io/exeunt/pkg/pvcontroller/metrics"
	"github.com/exeunt-io/exeunt/pkg/reclaim/plugin"
	"github.com/exeunt-io/exeunt/test/enumtest"
	"github.com/exeunt-io/exeunt/test/fuzzobj"
	"github.com/exeunt-io/exeunt/test/fuzzobj/fuzzcache"
)

// The states of any volume are known and the same each time. Data is deleted or recycled
// only by a confirmed state, by a plugin that serves the volume, and never while another
// volume has the same data.
func FuzzStates(f *testing.F) {
	fuzzobj.AddSeeds(f, 100, 250)
	client := fake.NewClientset()
	caches, fill := fuzzcache.New(f, client)
	recycling := intree.Recycling{Template: intree.DefaultTemplate(), MinimumTimeout: 60, TimeoutIncrement: 30}
	plugins := intree.NewSet(migration.New(), &intree.HostPath{Provisions: true, Recycling: recycling},
		&intree.NFS{Recycling: recycling})
	c, err := New(Config{
		Client: client, Caches: caches, Versions: controller.NewVersions(), Reporter: controller.NewReporter(&recorder{}),
		Plugins: plugins, Operations: metrics.NewOperations(), Locks: &controller.KeyLocks{},
	})
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		d := fuzzobj.New(data)
		c.Honor = d.Below(4) > 0
		expectUnchanged := fill.Fill(t, d.Objects())
		for _, name := range fuzzobj.Volumes {
			volume := caches.Volume(name)
			if volume == nil {
				continue
			}
			o := c.observe(volume)
			if again := c.observe(volume); again.state != o.state {
				t.Errorf("state %+v, the second time %+v", o.state, again.state)
			}
			if action := plugin.Decide(o.state).Action; destroys(action) {
				t.Errorf("action %v by the cache alone, state %+v", action, o.state)
			}
			expectReclaim(t, c, o)
		}
		expectUnchanged()
	})
}

func destroys(action plugin.Action) bool {
	return action == plugin.DeleteVolume || action == plugin.CreateRecycler
}

// expectReclaim checks the decisions about the volume after live reads.
func expectReclaim(t *testing.T, c *Controller, o observation) {
	t.Helper()
	state := c.stateOf(o, true)
	decision, metadata := plugin.Decide(state), c.metadataState(o.volume)
	for _, value := range []any{state, decision, metadata, plugin.DecideMetadata(metadata)} {
		enumtest.ExpectKnown(t, value)
	}
	claimed := o.claim != nil && o.volume.Spec.ClaimRef.UID == o.claim.UID && o.claim.Spec.VolumeName == o.volume.Name
	policy := o.volume.Spec.PersistentVolumeReclaimPolicy
	keeps := policy != v1.PersistentVolumeReclaimDelete && policy != v1.PersistentVolumeReclaimRecycle
	if destroys(decision.Action) && (claimed || keeps || len(o.sharing) > 0) {
		t.Errorf("action %v for state %+v of %v", decision.Action, state, o.volume.Spec)
	}
	_ = c.AwaitsReclaim(o.volume, o.volume.Status.Phase, state.Claim)
}
