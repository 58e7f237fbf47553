package capacity_test

import (
	"strings"
	"testing"
	"time"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/protobuf/types/known/wrapperspb"
	v1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/exeunt-io/exeunt/pkg/capacity"
	"github.com/exeunt-io/exeunt/pkg/topology"
)

var yes = true

func manager() capacity.Manager {
	return capacity.Manager{
		Driver: "driver", ID: "external-provisioner", Namespace: "ns",
		Owner: &metav1.OwnerReference{APIVersion: "apps/v1", Kind: "Deployment", Name: "driver", UID: "owner",
			Controller: &yes},
	}
}

func TestObjectHasItemAndAnswer(t *testing.T) {
	item := capacity.Item{Class: "fast", Segment: topology.SegmentOf(map[string]string{"zone": "a", "rack": "1"})}
	answer := capacity.AnswerOf(&csi.GetCapacityResponse{AvailableCapacity: 5, MaximumVolumeSize: wrapperspb.Int64(3)})
	object := manager().Object(item, answer)
	if capacity.ItemOf(object) != item || !capacity.HasAnswer(object, answer) || !manager().Owns(object) {
		t.Errorf("the object has another item, answer or owner: %+v", object)
	}
	if got := object.Labels[capacity.DriverLabel] + " " +
		object.Labels[capacity.ManagerLabel]; got != "driver external-provisioner" {
		t.Errorf("labels %s", got)
	}
	if object.Capacity.Value() != 5 || object.MaximumVolumeSize.Value() != 3 || object.StorageClassName != "fast" ||
		object.NodeTopology.MatchLabels["rack"] != "1" {
		t.Errorf("the object has other content: %+v", object)
	}
	other := manager().Object(capacity.Item{Class: "slow", Segment: item.Segment}, answer)
	if again := manager().Object(item, capacity.Answer{}); again.Name != object.Name || other.Name == object.Name {
		t.Error("the name is not derived from the item")
	}
}

func TestUpdate(t *testing.T) {
	object := func(bytes int64, largest *resource.Quantity,
		owners ...metav1.OwnerReference) *storagev1.CSIStorageCapacity {
		return &storagev1.CSIStorageCapacity{
			ObjectMeta: metav1.ObjectMeta{Name: "object", UID: "uid", ResourceVersion: "7", OwnerReferences: owners},
			Capacity:   resource.NewQuantity(bytes, resource.BinarySI), MaximumVolumeSize: largest,
		}
	}
	owner := *manager().Owner
	foreign := metav1.OwnerReference{APIVersion: "v1", Kind: "Pod", Name: "pod", UID: "pod"}
	for name, tc := range map[string]struct {
		object *storagev1.CSIStorageCapacity
		answer capacity.Answer
		want   []string
	}{
		"nothing changes": {object(5, nil, owner), capacity.Answer{Bytes: 5}, nil},
		"same quantity in another format": {func() *storagev1.CSIStorageCapacity {
			q := resource.MustParse("1Ki")
			o := object(5, nil, owner)
			o.Capacity = &q
			return o
		}(), capacity.Answer{Bytes: 1024}, nil},
		"less capacity":                   {object(5, nil, owner), capacity.Answer{Bytes: 4}, []string{`"add","path":"/capacity","value":"4"`, `"path":"/metadata/resourceVersion","value":"7"`}},
		"new maximum volume size":         {object(5, nil, owner), capacity.Answer{Bytes: 5, Largest: 2, Bounded: true}, []string{`"path":"/maximumVolumeSize","value":"2"`}},
		"no maximum volume size any more": {object(5, resource.NewQuantity(2, resource.BinarySI), owner), capacity.Answer{Bytes: 5}, []string{`"remove","path":"/maximumVolumeSize"`}},
		"object without capacity":         {func() *storagev1.CSIStorageCapacity { o := object(0, nil, owner); o.Capacity = nil; return o }(), capacity.Answer{}, []string{`"/capacity","value":"0"`}},
		"another owner stays":             {object(5, nil, foreign), capacity.Answer{Bytes: 5}, []string{`"uid":"pod"`, `"uid":"owner"`}},
	} {
		t.Run(name, func(t *testing.T) {
			p := manager().Update(tc.object, tc.answer)
			if p.Empty() != (tc.want == nil) || p.Empty() != (capacity.HasAnswer(tc.object, tc.answer) && manager().Owns(tc.object)) {
				t.Fatalf("empty = %v", p.Empty())
			}
			body, err := p.Bytes()
			if err != nil {
				t.Fatal(err)
			}
			for _, part := range tc.want {
				if !strings.Contains(string(body), part) {
					t.Errorf("the patch %s lacks %s", body, part)
				}
			}
		})
	}
}

