package reclaimer

import (
	"errors"
	"testing"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"

	"github.com/exeunt-io/exeunt/pkg/pvcontroller/intree"
	"github.com/exeunt-io/exeunt/pkg/reclaim/plugin"
)

func TestFinishedPodOfUserIsKept(t *testing.T) {
	for namespace, removed := range map[string]bool{"tenant": false, metav1.NamespaceDefault: true} {
		t.Run(namespace, func(t *testing.T) {
			s := newFixture(t, &v1.Pod{
				ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "recycler-for-nothing", UID: "p",
					Annotations: map[string]string{plugin.RecyclerAnnotation: "u/c"}},
				Status: v1.PodStatus{Phase: v1.PodSucceeded},
			})
			deletions := 0
			s.Client.(*fake.Clientset).PrependReactor("delete", "pods",
				func(clienttesting.Action) (bool, runtime.Object, error) {
					deletions++
					return !removed, nil, errors.New("forbidden")
				})
			s.must(s.Reconcile(t.Context(), "nothing"))
			if (deletions > 0) != removed {
				t.Errorf("%d deletions, removed: %v", deletions, removed)
			}
		})
	}
}

// pinned returns a host-path volume that only the node reaches.
func pinned(name, node string) *v1.PersistentVolume {
	return releasedVolume(v1.PersistentVolumeReclaimDelete, func(v *v1.PersistentVolume) {
		v.Name, v.UID = name, "u-"+v.UID
		if node != "" {
			v.Spec.NodeAffinity = &v1.VolumeNodeAffinity{Required: &v1.NodeSelector{NodeSelectorTerms: []v1.NodeSelectorTerm{{
				MatchExpressions: []v1.NodeSelectorRequirement{{Key: v1.LabelHostname, Operator: v1.NodeSelectorOpIn,
					Values: []string{node}}},
			}}}}
		}
	})
}

func TestPathsOnDifferentNodesAreNotShared(t *testing.T) {
	for name, tc := range map[string]struct {
		other  *v1.PersistentVolume
		here   string // the node of this program, "" if unknown
		shared bool
	}{
		"another node, plugin runs anywhere":  {pinned("other", "b"), "", true},
		"the same node":                       {pinned("other", "a"), "", true},
		"any node":                            {pinned("other", ""), "", true},
		"another node, plugin runs there":     {pinned("other", "b"), "b", true},
		"another node, plugin runs on a":      {pinned("other", "b"), "a", false},
		"another node, plugin runs elsewhere": {pinned("other", "b"), "c", false},
	} {
		t.Run(name, func(t *testing.T) {
			s := newFixture(t, tc.other)
			s.plugin.HostPath = intree.HostPath{Node: tc.here}
			if got := len(s.sharing(pinned("v", "a"))) > 0; got != tc.shared {
				t.Errorf("shared: %v, want %v", got, tc.shared)
			}
		})
	}
}

// Otherwise each reconcile sends another event, for ever.
func TestEventAboutSharedPlaceHasOneText(t *testing.T) {
	objects := []runtime.Object{volumeIn("v", "/data")}
	for _, name := range []string{"b", "c", "d", "e"} {
		objects = append(objects, volumeIn(name, "/data", retain))
	}
	s := newFixture(t, objects...)
	for range 50 {
		s.must(s.Reconcile(t.Context(), "v"))
	}
	if len(s.events.events) != 1 {
		t.Errorf("events %q", s.events.events)
	}
}
