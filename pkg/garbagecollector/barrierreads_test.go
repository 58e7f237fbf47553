package garbagecollector

import (
	"errors"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/clock"

	"github.com/exeunt-io/exeunt/pkg/garbage/barrier"
	"github.com/exeunt-io/exeunt/pkg/garbage/graph"
)

// readsSince returns the reads of a barrier, before which the watch of the kind had come this far.
func (c *Collector) readsSince(kind *graph.Kind, reached string) *reads {
	run := barrier.Begin[*graph.Kind](time.Hour)
	run.Add(kind)
	run.NoteReached(kind, reached)
	return c.barriers.newReads(run, "")
}

// Discovery may replace the watch of a kind, or end it, while a barrier lists the kind. The barrier must
// not take its list for what the graph has.
func TestListOfKindThatIsWatchedOtherwiseIsNotTaken(t *testing.T) {
	listed := &graph.Kind{GroupVersionKind: schema.GroupVersionKind{Group: "g", Version: "v1", Kind: "Widget"},
		Resource: "widgets"}
	other := &graph.Kind{GroupVersionKind: schema.GroupVersionKind{Group: "g", Version: "v2", Kind: "Widget"},
		Resource: "widgets"}
	for name, tc := range map[string]struct {
		watched *monitor
		want    error
		known   bool
	}{
		"watched in this version":    {&monitor{kind: listed, position: "5"}, nil, true},
		"the watch is ahead":         {&monitor{kind: listed, position: "7"}, errAhead, false},
		"the list is behind":         {&monitor{kind: listed, position: "1000", reached: "1000"}, errBehind, false},
		"watched in another version": {&monitor{kind: other, position: "5"}, errUnwatched, false},
		"not watched":                {nil, errUnwatched, false},
	} {
		t.Run(name, func(t *testing.T) {
			c := New(Config{Clock: clock.RealClock{}})
			c.graph.Serve(listed)
			reached := ""
			if tc.watched != nil {
				c.watches.monitors[listed.GroupKind()] = tc.watched
				tc.watched.watches, reached = c.watches, tc.watched.reached
			}
			r := c.readsSince(listed, reached)
			err := r.record(listed, "7",
				[]metav1.PartialObjectMetadata{{ObjectMeta: metav1.ObjectMeta{Name: "one", UID: "one", ResourceVersion: "6"}}})
			if !errors.Is(err, tc.want) || r.graph.Has("one") != tc.known {
				t.Errorf("record = %v, in the graph: %v", err, r.graph.Has("one"))
			}
		})
	}
}

// The reflector says how far the watch has come only after it handed over the event. A list that was read before
// the deletion must not put the object back in between: no second event would remove it.
func TestListDoesNotPutBackWhatTheWatchRemoved(t *testing.T) {
	m := newMonitor()
	m.position = "5"
	if err := m.Add(metadataOf("one", 4)); err != nil {
		t.Fatal(err)
	}
	if err := m.Delete(metadataOf("one", 8)); err != nil {
		t.Fatal(err)
	}
	r := m.collector.readsSince(m.kind, "5")
	if err := r.record(m.kind, "7", []metav1.PartialObjectMetadata{*metadataOf("one", 4)}); !errors.Is(err, errAhead) ||
		m.graph.Has("one") {
		t.Errorf("record = %v, in the graph: %v", err, m.graph.Has("one"))
	}
}
