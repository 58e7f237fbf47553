package integration

import (
	"strings"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/exeunt-io/exeunt/pkg/nodeterminator/drain"
	"github.com/exeunt-io/exeunt/pkg/termination"
	"github.com/exeunt-io/exeunt/pkg/termination/node"
	"github.com/exeunt-io/exeunt/pkg/termination/pod"
	"github.com/exeunt-io/exeunt/test/e2e/harness"
)

// The rows of the design, on a real API server, with the real disruption controller.
func TestDrain(t *testing.T) {
	c := startDisruptions(t)
	for name, test := range map[string]func(*testing.T, *harness.Cluster){
		"#10 pod is evicted with whole grace":         drainEvicts,
		"#11 one pod of a full budget at a time":      drainKeepsBudget,
		"#12 blocked pod is deleted at L":             drainDeletesAtL,
		"#13 do-not-disrupt ends at L":                drainEndsDoNotDisrupt,
		"#14 two budgets refuse one pod alone":        drainRefused,
		"#18 #19 grace beyond T is cut at once":       drainCutsLongGrace,
		"#20 Terminating pod is shortened once":       drainShortens,
		"#25 #26 order":                               drainKeepsOrder,
		"#42 #22 pods are removed after proof":        drainRemoves,
		"looking at pods sends nothing":               drainLooks,
		"#28 late pod is evicted, and settling waits": drainSettles,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(t, c)
		})
	}
}

func drainEvicts(t *testing.T, c *harness.Cluster) {
	r := newDrainRig(t, c, time.Hour)
	p := r.pod("app", 30)
	r.drain()
	now := r.awaitTerminating("app")
	if *now.DeletionGracePeriodSeconds != 30 || conditionOf(now) != "EvictionByEvictionAPI" {
		t.Errorf("the pod got %d s and the condition %q", *now.DeletionGracePeriodSeconds, conditionOf(now))
	}
	r.await("the pod is awaited", hasReason(p, pod.Terminating))
	r.end("app")
	result := r.await("the pod is counted", func(result drain.Result) bool { return result.Counts.Evicted == 1 })
	if result.Pods != node.NoPods || len(result.CutShort)+len(result.Left) > 0 ||
		result.Counts != (termination.Counts{Evicted: 1}) {
		t.Errorf("%+v", result)
	}
	r.expectRequests("app", "create eviction 201")
}

func drainKeepsBudget(t *testing.T, c *harness.Cluster) {
	r := newDrainRig(t, c, time.Hour)
	r.pod("web-1", 30)
	r.pod("web-2", 30)
	r.pod("web-3", 30, elsewhere)
	r.budget("web", 2, 1)
	r.drain()
	r.await("one pod waits for the budget", func(result drain.Result) bool {
		reasons := leftReasons(result)
		return len(result.Left) == 2 && reasons[string(pod.BudgetBlocks)] == 1 && reasons[string(pod.Terminating)] == 1
	})
	first, second := "web-1", "web-2"
	if p, _ := r.pods().Get(r.Ctx, first, metav1.GetOptions{}); p.DeletionTimestamp == nil {
		first, second = second, first
	}
	r.end(first)
	r.expectLives(second)
	r.pod("web-4", 30, elsewhere)
	r.awaitTerminating(second)
	r.end(second)
	r.await("both are counted", func(result drain.Result) bool { return result.Counts.Evicted == 2 })
	r.expectRequests(first, "create eviction 201")
	r.expectRequests(second, "create eviction 201")
}

func leftReasons(result drain.Result) map[string]int {
	found := map[string]int{}
	for _, left := range result.Left {
		found[left.Reason]++
	}
	return found
}

