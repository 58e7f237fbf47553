package graph_test

import (
	"slices"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
)

func TestOwnerInGraceWaitsSinceItsRequest(t *testing.T) {
	w := newWorld()
	w.observe(pods, "owner", deleted(metav1.FinalizerDeleteDependents), func(o *metav1.PartialObjectMetadata) {
		o.DeletionTimestamp.Time, o.DeletionGracePeriodSeconds = now.Add(4*time.Minute), ptr.To[int64](300)
	})
	if owner, found := w.WaitingOwner("owner"); !found || !owner.Deleted.Equal(now.Add(-time.Minute)) {
		t.Errorf("the owner waits since %v, want since the request a minute ago", owner.Deleted)
	}
}

func TestOneOwnerSpeaksForCycle(t *testing.T) {
	w := newWorld()
	for name, owner := range map[string]string{"b": "c", "c": "a", "a": "b", "below": "c", "self": "self", "lone": "",
		"under": "lone"} {
		options := []option{deleted(metav1.FinalizerDeleteDependents)}
		if owner != "" {
			options = append(options, ownedBy(pods, owner))
		}
		w.observe(pods, name, options...)
	}
	var tops []string
	for _, owner := range w.Waiting() {
		if owner.Top {
			tops = append(tops, owner.Name)
		}
	}
	if want := []string{"a", "lone", "self"}; !slices.Equal(tops, want) {
		t.Errorf("got %v, want %v", tops, want)
	}
}

// An owner that orphans the object does not free one that waits for it, unless a third one lives.
func TestOrphanedObjectStaysWithWaitingOwner(t *testing.T) {
	for name, tc := range map[string]struct {
		third string
		want  []int
	}{
		"two owners":              {"", []int{1}},
		"and an absent one":       {"absent", []int{1, 2}},
		"and one that lives":      {"live", []int{0, 1}},
		"and an unresolvable one": {"unknown", []int{1}},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld()
			w.observe(configMaps, "waiting", deleted(metav1.FinalizerDeleteDependents))
			w.observe(configMaps, "orphaning", deleted(metav1.FinalizerOrphanDependents))
			w.observe(configMaps, "live")
			options := []option{ownedBy(configMaps, "waiting"), ownedBy(configMaps, "orphaning")}
			switch tc.third {
			case "unknown":
				options = append(options, ownedBy(configMaps, "unknown", func(r *metav1.OwnerReference) { r.Kind = "Unknown" }))
			case "absent", "live":
				options = append(options, ownedBy(configMaps, tc.third))
			}
			w.observe(pods, "pod", options...)
			w.Deleted("absent", at(configMaps, "ns", "absent"))
			for _, owner := range []string{"waiting", "orphaning", "live"} {
				w.read(owner)
			}
			if j, _ := w.Judge("pod", now); !j.State.Orphaning || !slices.Equal(j.Remove, tc.want) {
				t.Errorf("remove %v, want %v: %+v", j.Remove, tc.want, j.State)
			}
		})
	}
}