// The wanted IDs are those of csi-provisioner v6.3.0.
func TestManagerIDsAreUpstreams(t *testing.T) {
	for node, want := range map[string]string{
		"":                               "external-provisioner",
		"node01":                         "external-provisioner-node01",
		"node" + strings.Repeat("a", 38): "external-provisioner-node" + strings.Repeat("a", 38),
		"node" + strings.Repeat("a", 39): "external-p-53f40b57-node" + strings.Repeat("a", 39),
		"node" + strings.Repeat("a", 48): "e-53f40b57-node" + strings.Repeat("a", 48),
		"node" + strings.Repeat("a", 49): "external-provisioner-a3607ff1",
		"node" + strings.Repeat("a", 63): "external-provisioner-df38e37f",
	} {
		if got := capacity.ManagerID(node); got != want || len(got) > 63 {
			t.Errorf("ManagerID(%q) = %q, want %q", node, got, want)
		}
	}
}

func TestOldestObject(t *testing.T) {
	at := func(name string, second int64) *storagev1.CSIStorageCapacity {
		return &storagev1.CSIStorageCapacity{ObjectMeta: metav1.ObjectMeta{Name: name,
			CreationTimestamp: metav1.Time{Time: time.Unix(second, 0)}}}
	}
	if got := capacity.Oldest([]*storagev1.CSIStorageCapacity{at("c", 2), at("b", 1), at("a", 1)}); got != 2 {
		t.Errorf("Oldest = %d, want 2: the first by name among equals", got)
	}
}

func TestSegments(t *testing.T) {
	node := func(labels map[string]string) *v1.Node {
		return &v1.Node{ObjectMeta: metav1.ObjectMeta{Name: "node", Labels: labels}}
	}
	registered := func(driver string, keys ...string) *storagev1.CSINode {
		return &storagev1.CSINode{Spec: storagev1.CSINodeSpec{Drivers: []storagev1.CSINodeDriver{{Name: "other",
			TopologyKeys: []string{"x"}}, {Name: driver, TopologyKeys: keys}}}}
	}
	labels := map[string]string{"zone": "a", "rack": "1", "unrelated": "2"}
	for name, tc := range map[string]struct {
		registered *storagev1.CSINode
		node       *v1.Node
		want       topology.Segment
		found      bool
	}{
		"labels of the topology keys": {registered("driver", "zone", "rack"), node(labels), "rack=1,zone=a", true},
		"driver without topology":     {registered("driver"), node(labels), "", true},
		"driver not on the node":      {registered("someone"), node(labels), "", false},
		"label still missing":         {registered("driver", "zone", "host"), node(labels), "", false},
		"empty label value":           {registered("driver", "zone"), node(map[string]string{"zone": ""}), "zone=", true},
		"deleted node":                {registered("driver", "zone"), nil, "", false},
		"no CSINode":                  {nil, node(labels), "", false},
	} {
		t.Run(name, func(t *testing.T) {
			got, found := capacity.SegmentOfNode("driver", tc.registered, tc.node)
			if got != tc.want || found != tc.found {
				t.Errorf("SegmentOfNode = %q, %v, want %q, %v", got, found, tc.want, tc.found)
			}
			if found && topology.SegmentOf(got.Labels()) != got {
				t.Errorf("SegmentOf(%q.Labels()) is another segment", got)
			}
		})
	}
}