func drainDeletesAtL(t *testing.T, c *harness.Cluster) {
	r := newDrainRig(t, c, 603*time.Second)
	p := r.pod("web", 600)
	r.budget("web", 1, 0)
	r.drain()
	r.await("the pod is blocked", hasReason(p, pod.BudgetBlocks))
	r.expectLives("web")
	now := r.awaitTerminating("web")
	if early := r.view.Times.Forced(600 * time.Second); now.DeletionTimestamp.Time.Before(early.Add(599 * time.Second)) {
		t.Errorf("the pod ends at %v, L is at %v", now.DeletionTimestamp, early)
	}
	if *now.DeletionGracePeriodSeconds != 600 || conditionOf(now) != "DeletionByNodeTerminator" {
		t.Errorf("the pod got %d s and the condition %q", *now.DeletionGracePeriodSeconds, conditionOf(now))
	}
	message := r.AwaitEvent(p, "Disrupted")
	for _, want := range []string{r.name, r.view.Deadline.Annotation(), "600 s of its grace period of 600 s",
		r.Namespace + "/web"} {
		if !strings.Contains(message, want) {
			t.Errorf("the event %q lacks %q", message, want)
		}
	}
	r.end("web")
	result := r.await("the pod is counted", func(result drain.Result) bool { return result.Counts.Deleted == 1 })
	want := termination.CutShort{Pod: r.Namespace + "/web", UID: string(p.UID), Reason: string(pod.BudgetBlocks),
		Budget: r.Namespace + "/web", Given: 600}
	if len(result.CutShort) != 1 || result.CutShort[0] != want {
		t.Errorf("cut short: %+v, want %+v", result.CutShort, want)
	}
	r.expectRequests("web", "patch status 200", "delete  200")
}

func drainEndsDoNotDisrupt(t *testing.T, c *harness.Cluster) {
	r := newDrainRig(t, c, 32*time.Second)
	annotate := func(value string) func(*v1.Pod) {
		return func(p *v1.Pod) { p.Annotations = map[string]string{pod.DoNotDisruptAnnotation: value} }
	}
	p := r.pod("protected", 30, annotate("true"))
	unreadable := r.pod("unreadable", 30, annotate("yes"))
	r.drain()
	r.awaitTerminating("unreadable")
	r.AwaitEvent(unreadable, "DoNotDisruptInvalid")
	r.await("the pod is protected", hasReason(p, pod.DoNotDisrupt))
	r.expectLives("protected")
	now := r.awaitTerminating("protected")
	if conditionOf(now) != "EvictionByEvictionAPI" { // nothing else keeps it
		t.Errorf("the pod got the condition %q", conditionOf(now))
	}
	result := r.await("the pod is named", func(result drain.Result) bool { return len(result.CutShort) == 1 })
	if cut := result.CutShort[0]; cut.UID != string(p.UID) || cut.Reason != string(pod.DoNotDisrupt) || cut.Missing > 1 {
		t.Errorf("cut short: %+v", cut)
	}
	r.AwaitEvent(p, "Disrupted")
}

func drainRefused(t *testing.T, c *harness.Cluster) {
	r := newDrainRig(t, c, 33*time.Second)
	p := r.pod("web", 30)
	r.pod("other", 30, func(p *v1.Pod) { p.Labels = nil })
	r.budget("one", 0, 1)
	r.budget("two", 0, 1)
	r.drain()
	result := r.await("the pod is refused", hasReason(p, pod.EvictionRefused))
	if holder := leftOf(result, p).Holder; !strings.Contains(holder, "more than one PodDisruptionBudget") {
		t.Errorf("the holder is %q", holder)
	}
	r.awaitTerminating("other")
	r.expectLives("web")
	r.awaitTerminating("web")
	result = r.await("the pod is named", func(result drain.Result) bool { return len(result.CutShort) == 1 })
	if cut := result.CutShort[0]; cut.Reason != string(pod.EvictionRefused) || cut.Missing > 1 {
		t.Errorf("cut short: %+v", cut)
	}
}

