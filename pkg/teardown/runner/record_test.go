package runner

import (
	"fmt"
	"slices"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/exeunt-io/exeunt/pkg/teardown"
	"github.com/exeunt-io/exeunt/pkg/teardown/inventory"
)

func recordOf(items ...teardown.Item) recording {
	r := recording{saved: map[string]int{}}
	r.add(items)
	return r
}

// requestOf returns the item of a claim whose volume was requested, volumeOf that of the volume of a claim.
func requestOf(uid string) teardown.Item {
	return teardown.Item{Kind: teardown.Volume, Object: teardown.Object{Kind: "PersistentVolumeClaim", Namespace: "shop",
		Name: "data", UID: uid}, Driver: "ebs", Plan: teardown.PlanDelete, Fate: teardown.Planned}
}

func volumeOf(uid string) teardown.Item {
	return teardown.Item{Kind: teardown.Volume, Object: teardown.Object{Kind: "PersistentVolume", Name: "pv-" + uid,
		UID: "pv-" + uid}, Claim: "shop/data", ClaimUID: uid, Plan: teardown.PlanKeep, Fate: teardown.Kept}
}

// #21 #60 A StatefulSet made its claim again: the volume of a claim of the same name is no answer, whichever was made
// first. A request that was recorded from the journal alone has no time of creation.
func TestVolumeOfAnotherClaimIsNoAnswer(t *testing.T) {
	gone := requestOf("second")
	gone.Fate = teardown.Gone
	for name, tc := range map[string]struct {
		items []teardown.Item
		open  int
	}{
		"no volume":                {[]teardown.Item{requestOf("second")}, 1},
		"volume of another claim":  {[]teardown.Item{volumeOf("first"), requestOf("second")}, 1},
		"its volume":               {[]teardown.Item{requestOf("second"), volumeOf("second")}, 0},
		"its volume, saved first":  {[]teardown.Item{volumeOf("second"), requestOf("second")}, 0},
		"its outcome":              {[]teardown.Item{requestOf("second"), gone}, 0},
		"its outcome, saved first": {[]teardown.Item{gone, requestOf("second")}, 0},
		"the outcome of another":   {[]teardown.Item{gone, requestOf("first")}, 1},
	} {
		r := recordOf(tc.items...)
		if found := inventory.New(inventory.Options{}).Lost(r.requests()); len(found) != tc.open {
			t.Errorf("%s: lost %+v, want %d", name, found, tc.open)
		}
	}
}

// The record of a large cluster has tens of thousands of items, and rounds come each 100 ms.
func TestRoundCostsNothingForClosedRequests(t *testing.T) {
	cost := func(items ...teardown.Item) float64 {
		s := newSession(newTestRunner(t, nil), nil, deletedAlive(true), time.Time{})
		s.watched, s.listed, s.record = 1, 1, recordOf(items...)
		return testing.AllocsPerRun(10, func() { s.look() })
	}
	items := []teardown.Item{requestOf("0"), volumeOf("0")}
	few := cost(items...)
	for i := range 1000 {
		items = append(items, volumeOf(fmt.Sprint(i)))
	}
	if many := cost(items...); many > few {
		t.Errorf("a round has %.0f allocations, and %.0f with more items in the record", few, many)
	}
}

// Claims end one by one: a ConfigMap for each would be tens of thousands that each runner lists.
func TestOutcomesShareConfigMaps(t *testing.T) {
	object := deletedAlive(false)
	r := newTestRunner(t, object, &v1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "kube-system", UID: clusterID}})
	r.current, r.synced = object, true
	s := newSession(r, leads(true), object, time.Now())
	s.record.saved = map[string]int{}
	const claims = maxAdded + 1
	var items []teardown.Item
	for i := range claims {
		items = append(items, requestOf(fmt.Sprint(i)))
	}
	if err := s.savePlan(t.Context(), view{items: items}); err != nil {
		t.Fatal(err)
	}
	for i := range items {
		items[i].Fate = teardown.Unknown
		if err := s.saveOutcomes(t.Context(), teardown.Decision{Phase: teardown.TearingDown},
			view{listed: true, items: slices.Clone(items)}); err != nil {
			t.Fatal(err)
		}
	}
	found, err := r.loadRecord(t.Context(), string(object.UID))
	if err != nil || len(found.items) != claims || len(found.unknown()) != claims || len(found.lacking) != 0 {
		t.Errorf("%d of %d items are unknown, lacking %q, %v", len(found.unknown()), len(found.items), found.lacking, err)
	}
	if maps, err := r.recordMaps(t.Context()); err != nil || len(maps) != 3 {
		t.Errorf("%d ConfigMaps, %v, want 3", len(maps), err)
	}
}

