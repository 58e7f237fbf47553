package nodes_test

import (
	"slices"
	"testing"

	v1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"

	"github.com/exeunt-io/exeunt/pkg/provisioner/nodes"
)

func TestServedNodeIsTheOnlyCachedNode(t *testing.T) {
	cached, registered, err := nodes.Served("driver", "node", map[string]string{"zone": "a", "rack": "1"})
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
	if driver := csiNode.Spec.Drivers[0]; driver.Name != "driver" || !slices.Equal(driver.TopologyKeys, []string{"rack", "zone"}) {
		t.Errorf("registered driver: %v", driver)
	}
}
