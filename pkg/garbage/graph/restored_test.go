package graph_test

import (
	"slices"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	. "github.com/exeunt-io/exeunt/pkg/garbage/graph"
)

func TestReadBehindGraphIsNoticed(t *testing.T) {
	w := newWorld()
	w.version = 8
	w.observe(pods, "pod")
	known, _ := w.Judge("pod", now)
	restored := object(pods, "pod", ownedBy(configMaps, "owner"))
	restored.ResourceVersion = "5"
	if !w.IsBehind(known.Object, restored) {
		t.Error("the read is older than the graph")
	}
	w.observe(pods, "pod")
	if w.IsBehind(known.Object, restored) {
		t.Error("an event came since the read began")
	}
}

func TestListContradictsWhatWasCommittedBefore(t *testing.T) {
	w := newWorld()
	w.version = 8
	w.observe(pods, "pod")
	for list, tc := range map[string]struct {
		version string
		want    bool
	}{"100": {"5", true}, "9": {"8", true}, "8": {"5", false}, "101": {"9", false}, "opaque": {"5", false}} {
		shown := object(pods, "pod")
		shown.ResourceVersion = tc.version
		if got := w.Contradicts(pods, shown, list); got != tc.want {
			t.Errorf("a list at %s shows version %s, the graph has 9: contradicts = %v", list, tc.version, got)
		}
	}
}

func TestRestoredStorageIsReadAnew(t *testing.T) {
	w := newWorld()
	w.version = 8
	w.observe(pods, "pod", ownedBy(configMaps, "owner"))
	w.Deleted("owner", at(configMaps, "ns", "owner"))
	w.Rewind(pods)
	if got := w.state(t, "pod"); got.Absent || !got.Unverified {
		t.Errorf("the absence of the owner is still known: %+v", got)
	}
	w.version = 2
	w.observe(pods, "pod", ownedBy(configMaps, "owner"), ownedBy(configMaps, "other"))
	w.Vanished(pods, "3", map[types.UID]struct{}{"pod": {}})
	if j, _ := w.Judge("pod", now); len(j.Questions) != 2 || j.State.Missing {
		t.Errorf("the older state is not known: %+v", j)
	}
}

// The event may be late, so it is no proof that the object exists.
func TestObjectSeenAfterAbsenceIsUnverified(t *testing.T) {
	w := newWorld()
	w.observe(pods, "pod", ownedBy(configMaps, "owner"))
	w.Deleted("owner", at(configMaps, "ns", "owner"))
	w.Deleted("owner", at(configMaps, "ns", "other"))
	w.observe(configMaps, "owner")
	if got := w.state(t, "pod"); got.Absent || got.Live || !got.Unverified {
		t.Errorf("after an event: %+v", got)
	}
	if changed := w.TakeChanged(); !slices.Contains(changed, "pod") || !slices.Contains(changed, "owner") {
		t.Errorf("judged again: %v", changed)
	}
	w.observe(pods, "elsewhere", ownedBy(configMaps, "owner", func(r *metav1.OwnerReference) { r.Name = "other" }))
	if got := w.state(t, "elsewhere"); !got.Absent {
		t.Errorf("at other coordinates: %+v", got)
	}
}

// Dependents of an orphaning owner may have their references again after a restore of etcd.
func TestOrphaningOwnerNeedsRecentBarrier(t *testing.T) {
	w := newWorld()
	w.observe(configMaps, "owner", deleted(metav1.FinalizerOrphanDependents))
	w.observe(configMaps, "dependent", ownedBy(configMaps, "owner"))
	epoch, _, _ := w.Epoch("owner")
	w.Passed("owner", epoch, now.Add(-PassLifetime))
	if j, _ := w.Judge("owner", now); !j.State.Seen || !w.HasPassed("owner", now) {
		t.Error("a barrier while dependents are left")
	}
	w.observe(configMaps, "dependent")
	for _, tc := range []struct {
		at   time.Time
		want bool
	}{{now.Add(-time.Nanosecond), true}, {now, false}} {
		if j, _ := w.Judge("owner", tc.at); j.State.Seen != tc.want || w.HasPassed("owner", tc.at) != tc.want {
			t.Errorf("at %v: %+v", tc.at, j.State)
		}
	}
}