// Each claim that is gone was compared with each item, in every round.
func TestOutcomesOfManyClaimsTakeOnePass(t *testing.T) {
	const claims = 500
	var items []teardown.Item
	for i := range claims {
		items = append(items, teardown.Item{Kind: teardown.Volume, Object: teardown.Object{Kind: "PersistentVolumeClaim",
			UID: fmt.Sprint(i)}, Plan: teardown.PlanDelete, Fate: teardown.Unknown})
	}
	r := recording{saved: map[string]int{}}
	r.add(items)
	if changed := r.outcomesOf(items, nil); len(changed) != 0 {
		t.Errorf("%d outcomes are new, though all are in the record", len(changed))
	}
	if changed := r.outcomesOf(items[:1], nil); len(changed) != claims-1 {
		t.Errorf("%d claims got their volume, want %d", len(changed), claims-1)
	}
	if got := testing.AllocsPerRun(1, func() { r.outcomesOf(items, nil) }); got > 10*claims {
		t.Errorf("%.0f allocations for %d claims", got, claims)
	}
}

// The mark of a kept volume is the label of one that a person preserved.
func TestKeptVolumeHasReasonOfThePlan(t *testing.T) {
	item := func(plan teardown.Plan, reason string) []teardown.Item {
		return []teardown.Item{{Kind: teardown.Volume, Object: teardown.Object{UID: "uid-1"}, Plan: plan, Reason: reason}}
	}
	marked := item(teardown.PlanKeep, "Preserved")
	for want, saved := range map[string][]teardown.Item{
		"HandleShared": item(teardown.PlanKeep, "HandleShared"),
		"Preserved":    item(teardown.PlanDelete, "PolicyDelete"), // since the plan, a person has saved it
	} {
		if got := merged(saved, marked); len(got) != 1 || got[0].Reason != want || got[0].Plan != teardown.PlanKeep {
			t.Errorf("%+v is %+v now, want reason %s", saved, got, want)
		}
	}
}

// The first item that is gone moved the list, and later reasons were lost.
func TestKeptVolumeHasReasonOfThePlanAfterOthersAreGone(t *testing.T) {
	kept := volumeOf("kept")
	kept.Reason = "HandleShared"
	gone := volumeOf("gone")
	gone.Plan, gone.Fate = teardown.PlanDelete, teardown.Planned
	marked := kept
	marked.Reason = "Preserved"
	got := merged([]teardown.Item{gone, kept}, []teardown.Item{marked})
	if len(got) != 2 || got[0].Fate != teardown.Gone || got[1].Reason != "HandleShared" {
		t.Errorf("%+v", got)
	}
}

// #10 #21 #34 The object of a plan may be gone while what it stood for is there, as another object.
func TestDiskIsNamedByOneObject(t *testing.T) {
	request, kept, gone := requestOf("data"), volumeOf("data"), volumeOf("data")
	gone.Plan, gone.Fate = teardown.PlanDelete, teardown.Planned
	lost := request
	lost.Fate = teardown.Unknown
	snapshot := func(kind, handle string) teardown.Item {
		return teardown.Item{Kind: teardown.Snapshot, Object: teardown.Object{Kind: kind, Name: kind, UID: kind + handle},
			ExternalID: handle, Driver: "ebs", Plan: teardown.PlanDelete, Fate: teardown.Planned}
	}
	object, content := snapshot("VolumeSnapshot", "snap-1"), snapshot("VolumeSnapshotContent", "snap-1")
	for name, tc := range map[string]struct {
		saved, current []teardown.Item
		want           []string
	}{
		"volume is kept":             {[]teardown.Item{request, kept}, []teardown.Item{kept}, []string{"PersistentVolume kept"}},
		"volume is not recorded":     {[]teardown.Item{request}, []teardown.Item{kept}, []string{"PersistentVolume kept"}},
		"volume came late":           {[]teardown.Item{lost, kept}, []teardown.Item{kept}, []string{"PersistentVolume kept"}},
		"volume is gone":             {[]teardown.Item{request, gone}, nil, []string{"PersistentVolume gone"}},
		"volume of another claim":    {[]teardown.Item{request}, []teardown.Item{volumeOf("b")}, []string{"PersistentVolume kept", "PersistentVolumeClaim gone"}},
		"snapshot remains":           {[]teardown.Item{object}, []teardown.Item{content}, []string{"VolumeSnapshotContent planned"}},
		"snapshot is gone":           {[]teardown.Item{object, content}, nil, []string{"VolumeSnapshot gone"}},
		"content was there alone":    {[]teardown.Item{content}, nil, []string{"VolumeSnapshotContent gone"}},
		"snapshots without a handle": {[]teardown.Item{snapshot("VolumeSnapshot", "")}, []teardown.Item{snapshot("VolumeSnapshotContent", "")}, []string{"VolumeSnapshot gone", "VolumeSnapshotContent planned"}},
	} {
		var got []string
		for _, item := range merged(tc.saved, tc.current) {
			got = append(got, item.Object.Kind+" "+string(item.Fate))
		}
		slices.Sort(got)
		if !slices.Equal(got, tc.want) {
			t.Errorf("%s: %q, want %q", name, got, tc.want)
		}
	}
}
