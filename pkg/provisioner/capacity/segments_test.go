package capacity_test

import (
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes/fake"
	metadatafake "k8s.io/client-go/metadata/fake"
	clienttesting "k8s.io/client-go/testing"

	"github.com/exeunt-io/exeunt/pkg/provisioner/capacity"
	"github.com/exeunt-io/exeunt/pkg/topology"
)

func node(name, zone string) *v1.Node {
	return &v1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, UID: "uid", Labels: map[string]string{"zone": zone}}}
}

// registered returns the CSINode of a node on which the drivers are registered.
func registered(name string, drivers ...string) *storagev1.CSINode {
	csiNode := &storagev1.CSINode{ObjectMeta: metav1.ObjectMeta{Name: name, UID: "uid"}}
	for _, driver := range drivers {
		csiNode.Spec.Drivers = append(csiNode.Spec.Drivers, storagev1.CSINodeDriver{Name: driver,
			TopologyKeys: []string{"zone"}})
	}
	return csiNode
}

// changes collects the segments that are reported as changed.
type changes struct {
	mu       sync.Mutex
	segments []topology.Segment
}

func (c *changes) add(s topology.Segment) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.segments = append(c.segments, s)
}

func (c *changes) expect(t *testing.T, want ...topology.Segment) {
	t.Helper()
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, segment := range want {
		if !slices.Contains(c.segments, segment) {
			t.Errorf("segment %s was not reported as changed", segment)
		}
	}
}

func awaitSegments(t *testing.T, nodes *capacity.Nodes, when, want string) {
	t.Helper()
	got := ""
	for range 1000 {
		all := nodes.All()
		slices.Sort(all)
		var texts []string
		for _, s := range all {
			texts = append(texts, string(s))
		}
		if got = strings.Join(texts, " "); got == want {
			return
		}
		<-time.After(5 * time.Millisecond)
	}
	t.Fatalf("%s: segments %q, want %q", when, got, want)
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func TestSegmentsFollowTheNodes(t *testing.T) {
	client := fake.NewClientset(node("1", "a"), node("2", "a"), node("3", "b"), node("4", "c"),
		registered("1", "driver"), registered("2", "other", "driver"), registered("3", "driver"), registered("4", "other"))
	watches := make(chan struct{}, 2) // of nodes and of CSI nodes
	client.PrependWatchReactor("*", func(action clienttesting.Action) (bool, watch.Interface, error) {
		handled, events, err := copiedEvents(client)(action)
		watches <- struct{}{}
		return handled, events, err
	})
	factory := informers.NewSharedInformerFactory(client, 0)
	segments := capacity.NewNodes("driver", factory.Core().V1().Nodes().Informer(),
		factory.Storage().V1().CSINodes().Informer())
	changed := &changes{}
	factory.StartWithContext(t.Context())
	must(t, segments.Watch(t.Context(), changed.add))
	awaitSegments(t, segments, "initially", "zone=a zone=b")
	for range cap(watches) { // the fake client loses what happens between a list and its watch
		<-watches
	}
	ctx := t.Context()
	must(t, client.CoreV1().Nodes().Delete(ctx, "1", metav1.DeleteOptions{}))
	must(t, client.StorageV1().CSINodes().Delete(ctx, "3", metav1.DeleteOptions{}))
	awaitSegments(t, segments, "after deletion of one of two nodes, and of a CSI node", "zone=a")
	_, err := client.StorageV1().CSINodes().Update(ctx, withVersion(registered("4", "driver")), metav1.UpdateOptions{})
	must(t, err)
	awaitSegments(t, segments, "after registration of the driver", "zone=a zone=c")
	moved := node("2", "c")
	moved.ResourceVersion = "7"
	_, err = client.CoreV1().Nodes().Update(ctx, moved, metav1.UpdateOptions{})
	must(t, err)
	awaitSegments(t, segments, "after a label change", "zone=c")
	if !segments.Has("zone=c") || segments.Has("zone=a") {
		t.Error("Has differs from All")
	}
	changed.expect(t, "zone=a", "zone=b", "zone=c")
}

func withVersion(csiNode *storagev1.CSINode) *storagev1.CSINode {
	csiNode.ResourceVersion = "7"
	return csiNode
}

var ownerCases = map[string]struct {
	pod    string
	levels int
	want   string
}{
	"pod":                          {"pod", 0, "v1 Pod pod uid-of-pod"},
	"controller of the pod":        {"pod", 1, "apps/v1 ReplicaSet replicas uid-of-owner"},
	"controller of the controller": {"pod", 2, "apps/v1 Deployment deployment uid-of-owner"}, // not read
	"pod without controller":       {"bare", 1, ""},
	"deleted pod":                  {"gone", 0, ""},
	"too many levels":              {"pod", 3, ""},
}

func TestOwnerByLevel(t *testing.T) {
	yes := true
	controlled := func(kind, version, name, by string, byVersion, byName string) *metav1.PartialObjectMetadata {
		o := &metav1.PartialObjectMetadata{TypeMeta: metav1.TypeMeta{APIVersion: version, Kind: kind},
			ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name, UID: "uid-of-pod"}}
		if by != "" {
			o.OwnerReferences = []metav1.OwnerReference{
				{APIVersion: "v1", Kind: "ConfigMap", Name: "no controller", UID: "no"},
				{APIVersion: byVersion, Kind: by, Name: byName, UID: "uid-of-owner", Controller: &yes},
			}
		}
		return o
	}
	scheme := metadatafake.NewTestScheme()
	if err := metav1.AddMetaToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	client := metadatafake.NewSimpleMetadataClient(scheme,
		controlled("Pod", "v1", "pod", "ReplicaSet", "apps/v1", "replicas"),
		controlled("ReplicaSet", "apps/v1", "replicas", "Deployment", "apps/v1", "deployment"),
		controlled("Pod", "v1", "bare", "", "", ""))
	kinds := meta.NewDefaultRESTMapper(nil)
	kinds.Add(schema.GroupVersionKind{Version: "v1", Kind: "Pod"}, meta.RESTScopeNamespace)
	kinds.Add(schema.GroupVersionKind{Group: "apps", Version: "v1", Kind: "ReplicaSet"}, meta.RESTScopeNamespace)
	for name, tc := range ownerCases {
		t.Run(name, func(t *testing.T) {
			owner, err := capacity.Owner(t.Context(), client, kinds, metav1.ObjectMeta{Namespace: "ns", Name: tc.pod}, tc.levels)
			got := ""
			if err == nil {
				got = strings.Join([]string{owner.APIVersion, owner.Kind, owner.Name, string(owner.UID)}, " ")
				if owner.Controller == nil || !*owner.Controller {
					t.Error("the reference is not a controller reference")
				}
			}
			if got != tc.want {
				t.Errorf("owner %q, %v, want %q", got, err, tc.want)
			}
		})
	}
}
