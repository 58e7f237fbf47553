package demo

import (
	"slices"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"

	"github.com/exeunt-io/exeunt/pkg/storage"
)

// begun is when the run of a test began.
var begun = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

// at returns the time so many milliseconds after the run began.
func at(ms int) time.Time { return begun.Add(time.Duration(ms) * time.Millisecond) }

// whats returns what events say.
func whats(events []Event) []string {
	var said []string
	for _, event := range events {
		said = append(said, event.What)
	}
	return said
}

var dueCases = map[string]struct {
	added   []Event
	instant time.Time
	due     []string
	rest    []string
}{
	"nothing was added": {
		instant: at(100),
	},
	"events are sorted by time, not arrival": {
		added:   []Event{{What: "c", Time: at(30)}, {What: "a", Time: at(10)}, {What: "b", Time: at(20)}},
		instant: at(100),
		due:     []string{"a", "b", "c"},
	},
	"events of one time keep their order": {
		added:   []Event{{What: "step", Time: at(10)}, {What: "write", Time: at(10)}, {What: "first", Time: at(0)}},
		instant: at(100),
		due:     []string{"first", "step", "write"},
	},
	"events that are not due wait": {
		added:   []Event{{What: "late", Time: at(50)}, {What: "early", Time: at(49)}},
		instant: at(50),
		due:     []string{"early"},
		rest:    []string{"late"},
	},
	"a state waits for its write": {
		added: []Event{{What: "state", Kind: kindState, Version: "7", Time: at(10)},
			{What: "gone", Kind: kindState, Gone: true, Time: at(20)}},
		instant: at(100),
		due:     []string{"gone"},
		rest:    []string{"state"},
	},
	"a state without a write comes at last": {
		added:   []Event{{What: "state", Kind: kindState, Version: "7", Time: at(10)}},
		instant: at(10).Add(patience + time.Millisecond),
		due:     []string{"state"},
	},
	"events before the run are dropped": {
		added:   []Event{{What: "before", Time: at(-1)}, {What: "begin", Time: at(0)}},
		instant: at(100),
		due:     []string{"begin"},
	},
}

func TestDueEventsAreSortedByTime(t *testing.T) {
	for name, tc := range dueCases {
		t.Run(name, func(t *testing.T) {
			timeline := newTimeline(true, begun)
			for _, event := range tc.added {
				timeline.add(event)
			}
			if got := whats(timeline.before(tc.instant)); !slices.Equal(got, tc.due) {
				t.Errorf("due are %q, want %q", got, tc.due)
			}
			if got := whats(timeline.rest()); !slices.Equal(got, tc.rest) {
				t.Errorf("the rest is %q, want %q", got, tc.rest)
			}
		})
	}
}

func TestLateEventIsShownNext(t *testing.T) {
	timeline := newTimeline(true, begun)
	timeline.add(Event{What: "second", Time: at(20)})
	timeline.before(at(100))
	timeline.add(Event{What: "first", Time: at(10)})
	if got, want := whats(timeline.before(at(100))), []string{"first"}; !slices.Equal(got, want) {
		t.Errorf("due are %q, want %q", got, want)
	}
}

func TestNumberOfVolumesLastsUntilTheNextCall(t *testing.T) {
	timeline := newTimeline(false, begun)
	for _, event := range []Event{
		{Kind: kindWrite, Time: at(0)},
		{Kind: kindCall, Time: at(10), Volumes: 1},
		{Kind: kindState, Time: at(20)},
		{Kind: kindCall, Time: at(1500), Volumes: 0},
	} {
		timeline.add(event)
	}
	events := append(timeline.before(at(15)), timeline.rest()...)
	for i, want := range []struct {
		volumes int
		seconds float64
	}{{0, 0}, {1, 0.01}, {1, 0.02}, {0, 1.5}} {
		if got := events[i]; got.Volumes != want.volumes || got.Seconds != want.seconds || got.Gate {
			t.Errorf("event %d is %+v, want %+v with the gate off", i, got, want)
		}
	}
}

func TestWritesAreDescribedInTheOrderOfVersions(t *testing.T) {
	timeline := newTimeline(true, begun)
	named := written(func(c *v1.PersistentVolumeClaim) {
		c.ResourceVersion = "8"
		c.Annotations = map[string]string{storage.AnnStorageProvisioner: "x"}
	})
	for _, event := range []Event{
		{Kind: kindWrite, Verb: "patch", Time: at(20), After: named}, // logged before the create
		{Kind: kindState, UID: "u", Version: "7", Time: at(12)},
		{Kind: kindWrite, Verb: "create", Time: at(10), After: written(func(c *v1.PersistentVolumeClaim) { c.ResourceVersion = "7" })},
		{Kind: kindState, UID: "u", Version: "9", What: "unsaid", Time: at(30)},
	} {
		timeline.add(event)
	}
	events := timeline.rest()
	if got, want := whats(events), []string{"creates PVC demo", "", "names the provisioner of PVC demo",
		"unsaid"}; !slices.Equal(got, want) {
		t.Errorf("events are %q, want %q", got, want)
	}
	if !events[1].Told || events[3].Told {
		t.Errorf("told are %t and %t, want only the state that a write returned", events[1].Told, events[3].Told)
	}
}
