package capacity_test

import (
	"strings"
	"testing"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"github.com/google/go-cmp/cmp"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/exeunt-io/exeunt/pkg/capacity"
	"github.com/exeunt-io/exeunt/test/fuzzobj"
)

// The item of an object has a key that leads back to it, an object made for an item has this
// item, and a manager ID is a label.
func FuzzItem(f *testing.F) {
	fuzzobj.AddSeeds(f, 40, 40, "node-1", int64(1))
	f.Fuzz(func(t *testing.T, data []byte, node string, size int64) {
		d := fuzzobj.New(data)
		object, apiNode, csiNode, volume := d.Capacity("one"), d.Node("node"), d.CSINode("node"), d.Volume("v0")
		before := []any{object.DeepCopy(), apiNode.DeepCopy(), csiNode.DeepCopy(), volume.DeepCopy()}
		item := capacity.ItemOf(object)
		if again := capacity.ItemOfKey(item.Key()); again != item && !strings.Contains(item.Class, "/") {
			t.Errorf("item %v has key %q, which is item %v", item, item.Key(), again)
		}
		if segment, runs := capacity.SegmentOfNode(fuzzobj.Driver, csiNode, apiNode); runs {
			item.Segment = segment
		}
		answer := capacity.AnswerOf(&csi.GetCapacityResponse{AvailableCapacity: size})
		manager := capacity.Manager{Driver: fuzzobj.Driver, ID: capacity.ManagerID(node), Namespace: fuzzobj.Namespace}
		made := manager.Object(item, answer)
		if got := capacity.ItemOf(made); item.Segment != "?" && got != item {
			t.Errorf("object of item %v has item %v", item, got)
		}
		if !capacity.HasAnswer(made, answer) || !manager.Update(made, answer).Empty() {
			t.Errorf("object of answer %v has capacity %v", answer, made.Capacity)
		}
		if len(validation.IsValidLabelValue(node)) == 0 && len(validation.IsValidLabelValue(manager.ID)) > 0 {
			t.Errorf("manager ID %q of node %q is no label", manager.ID, node)
		}
		if oldest := capacity.Oldest([]*storagev1.CSIStorageCapacity{made, object}); oldest != 0 && oldest != 1 {
			t.Errorf("oldest of two is %d", oldest)
		}
		for _, segment := range capacity.SegmentsOfVolume(volume) {
			_ = segment.Labels()
		}
		if diff := cmp.Diff(before, []any{object, apiNode, csiNode, volume}); diff != "" {
			t.Errorf("changed the objects:\n%s", diff)
		}
	})
}
