package why

import (
	"errors"
	"slices"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"github.com/exeunt-io/exeunt/pkg/blocker"
	"github.com/exeunt-io/exeunt/pkg/why/cluster"
)

func waitingFor(name string, second int, roots ...blocker.Blocker) waitingItem {
	return waitingItem{
		report: blocker.Report{Object: blocker.Object{Kind: "Pod", Name: name}, Verdict: blocker.Worst(roots),
			Blockers: roots},
		since: time.Unix(int64(second), 0),
	}
}

func TestItemsAreGroupedStuckAndOldestFirst(t *testing.T) {
	refuses := blocker.Blocker{Reason: blocker.DriverRefuses, Holder: "a", Verdict: blocker.Stuck}
	other := blocker.Blocker{Reason: blocker.DriverRefuses, Holder: "b", Verdict: blocker.Stuck}
	waits := blocker.Blocker{Reason: blocker.GracePeriod, Verdict: blocker.Waiting}
	items := grouped([]waitingItem{
		waitingFor("young", 9, refuses), waitingFor("old", 1, other), waitingFor("middle", 5, refuses),
		waitingFor("late", 10, other), waitingFor("both", 7, waits, refuses), waitingFor("none", 3),
	})
	var names []string
	for _, item := range items {
		names = append(names, item.Object.Name)
	}
	if want := []string{"old", "late", "middle", "both", "young", "none"}; !slices.Equal(names, want) {
		t.Errorf("the order is %q, want %q", names, want)
	}
	groups := Survey{Items: items}.Groups()
	if len(groups) != 3 || groups[0].Root.Holder != "b" || len(groups[1].Items) != 3 ||
		groups[1].Verdict != blocker.Stuck || groups[2].Root != nil {
		t.Errorf("the groups are %+v", groups)
	}
}

func TestGroupNamesMissingRightsOnce(t *testing.T) {
	group := Group{Items: []blocker.Report{{Incomplete: []string{"a", "b"}}, {Incomplete: []string{"b", "c"}}}}
	if got := group.Incomplete(); !slices.Equal(got, []string{"a", "b", "c"}) {
		t.Errorf("incomplete is %q", got)
	}
}

func TestSurveyKeepsUnreadableObjects(t *testing.T) {
	found := candidate{uid: "1"}
	for name, tc := range map[string]struct {
		answer Answer
		want   blocker.Verdict
	}{
		"the same object":  {Answer{Report: blocker.Report{Object: blocker.Object{UID: "1"}, Verdict: blocker.Waiting}}, blocker.Waiting},
		"not readable":     {Answer{Report: blocker.Report{Verdict: blocker.Stuck}}, blocker.Stuck},
		"gone meanwhile":   {Answer{Report: blocker.Report{Verdict: blocker.Gone}}, blocker.Gone},
		"created again":    {Answer{Report: blocker.Report{Object: blocker.Object{UID: "2"}, Verdict: blocker.Waiting}}, blocker.Gone},
		"no right to read": {Answer{Err: errors.New("forbidden")}, blocker.Unknown},
	} {
		got := tc.answer.report(found)
		if got.Verdict != tc.want || got.Verdict >= blocker.Waiting && got.Object.UID != "1" {
			t.Errorf("%s: %+v, want %v", name, got, tc.want)
		}
	}
}

func TestObjectInGraceWaitsSinceItsRequest(t *testing.T) {
	now := time.Date(2026, 11, 28, 12, 0, 0, 0, time.UTC)
	requested := metav1.NewTime(now.Add(-time.Minute))
	inGrace := metav1.ObjectMeta{DeletionTimestamp: ptr.To(metav1.NewTime(now.Add(4 * time.Minute))),
		DeletionGracePeriodSeconds: ptr.To[int64](300)}
	for name, tc := range map[string]struct {
		meta      metav1.ObjectMeta
		olderThan time.Duration
		found     bool
	}{
		"in its grace period":                 {inGrace, 0, true},
		"in its grace period, old enough":     {inGrace, time.Minute, true},
		"in its grace period, requested late": {inGrace, 2 * time.Minute, false},
		"deleted without a grace period":      {metav1.ObjectMeta{DeletionTimestamp: &requested}, time.Minute, true},
		"not deleted":                         {metav1.ObjectMeta{}, 0, false},
	} {
		f := &finding{scope: Scope{OlderThan: tc.olderThan}, now: now,
			known: map[types.UID]bool{}, younger: map[types.UID]bool{}}
		f.addDeleted(cluster.Resource{}, &metav1.PartialObjectMetadata{ObjectMeta: tc.meta})
		if found := len(f.found) == 1; found != tc.found || found && !f.found[0].since.Equal(requested.Time) {
			t.Errorf("%s: found is %+v, want %v, since %v", name, f.found, tc.found, requested)
		}
	}
}
