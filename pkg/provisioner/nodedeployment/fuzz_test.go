package nodedeployment

import (
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes/fake"

	"github.com/exeunt-io/exeunt/pkg/provision"
	"github.com/exeunt-io/exeunt/pkg/storage"
	"github.com/exeunt-io/exeunt/test/enumtest"
	"github.com/exeunt-io/exeunt/test/fuzzobj"
	"github.com/exeunt-io/exeunt/test/fuzzobj/fuzzcache"
)

// The state of any claim is known. This node is selected only for a claim of the driver
// without a volume and without a selected node.
func FuzzObserve(f *testing.F) {
	fuzzobj.AddSeeds(f, 100, 250)
	client := fake.NewClientset()
	factory := informers.NewSharedInformerFactory(client, 0)
	fill := fuzzcache.Caches{Claims: factory.Core().V1().PersistentVolumeClaims().Informer(),
		Classes: factory.Storage().V1().StorageClasses().Informer()}
	c, err := New(Config{
		Client: client, Claims: fill.Claims, Classes: fill.Classes, Node: "node", HasTopology: true, BaseDelay: time.Second,
		MaxDelay: time.Second,
		Serves:   func(name string) bool { return name == fuzzobj.Driver },
	})
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		d := fuzzobj.New(data)
		c.Topology = d.Segments()
		claim := d.Claim("p0")
		expectUnchanged := fill.Fill(t, []runtime.Object{claim, d.Class("c0"), d.Class("c1")})
		state := c.observe(claim, c.classOf(claim))
		state.Capacity = fuzzobj.Pick(d, provision.CapacityUnknown, provision.CapacityShort, provision.CapacityEnough)
		action := provision.DecideNode(state)
		enumtest.ExpectKnown(t, state)
		enumtest.ExpectKnown(t, action)
		selected := claim.Annotations[storage.AnnSelectedNode]
		wanted := claim.DeletionTimestamp == nil && claim.Spec.VolumeName == "" &&
			storage.ClaimProvisioner(claim) == fuzzobj.Driver
		if action == provision.SelectNode && (!wanted || selected != "" || state.Capacity == provision.CapacityShort) {
			t.Errorf("node is selected for state %+v", state)
		}
		expectUnchanged()
	})
}
