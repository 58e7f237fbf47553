package nodes

import (
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/exeunt-io/exeunt/pkg/blocker"
	"github.com/exeunt-io/exeunt/pkg/forecast"
	"github.com/exeunt-io/exeunt/pkg/termination"
	"github.com/exeunt-io/exeunt/pkg/termination/pod"
	"github.com/exeunt-io/exeunt/pkg/why/cluster"
	"github.com/exeunt-io/exeunt/test/paste"
)

var drainedAt = time.Date(2026, 11, 29, 12, 0, 0, 0, time.UTC)

// drainOf returns a node whose deadline is ten minutes away.
func drainOf(pods ...forecast.Pod) *draining {
	node := &unstructured.Unstructured{Object: map[string]any{"kind": "Node", "metadata": map[string]any{"name": "n"}}}
	return &draining{node: node, now: drainedAt, report: forecast.Report{Pods: pods, Stop: "2026-11-29T12:10:00Z"}}
}

// kept returns a pod that the reason keeps.
func kept(first forecast.First, forced string, reasons ...pod.Reason) forecast.Pod {
	one := forecast.Pod{Namespace: "shop", Name: "p", First: first, Forced: forced}
	for _, reason := range reasons {
		one.Blockers = append(one.Blockers, forecast.Blocker{Reason: string(reason), Object: "holder", Text: "text"})
	}
	return one
}

func TestPodOfDrainedNode(t *testing.T) {
	const forced = "2026-11-29T12:05:00Z"
	overdue := drainOf(kept(forecast.AfterBudget, forced, pod.BudgetBlocks))
	overdue.now = drainedAt.Add(12 * time.Minute)
	refused := drainOf(kept(forecast.AtOnce, forced))
	refused.own = &Report{Report: termination.Report{Left: []termination.Left{{Pod: "shop/p", Reason: "EvictionRefused",
		Holder: "webhook guard"}}}}
	for name, tc := range map[string]struct {
		drain   *draining
		reason  blocker.Reason
		verdict blocker.Verdict
	}{
		"budget":                   {drainOf(kept(forecast.AfterBudget, forced, pod.BudgetBlocks)), blocker.BudgetFull, blocker.Waiting},
		"budget, no deadline":      {drainOf(kept(forecast.AfterBudget, "", pod.BudgetInUse)), blocker.BudgetFull, blocker.Unknown},
		"budget, overdue":          {overdue, blocker.BudgetFull, blocker.Unknown},
		"do-not-disrupt":           {drainOf(kept(forecast.AtL, forced, pod.DoNotDisrupt)), blocker.DoNotDisrupt, blocker.Waiting},
		"do-not-disrupt, for ever": {drainOf(kept(forecast.Never, "", pod.DoNotDisrupt)), blocker.DoNotDisrupt, blocker.Stuck},
		"do-not-disrupt, an hour":  {drainOf(kept(forecast.AtTime, "", pod.DoNotDisrupt)), blocker.DoNotDisrupt, blocker.Waiting},
		"do-not-disrupt, ignored":  {drainOf(kept(forecast.AtOnce, "", pod.DoNotDisrupt)), blocker.InUse, blocker.Waiting},
		"two budgets":              {drainOf(kept(forecast.Never, "", pod.EvictionRefused)), blocker.EvictionRefused, blocker.Stuck},
		"order":                    {drainOf(kept(forecast.AfterOrdinary, "", pod.OrderKeeps)), blocker.PodsGoFirst, blocker.Waiting},
		"nothing":                  {drainOf(kept(forecast.AtOnce, forced)), blocker.InUse, blocker.Waiting},
		"a webhook, by the report": {refused, blocker.EvictionRefused, blocker.Waiting},
	} {
		found := tc.drain.podBlockers(t.Context(), withoutNodes{})
		if len(found) != 1 || found[0].Reason != tc.reason || found[0].Verdict != tc.verdict || found[0].Next == "" {
			t.Errorf("%s: %+v, want %v %v", name, found, tc.verdict, tc.reason)
		}
	}
}

