package garbagecollector

import (
	"strconv"
	"strings"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/record"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/exeunt-io/exeunt/pkg/garbage/graph"
)

var configMaps = &graph.Kind{GroupVersionKind: schema.GroupVersionKind{Version: "v1", Kind: "ConfigMap"},
	Resource: "configmaps", Namespaced: true, Collected: true}

// waiting returns a collector with an owner that waits for a dependent.
func waiting(clock *clocktesting.FakeClock) (*Collector, *record.FakeRecorder) {
	recorder := record.NewFakeRecorder(10)
	c := New(Config{Clock: clock, Recorder: recorder})
	blocks := true
	owner := &metav1.ObjectMeta{Namespace: "ns", Name: "owner", UID: "o", ResourceVersion: "1",
		DeletionTimestamp: &metav1.Time{Time: clock.Now()}, Finalizers: []string{metav1.FinalizerDeleteDependents}}
	dependent := &metav1.ObjectMeta{Namespace: "ns", Name: "dependent", UID: "d", ResourceVersion: "2",
		OwnerReferences: []metav1.OwnerReference{{APIVersion: "v1", Kind: "ConfigMap", Name: "owner", UID: "o",
			BlockOwnerDeletion: &blocks}}}
	c.change(func(g *graph.Graph) {
		g.Serve(configMaps)
		g.Observe(configMaps, owner)
		g.Observe(configMaps, dependent)
	})
	return c, recorder
}

func TestProgressIsReportedEachHalfMinute(t *testing.T) {
	clock := clocktesting.NewFakeClock(time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC))
	c, recorder := waiting(clock)
	for _, step := range []struct {
		after time.Duration
		want  int
	}{{0, 0}, {29 * time.Second, 0}, {time.Second, 1}, {5 * time.Second, 0}, {25 * time.Second, 1}} {
		clock.Step(step.after)
		c.progress.sendProgress()
		if got := len(recorder.Events); got != step.want {
			t.Fatalf("after %v: %d events, want %d", step.after, got, step.want)
		}
		for range step.want {
			if text := <-recorder.Events; !strings.HasPrefix(text, v1.EventTypeNormal+
				" DeletionWaiting Waiting for 1 dependents to be deleted: ConfigMap dependent") {
				t.Errorf("event: %s", text)
			}
		}
	}
}

func TestWaitingOwnersAreCounted(t *testing.T) {
	clock := clocktesting.NewFakeClock(time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC))
	c, _ := waiting(clock)
	clock.Step(time.Minute)
	count, oldest := c.progress.counts()
	if count["foreground"] != 1 || count["orphan"] != 0 || oldest["foreground"] != time.Minute {
		t.Errorf("count %v, oldest %v", count, oldest)
	}
}

// The events of one tick are bounded. Each owner has its turn.
func TestYoungOwnersHaveTheirTurn(t *testing.T) {
	clock, recorder := clocktesting.NewFakeClock(time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)), record.NewFakeRecorder(1000)
	c := New(Config{Clock: clock, Recorder: recorder})
	const owners = 300
	for i := range owners {
		owner := terminating(configMap(strconv.Itoa(i), "1"), metav1.FinalizerDeleteDependents)
		owner.DeletionTimestamp.Time = owner.DeletionTimestamp.Add(time.Duration(i) * time.Second)
		c.observe(owner)
	}
	for range owners/maxEvents + int(progressInterval/progressTick) {
		c.progress.sendProgress()
		clock.Step(progressTick)
	}
	for uid, told := range c.progress.told {
		if told.sent.IsZero() {
			t.Errorf("no event about owner %s", uid)
		}
	}
	if want := owners; len(recorder.Events) != want {
		t.Errorf("%d events, want %d", len(recorder.Events), want)
	}
}

// client-go leaves out the 26th event about one object.
func TestEventsAboutOneOwnerGoOn(t *testing.T) {
	clock := clocktesting.NewFakeClock(time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC))
	limits := EventLimits
	limits.Clock = clock
	correlator := record.NewEventCorrelatorWithOptions(limits)
	for i := range 100 {
		event := &v1.Event{InvolvedObject: v1.ObjectReference{Kind: "ConfigMap", UID: "owner"}, Reason: "DeletionWaiting",
			Message: "Waiting"}
		if result, err := correlator.EventCorrelate(event); err != nil || result.Skip {
			t.Fatalf("event %d: left out: %v, error %v", i, result.Skip, err)
		}
		clock.Step(progressInterval)
	}
}