func TestSegmentsOfVolume(t *testing.T) {
	term := func(operator v1.NodeSelectorOperator, values ...string) v1.NodeSelectorTerm {
		return v1.NodeSelectorTerm{MatchExpressions: []v1.NodeSelectorRequirement{{Key: "zone", Operator: operator,
			Values: values}}}
	}
	fields := v1.NodeSelectorTerm{MatchFields: []v1.NodeSelectorRequirement{{Key: "metadata.name",
		Operator: v1.NodeSelectorOpIn, Values: []string{"node"}}}}
	for name, tc := range map[string]struct {
		terms []v1.NodeSelectorTerm
		want  string
	}{
		"two zones":                 {[]v1.NodeSelectorTerm{term(v1.NodeSelectorOpIn, "a"), term(v1.NodeSelectorOpIn, "b")}, "zone=a zone=b"},
		"terms that are no segment": {[]v1.NodeSelectorTerm{term(v1.NodeSelectorOpIn, "a", "b"), term(v1.NodeSelectorOpExists), fields}, ""},
		"no node affinity":          {nil, ""},
	} {
		t.Run(name, func(t *testing.T) {
			volume := &v1.PersistentVolume{}
			if tc.terms != nil {
				volume.Spec.NodeAffinity = &v1.VolumeNodeAffinity{Required: &v1.NodeSelector{NodeSelectorTerms: tc.terms}}
			}
			var got []string
			for _, segment := range capacity.SegmentsOfVolume(volume) {
				got = append(got, string(segment))
			}
			if strings.Join(got, " ") != tc.want {
				t.Errorf("segments %v, want %s", got, tc.want)
			}
		})
	}
}

func TestHasObjects(t *testing.T) {
	immediate, wait := storagev1.VolumeBindingImmediate, storagev1.VolumeBindingWaitForFirstConsumer
	for name, tc := range map[string]struct {
		class     storagev1.StorageClass
		immediate bool
		want      bool
	}{
		"WaitForFirstConsumer":     {storagev1.StorageClass{Provisioner: "driver", VolumeBindingMode: &wait}, false, true},
		"Immediate":                {storagev1.StorageClass{Provisioner: "driver", VolumeBindingMode: &immediate}, false, false},
		"Immediate, with the flag": {storagev1.StorageClass{Provisioner: "driver", VolumeBindingMode: &immediate}, true, true},
		"no binding mode":          {storagev1.StorageClass{Provisioner: "driver"}, false, false},
		"class of another driver":  {storagev1.StorageClass{Provisioner: "other", VolumeBindingMode: &wait}, true, false},
	} {
		t.Run(name, func(t *testing.T) {
			if got := capacity.HasObjects("driver", &tc.class, tc.immediate); got != tc.want {
				t.Errorf("HasObjects = %v, want %v", got, tc.want)
			}
		})
	}
}

func TestRequestHasTopologyOfSegment(t *testing.T) {
	if got := capacity.Request("", nil); got.AccessibleTopology != nil {
		t.Errorf("the request for the empty segment has topology %v", got.AccessibleTopology)
	}
	if got := capacity.Request("zone=a",
		map[string]string{"tier": "fast"}); got.AccessibleTopology.GetSegments()["zone"] != "a" ||
		got.Parameters["tier"] != "fast" {
		t.Errorf("request %v", got)
	}
}

func TestObjectWithoutSegmentIsNeverWanted(t *testing.T) {
	whole := capacity.Item{Class: "fast"}
	for name, selector := range map[string]*metav1.LabelSelector{
		"no selector": nil,
		"expression":  {MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "zone", Operator: metav1.LabelSelectorOpExists}}},
	} {
		object := &storagev1.CSIStorageCapacity{StorageClassName: "fast", NodeTopology: selector}
		if item := capacity.ItemOf(object); item == whole || len(item.Segment.Labels()) > 0 {
			t.Errorf("%s: item %+v", name, item)
		}
	}
	if capacity.ItemOf(&storagev1.CSIStorageCapacity{StorageClassName: "fast",
		NodeTopology: &metav1.LabelSelector{}}) != whole {
		t.Error("the empty selector is not the whole cluster")
	}
}

func TestItemOfKey(t *testing.T) {
	for _, item := range []capacity.Item{{Class: "fast"}, {Class: "fast", Segment: "example.com/zone=a,host=b"}} {
		if got := capacity.ItemOfKey(item.Key()); got != item {
			t.Errorf("ItemOfKey(%q) = %+v", item.Key(), got)
		}
	}
}