func TestPodThatGoesWithNodeIsNoBlocker(t *testing.T) {
	if found := drainOf(kept(forecast.Stays, "", pod.WouldReturn)).podBlockers(t.Context(), withoutNodes{}); len(found) > 0 {
		t.Errorf("%+v", found)
	}
}

// What keeps the object of a pod does not keep its node.
func TestUnawaitedPodIsNeverStuck(t *testing.T) {
	stuck := blocker.Blocker{Verdict: blocker.Stuck, Blockers: []blocker.Blocker{{Verdict: blocker.Stuck}}}
	if got := unawaited(stuck); blocker.Worst([]blocker.Blocker{got}) != blocker.Waiting || stuck.Blockers[0].Verdict != blocker.Stuck {
		t.Errorf("%+v of %+v", got, stuck)
	}
}

func TestMachineOfNode(t *testing.T) {
	event := func(reason string, ago time.Duration) corev1.Event {
		return corev1.Event{Reason: reason, Source: corev1.EventSource{Component: "node-terminator"},
			LastTimestamp: metav1.NewTime(drainedAt.Add(-ago))}
	}
	for name, tc := range map[string]struct {
		events []corev1.Event
		report string
		want   blocker.Verdict // None for no blocker
		next   string
	}{
		"nothing said":        {nil, "", blocker.None, ""},
		"draining":            {[]corev1.Event{event("FailedDraining", time.Minute)}, "", blocker.None, ""},
		"power, by the event": {[]corev1.Event{event("AwaitingPowerOff", time.Minute)}, "", blocker.Stuck, "# kubectl taint node n"},
		"an old event":        {[]corev1.Event{event("AwaitingPowerOff", time.Hour)}, "", blocker.None, ""},
		"power, by report":    {nil, "AwaitingPowerOff", blocker.Stuck, "# kubectl taint node n"},
		"foreign machine":     {nil, "InstanceForeign", blocker.Stuck, "kubectl describe node n"},
		"provider is silent":  {nil, "InstanceUnreadable", blocker.Unknown, "kubectl describe node n"},
		"machine is stopped":  {nil, "InstanceStops", blocker.Waiting, "kubectl describe node n"},
		"report is newer":     {[]corev1.Event{event("AwaitingPowerOff", time.Minute)}, "MachineOff", blocker.None, ""},
	} {
		drain := drainOf()
		drain.events = tc.events
		if tc.report != "" {
			drain.own = &Report{Report: termination.Report{Reason: tc.report}}
		}
		found := drain.machine(withoutNodes{})
		if blocker.Worst(found) != tc.want || len(found) > 0 && !strings.Contains(found[0].Next, tc.next) {
			t.Errorf("%s: %+v, want %v", name, found, tc.want)
		}
	}
}

func TestReportNamesPods(t *testing.T) {
	report := Report{Namespace: "exeunt-system", Name: "r", Report: termination.Report{Phase: termination.PhaseEnded, OverdueSeconds: 7,
		Counts: termination.Counts{CutShort: 12}}}
	for range 12 {
		report.CutShort = append(report.CutShort, termination.CutShort{Pod: "shop/p", Given: 1, Missing: 2, Reason: "BudgetBlocks"})
	}
	var text []string
	for _, evidence := range report.evidence() {
		text = append(text, evidence.Text)
	}
	if all := strings.Join(text, "\n"); len(text) != 13 || !strings.Contains(all, "and 2 more were cut short") ||
		!strings.Contains(all, "ConfigMap exeunt-system/r: Ended") || !strings.Contains(all, "for 7 s after its deadline") {
		t.Errorf("%d: %s", len(text), all)
	}
}

// Whoever pastes the step must not take the finalizer off all other nodes before node-terminator runs again.
func TestStepWithoutNodeTerminatorIsPastedSafely(t *testing.T) {
	for _, reason := range []blocker.Reason{blocker.ControllerGone, blocker.ControllerUnseen} {
		found := withRemedy(withoutNodes{}, blocker.Blocker{Reason: reason, Next: cluster.Steps("start it", "kubectl get pods")})
		if !strings.Contains(found.Next, "exeunt rollback nodes --confirm") {
			t.Errorf("%v: the next step is %q", reason, found.Next)
		}
		paste.ExpectSafe(t, found.Next)
	}
}
