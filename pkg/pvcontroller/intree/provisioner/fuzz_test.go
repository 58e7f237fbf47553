package provisioner

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/client-go/kubernetes/fake"

	"github.com/exeunt-io/exeunt/pkg/binding"
	"github.com/exeunt-io/exeunt/pkg/controller"
	"github.com/exeunt-io/exeunt/pkg/migration"
	"github.com/exeunt-io/exeunt/pkg/pvcontroller/intree"
	"github.com/exeunt-io/exeunt/test/enumtest"
	"github.com/exeunt-io/exeunt/test/fuzzobj"
)

// The state of any claim and volume is known. A plugin is called only for the volume of this
// claim that is not being deleted, and a volume of another claim is a name conflict.
func FuzzState(f *testing.F) {
	fuzzobj.AddSeeds(f, 60, 100)
	c := New(Config{Client: fake.NewClientset(), Versions: controller.NewVersions(),
		Plugins: intree.NewSet(migration.New(), &intree.HostPath{Provisions: true}, &intree.NFS{})})
	f.Fuzz(func(t *testing.T, data []byte) {
		d := fuzzobj.New(data)
		claim := d.Claim("p0")
		volume := d.Volume(fuzzobj.Pick(d, binding.ProvisionedName(claim), "v0"))
		o := observation{claim: claim, volume: fuzzobj.Pick(d, volume, nil), created: d.Below(2) == 1}
		claimBefore, volumeBefore := claim.DeepCopy(), volume.DeepCopy()
		state := c.stateOf(o)
		action := binding.DecideProvision(state)
		enumtest.ExpectKnown(t, state)
		enumtest.ExpectKnown(t, action)
		if o.volume == nil && action != binding.RecordVolume {
			t.Errorf("action %v without a volume", action)
		}
		calls := action == binding.CreateVolume || action == binding.SetVolumeBound
		if calls && (binding.RelationOf(volume, claim) != binding.BoundToClaim || volume.DeletionTimestamp != nil) {
			t.Errorf("action %v for state %+v", action, state)
		}
		if diff := cmp.Diff(claimBefore, claim) + cmp.Diff(volumeBefore, volume); diff != "" {
			t.Errorf("changed the objects:\n%s", diff)
		}
	})
}
