package why

import (
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/exeunt-io/exeunt/pkg/blocker"
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
