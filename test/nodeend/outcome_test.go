package nodeend

import (
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"github.com/exeunt-io/exeunt/test/cloudmock/machines"
)

var requested = time.Date(2026, 11, 29, 12, 0, 0, 0, time.UTC)

// at returns an event so many seconds after the request.
func at(seconds float64, node string, uid types.UID, what machines.Happening) machines.Event {
	after := time.Duration(seconds * float64(time.Second))
	return machines.Event{Time: requested.Add(after), Node: node, UID: uid, Event: what}
}

// disk returns an event of the disk "d".
func disk(seconds float64, node string, what machines.Happening) machines.Event {
	e := at(seconds, node, "", what)
	e.Volume = "d"
	return e
}

// tidy is a pod that exits 5 s after SIGTERM; its last moment is 15 s after the request.
var tidy = Pod{Name: "shop/tidy", Node: "old", UID: "1", Grace: 10, Needs: 5 * time.Second, Guard: "budget"}

func measure(change func(*Case), events ...machines.Event) Outcome {
	c := Case{Requested: requested, Period: 30 * time.Second, Pods: []Pod{tidy}}
	if change != nil {
		change(&c)
	}
	return Measure(c, events)
}

// ended is a pod of the node "old" that got SIGTERM after a second, and then this.
func ended(more ...machines.Event) []machines.Event {
	return append([]machines.Event{at(1, "old", "1", machines.Sigterm)}, more...)
}

// killed is a pod that got SIGKILL.
func killed(seconds float64) []machines.Event {
	return ended(at(seconds, "old", "1", machines.Sigkill), at(seconds, "old", "1", machines.Exited))
}

func TestGraceIsCountedFromSigterm(t *testing.T) {
	for name, tc := range map[string]struct {
		events []machines.Event
		want   string
		whole  bool
	}{
		"exited":         {ended(at(6, "old", "1", machines.Exited)), "whole", true},
		"killed late":    {killed(10.5), "10 of 10 s", true},
		"killed early":   {killed(3), "2 of 10 s", false},
		"power lost":     {ended(at(4, "old", "", machines.PowerOff)), "3 of 10 s", false},
		"no signal":      {[]machines.Event{at(4, "old", "", machines.PowerOff)}, "none", false},
		"another node":   {[]machines.Event{at(4, "new", "", machines.PowerOff)}, "runs on", false},
		"another pod":    {[]machines.Event{at(4, "old", "2", machines.Exited)}, "runs on", false},
		"nothing so far": {nil, "runs on", false},
	} {
		grace := measure(nil, tc.events...).Graces[0]
		if grace.String() != tc.want || grace.Whole() != tc.whole {
			t.Errorf("%s: %s, whole %v; want %s, %v", name, grace, grace.Whole(), tc.want, tc.whole)
		}
	}
}

func TestKilledPodThatHadTimeIsNamed(t *testing.T) {
	off := ended(at(3, "old", "", machines.PowerOff))
	for name, tc := range map[string]struct {
		change func(*Case)
		want   int
	}{
		"it had time":                {nil, 1},
		"its kubelet was dead":       {func(c *Case) { c.Silent = []string{"old"} }, 0},
		"it never exits":             {func(c *Case) { c.Pods[0].Needs = -1 }, 0},
		"its own grace is too short": {func(c *Case) { c.Pods[0].Needs = 10 * time.Second }, 0},
		"the period is too short":    {func(c *Case) { c.Period = 6 * time.Second }, 0},
	} {
		if got := measure(tc.change, off...).CutInTime; len(got) != tc.want {
			t.Errorf("%s: %v", name, got)
		}
	}
	if got := measure(nil, ended(at(6, "old", "1", machines.Exited))...).CutInTime; len(got) > 0 {
		t.Errorf("it exited: %v", got)
	}
}

func TestBypassesAreThosePastTheBudget(t *testing.T) {
	second := tidy
	second.UID = "2"
	both := []machines.Event{at(1, "old", "1", machines.Sigterm), at(2, "old", "2", machines.Sigterm)}
	late := []machines.Event{at(14, "old", "1", machines.Sigterm), at(15, "old", "2", machines.Sigterm)}
	for name, tc := range map[string]struct {
		allowed int
		events  []machines.Event
		want    string
	}{
		"both early":            {0, both, "2, 2 early"},
		"one is allowed":        {1, both, "1, 1 early"},
		"both are allowed":      {2, both, "0"},
		"at the last moment":    {0, late, "2"},
		"one allowed, one late": {1, []machines.Event{both[0], late[1]}, "1"},
		"none ended":            {0, nil, "0"},
	} {
		o := measure(func(c *Case) {
			c.Pods, c.Allowed = append(c.Pods, second), map[string]int{"budget": tc.allowed}
		}, tc.events...)
		if o.Forced() != tc.want {
			t.Errorf("%s: %s, want %s", name, o.Forced(), tc.want)
		}
	}
	if o := measure(func(c *Case) { c.Pods[0].Guard = "" }, both...); o.Forced() != "0" {
		t.Errorf("without a guard: %s", o.Forced())
	}
}

func TestSecondsPastTheDeadline(t *testing.T) {
	for want, events := range map[string][]machines.Event{
		"0":       {at(6, "old", "1", machines.Exited)},
		"12":      {at(42, "old", "1", machines.Exited)},
		"2":       {at(32.9, "old", "", machines.PowerOff)},
		"runs on": nil,
	} {
		if got := measure(nil, events...).Late(); got != want {
			t.Errorf("%s seconds past the deadline, want %s", got, want)
		}
	}
}

func TestDiskIsAttachedElsewhere(t *testing.T) {
	with := func(c *Case) { c.Disks = []string{"d"} }
	o := measure(with, disk(-5, "old", machines.Attached), disk(7, "old", machines.Attached),
		disk(20, "new", machines.Attached), disk(21, "old", machines.TwoWriters))
	if got := o.Disk(time.Minute, 1); got != "20" || o.TwoWriters != 1 {
		t.Errorf("%s s, %d two writers", got, o.TwoWriters)
	}
	if got := measure(with, disk(-5, "old", machines.Attached)).Disk(time.Minute, 1); got != "over 60" {
		t.Errorf("a disk that hangs: %s", got)
	}
	if got := measure(nil).Disk(time.Minute, 0); got != "-" {
		t.Errorf("no disk: %s", got)
	}
}

func TestPodFrom(t *testing.T) {
	pod := &v1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web", UID: "1",
		DeletionTimestamp: &metav1.Time{},
		Annotations:       map[string]string{"cloudmock.exeunt.io/exit-after": "3s", DoNotDisrupt: "true"}},
		Spec: v1.PodSpec{NodeName: "old", TerminationGracePeriodSeconds: ptr.To[int64](9)}}
	want := Pod{Name: "shop/web", Node: "old", UID: "1", Grace: 9, Needs: 3 * time.Second, Guard: DoNotDisrupt,
		Begun: true}
	if got := PodFrom(pod); got != want {
		t.Errorf("%+v, want %+v", got, want)
	}
	pod.Annotations["cloudmock.exeunt.io/ignore-sigterm"] = "true"
	if got := PodFrom(pod); got.Needs >= 0 {
		t.Errorf("a pod that ignores SIGTERM needs %v", got.Needs)
	}
}
