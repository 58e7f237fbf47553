package garbagecollector

import (
	"slices"
	"strings"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/record"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/exeunt-io/exeunt/pkg/garbage/graph"
)

func TestPassesWithout(t *testing.T) {
	for name, tc := range map[string]struct {
		orphaning     bool
		waited, limit time.Duration
		want          bool
	}{
		"a foreground deletion does not wait":       {false, 0, 0, true},
		"an orphaning owner waits for ever":         {true, 24 * time.Hour, 0, false},
		"an orphaning owner waits for its limit":    {true, time.Minute - 1, time.Minute, false},
		"an orphaning owner passes after its limit": {true, time.Minute, time.Minute, true},
	} {
		t.Run(name, func(t *testing.T) {
			if got := passesWithout(tc.orphaning, tc.waited, tc.limit); got != tc.want {
				t.Errorf("passesWithout = %v", got)
			}
		})
	}
}

// passesUnread has a barrier pass without ConfigMaps, and reports whether the owner has passed.
func (c *Collector) passesUnread(t *testing.T, uid types.UID) bool {
	t.Helper()
	c.barriers.await([]types.UID{uid})
	c.barriers.passes.passWithout(t.Context(), c.barriers.takePending(), namesOf([]*graph.Kind{configMaps}))
	owner, found := c.graph.WaitingOwner(uid)
	if !found {
		t.Fatal("the owner does not wait")
	}
	return owner.Passed
}

func TestOrphaningOwnerWaitsForUnreadKindUntilTimeout(t *testing.T) {
	clock, recorder := clocktesting.NewFakeClock(time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)), record.NewFakeRecorder(10)
	c := New(Config{Clock: clock, Recorder: recorder, OrphanUnreadableAfter: time.Minute})
	c.change(func(g *graph.Graph) { g.Serve(configMaps) })
	c.observe(terminating(configMap("owner", "1"), metav1.FinalizerOrphanDependents))
	for _, step := range []struct {
		after time.Duration
		want  bool
	}{{0, false}, {59 * time.Second, false}, {time.Second, true}} {
		clock.Step(step.after)
		if got := c.passesUnread(t, "owner"); got != step.want {
			t.Errorf("%v later: passed %v", step.after, got)
		}
	}
	if len(recorder.Events) != 1 {
		t.Fatalf("%d events", len(recorder.Events))
	}
	if text := <-recorder.Events; text != v1.EventTypeWarning+
		" DependentsUnread Dependents of these kinds may be deleted, although the policy is Orphan, because the kinds cannot be read: configmaps" {
		t.Errorf("event: %s", text)
	}
}

// An owner that no longer waits is forgotten.
func TestForgottenOwnerStartsAnew(t *testing.T) {
	clock := clocktesting.NewFakeClock(time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC))
	c := New(Config{Clock: clock, Recorder: record.NewFakeRecorder(10)})
	c.change(func(g *graph.Graph) { g.Serve(configMaps) })
	c.observe(terminating(configMap("gone", "1"), metav1.FinalizerOrphanDependents),
		terminating(configMap("owner", "2"), metav1.FinalizerOrphanDependents))
	c.passesUnread(t, "gone")
	c.change(func(g *graph.Graph) {
		g.Deleted("gone", graph.Coordinates{GroupKind: configMaps.GroupKind(), Namespace: "ns", Name: "gone"})
	})
	c.passesUnread(t, "owner")
	if len(c.barriers.passes.unreadSince) != 1 || c.barriers.passes.unreadSince["owner"].since.IsZero() {
		t.Errorf("remembered: %v", c.barriers.passes.unreadSince)
	}
}

func TestForegroundOwnerPassesUnreadKind(t *testing.T) {
	recorder := record.NewFakeRecorder(10)
	c := New(Config{Clock: clocktesting.NewFakeClock(time.Unix(0, 0)), Recorder: recorder})
	c.change(func(g *graph.Graph) { g.Serve(configMaps) })
	c.observe(terminating(configMap("owner", "1"), metav1.FinalizerDeleteDependents))
	if !c.passesUnread(t, "owner") {
		t.Error("the owner waits")
	}
	if text := <-recorder.Events; !strings.HasSuffix(text,
		"are not waited for, because the kinds cannot be read: configmaps") {
		t.Errorf("event: %s", text)
	}
}

func TestUnreadKindsAreNamedOnce(t *testing.T) {
	c := New(Config{Clock: clocktesting.NewFakeClock(time.Unix(0, 0))})
	for _, kind := range []*graph.Kind{configMaps, definitions, services} {
		c.watches.monitors[kind.GroupKind()] = &monitor{watches: c.watches, kind: kind, listed: kind == services}
	}
	c.barriers.unread = []*graph.Kind{configMaps}
	if got := c.barriers.unreadKinds(); !slices.Equal(got, []string{"configmaps",
		"customresourcedefinitions.apiextensions.k8s.io"}) {
		t.Errorf("unread: %v", got)
	}
}

// A deletion with another policy is another deletion: it waits for the whole time.
func TestNextDeletionOfOwnerStartsAnew(t *testing.T) {
	clock := clocktesting.NewFakeClock(time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC))
	c := New(Config{Clock: clock, Recorder: record.NewFakeRecorder(10), OrphanUnreadableAfter: time.Minute})
	c.change(func(g *graph.Graph) { g.Serve(configMaps) })
	c.observe(terminating(configMap("owner", "1"), metav1.FinalizerOrphanDependents))
	c.passesUnread(t, "owner")
	clock.Step(time.Hour)
	c.observe(terminating(configMap("owner", "2"), metav1.FinalizerDeleteDependents),
		terminating(configMap("owner", "3"), metav1.FinalizerOrphanDependents))
	if c.passesUnread(t, "owner") {
		t.Error("the second deletion with the policy Orphan did not wait")
	}
}
