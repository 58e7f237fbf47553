package provisioner

import (
	"context"
	"testing"

	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"
	corelisters "k8s.io/client-go/listers/core/v1"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"
	"sigs.k8s.io/sig-storage-lib-external-provisioner/v10/controller/metrics"
)

// listed returns a lister of one node.
func listed(t *testing.T, name string) corelisters.NodeLister {
	t.Helper()
	nodes := cache.NewIndexer(cache.MetaNamespaceKeyFunc, cache.Indexers{})
	if err := nodes.Add(&v1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}}); err != nil {
		t.Fatal(err)
	}
	return corelisters.NewNodeLister(nodes)
}

// v10 needs no right to get nodes if it has a lister.
func TestListerServesWithoutTheRightToGetNodes(t *testing.T) {
	for name, tc := range map[string]struct {
		options []Option
		wants   bool
	}{
		"with a lister":    {[]Option{NodesLister(listed(t, "node-a"))}, true},
		"without a lister": {nil, false},
	} {
		t.Run(name, func(t *testing.T) {
			client := fake.NewClientset()
			client.PrependReactor("get", "nodes", func(clienttesting.Action) (bool, runtime.Object, error) {
				return true, nil, apierrors.NewForbidden(v1.Resource("nodes"), "node-a", nil)
			})
			c := NewProvisionController(klog.Background(), client, "example.com/nfs", &scripted{}, tc.options...)
			node, err := nodes{client, c.nodes}.Read(context.Background(), "node-a")
			if (err == nil) != tc.wants || (err == nil && node.Name != "node-a") {
				t.Errorf("node = %v, error = %v; want a node: %v", node, err, tc.wants)
			}
		})
	}
}

func TestListedNodeIsReadLiveWithTheRight(t *testing.T) {
	live := &v1.Node{ObjectMeta: metav1.ObjectMeta{Name: "node-a", Labels: map[string]string{"zone": "a"}}}
	n := nodes{fake.NewClientset(live), listed(t, "node-a")}
	if node, err := n.Read(t.Context(), "node-a"); err != nil || node.Labels["zone"] != "a" {
		t.Errorf("node = %v, error = %v; want the node of the API server", node, err)
	}
	if node := n.FromCache("node-a"); node == nil || node.Labels["zone"] != "" {
		t.Errorf("node = %v, want that of the lister", node)
	}
	if node := n.FromCache("node-b"); node != nil {
		t.Errorf("node = %v, want none", node)
	}
}

func TestOptionsReachTheirPlace(t *testing.T) {
	counts := metrics.New("test")
	c := NewProvisionController(klog.Background(), fake.NewClientset(), "example.com/nfs", &scripted{},
		SharedSources(true), Idempotent(false), MetricsInstance(counts), LeaderElection(false), Node("node-a"))
	if c.invalid != nil {
		t.Fatal(c.invalid)
	}
	if !c.storage.sharedSources || c.storage.idempotent {
		t.Errorf("storage = %+v, want shared sources, and calls that are not idempotent", c.storage)
	}
	if c.metrics.PersistentVolumeClaimProvisionTotal != counts.PersistentVolumeClaimProvisionTotal {
		t.Error("claims are counted elsewhere")
	}
	if j := (&wiring{ProvisionController: c, namespace: "ns"}).journalOf(); j.Owner() != "example.com/nfs/node-a" ||
		j.Namespace != "ns" {
		t.Errorf("journal = %+v", j)
	}
}