func drainCutsLongGrace(t *testing.T, c *harness.Cluster) {
	r := newDrainRig(t, c, 60*time.Second)
	long := r.pod("long", 3600)
	endless := r.pod("endless", 9223372037)
	none := r.pod("none", 0)
	r.drain()
	for _, p := range []*v1.Pod{long, endless} {
		if now := r.awaitTerminating(p.Name); *now.DeletionGracePeriodSeconds > 60 || *now.DeletionGracePeriodSeconds < 55 {
			t.Errorf("pod %s got %d s", p.Name, *now.DeletionGracePeriodSeconds)
		}
		message := r.AwaitEvent(p, "Disrupted")
		if !strings.Contains(message, "s of its grace period of") {
			t.Errorf("the event is %q", message)
		}
	}
	if now := r.awaitTerminating("none"); *now.DeletionGracePeriodSeconds != 1 {
		t.Errorf("the pod without a grace period got %d s", *now.DeletionGracePeriodSeconds)
	}
	result := r.await("both are named", func(result drain.Result) bool { return len(result.CutShort) == 2 })
	for _, cut := range result.CutShort {
		if cut.Missing < 3500 || cut.Reason != string(pod.DeadlineNear) || cut.UID == string(none.UID) {
			t.Errorf("cut short: %+v", cut)
		}
	}
}

func drainShortens(t *testing.T, c *harness.Cluster) {
	r := newDrainRig(t, c, 8*time.Second)
	inTime := r.pod("in-time", 30)
	beyond := r.pod("beyond", 30)
	r.Must(r.pods().Delete(r.Ctx, "in-time", metav1.DeleteOptions{GracePeriodSeconds: ptr.To[int64](6)}), "delete pod")
	r.Must(r.pods().Delete(r.Ctx, "beyond", metav1.DeleteOptions{GracePeriodSeconds: ptr.To[int64](700)}), "delete pod")
	r.drain()
	r.await("both are awaited", func(result drain.Result) bool {
		return hasReason(inTime, pod.Terminating)(result) && hasReason(beyond, pod.TerminatingBeyond)(result)
	})
	r.Until("the pod is shortened", func() bool {
		p, err := r.pods().Get(r.Ctx, "beyond", metav1.GetOptions{})
		r.Must(err, "read pod")
		return *p.DeletionGracePeriodSeconds == 1
	})
	if early := r.view.Times.GraceEnds.Add(-deadlineShortening); time.Now().Before(early) {
		t.Errorf("shortened before %v", early)
	}
	r.AwaitEvent(beyond, "Disrupted")
	result := r.await("the pod is named", func(result drain.Result) bool { return len(result.CutShort) == 1 })
	if cut := result.CutShort[0]; cut.UID != string(beyond.UID) || cut.Reason != string(pod.TerminatingBeyond) ||
		cut.Given+cut.Missing != 700 {
		t.Errorf("cut short: %+v", cut)
	}
	r.await("the shortened pod is awaited", hasReason(beyond, pod.Terminating))
	r.expectRequests("beyond", "delete  200")
	r.expectRequests("in-time")
}

const deadlineShortening = 5 * time.Second

func drainKeepsOrder(t *testing.T, c *harness.Cluster) {
	r := newDrainRig(t, c, time.Hour, func(r *drainRig) { r.view.Volumes = true })
	owned := func(p *v1.Pod) {
		p.OwnerReferences = []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "DaemonSet", Name: "agent", UID: "1",
			Controller: ptr.To(true)}}
	}
	tolerating := func(p *v1.Pod) { p.Spec.Tolerations = []v1.Toleration{{Operator: v1.TolerationOpExists}} }
	r.pod("app", 30)
	r.pod("critical", 30, func(p *v1.Pod) { p.Spec.PriorityClassName = "system-cluster-critical" })
	r.pod("agent", 30, owned)
	returns := r.pod("returns", 30, owned, tolerating)
	r.drain()
	r.awaitTerminating("app")
	r.await("the rest waits", func(result drain.Result) bool { return leftReasons(result)[string(pod.OrderKeeps)] == 2 })
	r.end("app")
	r.awaitTerminating("critical")
	r.end("critical")
	r.await("the DaemonSet waits for volumes", func(result drain.Result) bool {
		return leftReasons(result)[string(pod.OrderKeeps)] == 1 && result.Counts.Evicted == 2
	})
	r.expectLives("agent")
	r.setView(func(v *drain.View) { v.Volumes = false })
	r.awaitTerminating("agent")
	r.end("agent")
	result := r.await("one pod goes with the node", func(result drain.Result) bool { return result.Counts.Evicted == 3 })
	if result.Pods != node.NoPods || result.Counts.WithNode != 1 ||
		leftOf(result, returns).Reason != string(pod.WouldReturn) {
		t.Errorf("%+v", result)
	}
	r.expectLives("returns")
}

