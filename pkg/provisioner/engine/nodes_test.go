package engine

import (
	"errors"
	"slices"
	"testing"

	v1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"
)

func inZone(name, zone string) *v1.Node {
	return &v1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"zone": zone}}}
}

var forbidden = apierrors.NewForbidden(v1.Resource("nodes"), "there", errors.New("no right"))

var selectedCases = map[string]struct {
	nodes  SelectedNodes
	live   []runtime.Object
	denied error
	zone   string
	wrong  func(error) bool
	reads  int
}{
	"live read":                            {SelectedNodes{HasTopology: true}, []runtime.Object{inZone("there", "live")}, nil, "live", nil, 1},
	"deleted node":                         {SelectedNodes{HasTopology: true}, nil, nil, "", apierrors.IsNotFound, 1},
	"driver without topology":              {SelectedNodes{}, nil, nil, "", nil, 0},
	"driver without topology, served node": {SelectedNodes{Served: "there", Topology: map[string]string{"zone": "served"}}, nil, nil, "", nil, 0},
	"served node": {SelectedNodes{HasTopology: true, Served: "there",
		Topology: map[string]string{"zone": "served"}}, nil, nil, "served", nil, 0},
	"reading forbidden, cached":     {SelectedNodes{HasTopology: true}, nil, forbidden, "cached", nil, 1},
	"reading forbidden, not cached": {SelectedNodes{HasTopology: true, Served: "other"}, nil, forbidden, "", apierrors.IsForbidden, 1},
}

// A live read costs one request for each claim, and a deleted node sends the claim back
// to the scheduler: both happen only if the driver has topology.
func TestSelectedNodeIsReadOnlyForTopology(t *testing.T) {
	for name, tc := range selectedCases {
		t.Run(name, func(t *testing.T) {
			client := fake.NewClientset(tc.live...)
			if tc.denied != nil {
				client.PrependReactor("get", "nodes",
					func(clienttesting.Action) (bool, runtime.Object, error) { return true, nil, tc.denied })
			}
			tc.nodes.Client = client
			if tc.nodes.Served == "" {
				informer := informers.NewSharedInformerFactory(client, 0).Core().V1().Nodes()
				if err := informer.Informer().GetStore().Add(inZone("there", "cached")); err != nil {
					t.Fatal(err)
				}
				tc.nodes.Cached = informer.Lister()
			}
			node, err := tc.nodes.Read(t.Context(), "there")
			switch {
			case tc.wrong != nil && !tc.wrong(err):
				t.Errorf("error %v", err)
			case tc.wrong == nil && err != nil:
				t.Fatal(err)
			case tc.wrong == nil && (node.Name != "there" || node.Labels["zone"] != tc.zone):
				t.Errorf("node %s in zone %q, want there in %q", node.Name, node.Labels["zone"], tc.zone)
			}
			if got := len(client.Actions()); got != tc.reads {
				t.Errorf("%d requests, want %d", got, tc.reads)
			}
		})
	}
}

func TestCachedNodeCostsNoRequest(t *testing.T) {
	client := fake.NewClientset()
	informer := informers.NewSharedInformerFactory(client, 0).Core().V1().Nodes()
	if err := informer.Informer().GetStore().Add(inZone("there", "cached")); err != nil {
		t.Fatal(err)
	}
	selected := SelectedNodes{Client: client, HasTopology: true, Cached: informer.Lister()}
	if node := selected.FromCache("there"); node == nil || node.Labels["zone"] != "cached" {
		t.Errorf("node = %v", node)
	}
	if selected.FromCache("elsewhere") != nil || (SelectedNodes{HasTopology: true}).FromCache("there") != nil {
		t.Error("FromCache returns a node that is not cached")
	}
	if got := len(client.Actions()); got != 0 {
		t.Errorf("%d requests", got)
	}
}

func TestServedNodeIsTheOnlyCachedNode(t *testing.T) {
	cached, registered, err := ServedNode("driver", "node", map[string]string{"zone": "a", "rack": "1"})
	if err != nil {
		t.Fatal(err)
	}
	node, isNode := cached.GetStore().List()[0].(*v1.Node)
	if len(cached.GetStore().List()) != 1 || !isNode || node.Name != "node" || node.Labels["zone"] != "a" {
		t.Errorf("cached nodes: %v", cached.GetStore().List())
	}
	csiNode, isCSINode := registered.GetStore().List()[0].(*storagev1.CSINode)
	if len(registered.GetStore().List()) != 1 || !isCSINode || csiNode.Name != "node" {
		t.Fatalf("cached CSI nodes: %v", registered.GetStore().List())
	}
	if driver := csiNode.Spec.Drivers[0]; driver.Name != "driver" ||
		!slices.Equal(driver.TopologyKeys, []string{"rack", "zone"}) {
		t.Errorf("registered driver: %v", driver)
	}
}
