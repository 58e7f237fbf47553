package provisioning

import (
	"context"
	"testing"

	spec "github.com/container-storage-interface/spec/lib/go/csi"
	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/informers"

	"github.com/exeunt-io/exeunt/pkg/provisioner/csibackend"
	"github.com/exeunt-io/exeunt/pkg/storage"
)

// zonal is a driver with topology. It stores the zone of the last volume, and returns found, unless nil, instead of a new volume.
type zonal struct {
	local
	zone  string
	found *spec.Volume
}

func (*zonal) HasTopology() bool { return true }

func (z *zonal) CreateVolume(ctx context.Context,
	request *spec.CreateVolumeRequest) (*spec.CreateVolumeResponse, error) {
	z.zone = request.GetAccessibilityRequirements().GetPreferred()[0].GetSegments()["zone"]
	if z.found != nil {
		z.made++
		return &spec.CreateVolumeResponse{Volume: z.found}, nil
	}
	return z.local.CreateVolume(ctx, request)
}

// newZonalController returns the provisioner of a driver with topology, and one claim
// with the selected node "node".
func newZonalController(t *testing.T, driver *zonal) *Controller {
	t.Helper()
	client := nodeClient("node", false)
	c := newNodeController(t, client, driver, "node")
	factory := informers.NewSharedInformerFactory(client, 0)
	nodes, registered := factory.Core().V1().Nodes().Informer(), factory.Storage().V1().CSINodes().Informer()
	if err := registered.GetStore().Add(newCSINode("node", driver)); err != nil {
		t.Fatal(err)
	}
	c.Backend = newBackend(csibackend.InputsConfig{Client: client, Driver: driver, Translator: plugin{}, Nodes: nodes,
		CSINodes: registered})
	return c
}

func TestSelectedNodeIsReadLiveIfNeeded(t *testing.T) {
	unlabeled := &v1.Node{ObjectMeta: metav1.ObjectMeta{Name: "node"}}
	for name, tc := range map[string]struct {
		known    *v1.Node
		streamed bool
		zone     string
		reads    int
	}{
		"cached node, claim by a watch event": {newNode("node", "watched"), true, "watched", 0},
		"cached node, claim by a list":        {newNode("node", "watched"), false, "live", 1},
		"cached node without labels":          {unlabeled, true, "live", 1},
		"node not cached":                     {nil, true, "live", 1},
	} {
		t.Run(name, func(t *testing.T) {
			reads, driver := 0, &zonal{}
			c := newZonalController(t, driver)
			c.Streamed = func(string) bool { return tc.streamed }
			c.Nodes = testNodes{
				cached: func(string) *v1.Node { return tc.known },
				read: func(context.Context, string) (*v1.Node, error) {
					reads++
					return newNode("node", "live"), nil
				},
			}
			if err := c.Reconcile(t.Context(), "ns/claim/uid"); err != nil {
				t.Fatal(err)
			}
			if driver.made != 1 || driver.zone != tc.zone || reads != tc.reads {
				t.Errorf("%d volumes in zone %q after %d reads, want one in %q after %d", driver.made, driver.zone, reads, tc.zone,
					tc.reads)
			}
		})
	}
}

func TestRepeatedRequestReadsNodeLive(t *testing.T) {
	driver := &zonal{}
	c := newZonalController(t, driver)
	c.Streamed = func(string) bool { return true }
	c.Nodes = testNodes{
		cached: func(string) *v1.Node { return newNode("node", "watched") },
		read: func(_ context.Context, name string) (*v1.Node, error) {
			return nil, apierrors.NewNotFound(v1.Resource("nodes"), name)
		},
	}
	claim, _ := c.claimOf("ns/claim/uid")
	c.memory.update(subject{uid: claim.UID, key: "ns/claim/uid"}, "pvc-uid",
		func(r *claimRecord) { r.claim.requested = true })
	if err := c.Reconcile(t.Context(), "ns/claim/uid"); err != nil {
		t.Fatal(err)
	}
	now, err := c.Client.CoreV1().PersistentVolumeClaims("ns").Get(t.Context(), "claim", metav1.GetOptions{})
	if err != nil || driver.made > 0 || now.Annotations[storage.AnnSelectedNode] != "" {
		t.Errorf("%d volumes, the selected node is %q, %v; want another node selected", driver.made,
			now.Annotations[storage.AnnSelectedNode], err)
	}
}