func drainRemoves(t *testing.T, c *harness.Cluster) {
	r := newDrainRig(t, c, time.Hour, func(r *drainRig) { r.view.Proven = true })
	running := r.pod("running", 30)
	finished := r.pod("finished", 30)
	kept := r.pod("kept", 30, func(p *v1.Pod) { p.Finalizers = []string{"batch.kubernetes.io/job-tracking"} })
	agent := r.pod("agent", 30, func(p *v1.Pod) {
		p.OwnerReferences = []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "DaemonSet", Name: "agent", UID: "1",
			Controller: ptr.To(true)}}
	})
	finished.Status.Phase = v1.PodSucceeded
	_, err := r.Client.CoreV1().Pods(r.Namespace).UpdateStatus(r.Ctx, finished, metav1.UpdateOptions{})
	r.Must(err, "finish pod")
	r.drain()
	r.awaitGone("running")
	r.awaitGone("finished")
	result := r.await("one pod is kept", podsAre(node.Kept))
	if left := leftOf(result, kept); left.Reason != string(pod.ForeignFinalizer) ||
		!strings.Contains(left.Holder, "batch.kubernetes.io/job-tracking (Kubernetes") {
		t.Errorf("%+v", left)
	}
	now := r.awaitTerminating("kept")
	if now.Status.Phase != v1.PodFailed || conditionOf(now) != "DeletionByNodeTerminator" {
		t.Errorf("phase %s, condition %q", now.Status.Phase, conditionOf(now))
	}
	result = r.await("both are counted", func(result drain.Result) bool {
		return result.Counts.Removed == 1 && result.Counts.Finished == 1
	})
	if len(result.CutShort) != 2 || leftOf(result, agent).Reason != string(pod.GoesWithNode) {
		t.Errorf("%+v", result)
	}
	for _, cut := range result.CutShort {
		if cut.UID != string(running.UID) && cut.UID != string(kept.UID) || cut.Missing != 30 ||
			cut.Reason != string(pod.MachineOff) {
			t.Errorf("cut short: %+v", cut)
		}
	}
	r.expectRequests("finished", "delete  200")
}

func drainLooks(t *testing.T, c *harness.Cluster) {
	r := newDrainRig(t, c, 0, func(r *drainRig) { r.view.Drain = false })
	p := r.pod("app", 30)
	r.drain()
	result := r.await("the pod is seen", func(result drain.Result) bool { return len(result.Left) == 1 })
	if len(result.Awaited) != 1 || result.Awaited[0].UID != p.UID || result.Pods != node.Awaited {
		t.Errorf("%+v", result)
	}
	r.setView(func(v *drain.View) { v.Drain = true })
	r.awaitTerminating("app") // the first write is this one
	r.expectRequests("app", "create eviction 201")
}

func drainSettles(t *testing.T, c *harness.Cluster) {
	r := newDrainRig(t, c, time.Hour)
	r.drain()
	r.await("the node settles", func(result drain.Result) bool { return result.Settled && result.Pods == node.NoPods })
	r.pendingPod("late", 30)
	r.await("settling begins anew", func(result drain.Result) bool { return !result.Settled })
	r.awaitTerminating("late")
	r.end("late")
	r.await("the node settles again", func(result drain.Result) bool {
		return result.Settled && result.Counts.Evicted == 1
	})
}
