package nodes

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/exeunt-io/exeunt/pkg/termination"
	"github.com/exeunt-io/exeunt/test/cloudmock/machines"
	"github.com/exeunt-io/exeunt/test/e2e/harness"
)

// neverForced waits for a pod that says do-not-disrupt, with a grace period of a second.
func neverForced(t *testing.T, e *ending) {
	name := e.take("Never")
	guarded := e.pod(name, "guarded", annotated(doNotDisrupt, "true"), grace(1))
	e.pod(name, "free")
	uid := e.node(name).UID
	e.delete(name)
	e.awaitNodeEvent(name, "DeletionRequested")
	e.awaitNodeEvent(name, "FailedDraining") // after 10 s
	report := e.report(uid)
	waits := func(left termination.Left) bool {
		return left.UID == string(guarded.UID) && left.Reason == "DoNotDisrupt"
	}
	if report.Deadline != nil || !slices.ContainsFunc(report.Left, waits) {
		t.Errorf("the report does not name what it waits for: %+v", report)
	}
	if text, has := e.node(name).Annotations[termination.TimestampAnnotation]; has {
		t.Errorf("a node without a deadline has the deadline %q", text)
	}
	if now := e.getPod(guarded.Name); now == nil || now.DeletionTimestamp != nil {
		t.Fatalf("the pod was deleted against its annotation: %+v", now)
	}
	e.disrupt(guarded)
	e.awaitGone(name)
	if report := e.awaitPhase(uid, termination.PhaseEnded); report.Counts != (termination.Counts{Evicted: 2}) {
		t.Errorf("report %+v", report)
	}
}

// doNotDisrupt is Karpenter's annotation.
const doNotDisrupt = "karpenter.sh/do-not-disrupt"

// disrupt removes do-not-disrupt from the pod.
func (e *ending) disrupt(pod *v1.Pod) {
	e.T.Helper()
	_, err := e.Client.CoreV1().Pods(pod.Namespace).Patch(e.Ctx, pod.Name, mergePatch,
		fmt.Appendf(nil, `{"metadata":{"annotations":{%q:null}}}`, doNotDisrupt), metav1.PatchOptions{})
	e.Must(err, "patch pod")
}

// noTime ends a node whose period is 0: each pod gets a second, and the machine is stopped 10 s after the first action.
func noTime(t *testing.T, e *ending) {
	name := e.take("0s")
	e.seen(name)
	pod := e.pod(name, "stuck", stuck, grace(3600))
	uid := e.node(name).UID
	e.fault(machines.Fault{Node: name, Kind: machines.Partition})
	e.delete(name)
	e.expectLate(name, pod)
	e.awaitGone(name)
	report := e.awaitPhase(uid, termination.PhaseEnded)
	// The kubelet saw no DELETE.
	if len(report.CutShort) != 1 || report.CutShort[0].Given > 1 || report.CutShort[0].Missing < 3580 {
		t.Errorf("report %+v", report)
	}
}

// expectStop wants the machine stopped at E, and not before: by then a pod may still unmount.
func (e *ending) expectStop(name string, end time.Time) machines.Event {
	e.T.Helper()
	off := e.power(name)
	if late := off.Time.Sub(end); late < 0 || late > 1500*time.Millisecond {
		e.T.Errorf("the machine of %s was stopped %v after E", name, late)
	}
	return off
}

// expectLate wants the pod deleted with a second of grace, and the machine stopped 10 s after the first action (#04).
func (e *ending) expectLate(name string, pod *v1.Pod) {
	e.T.Helper()
	var first time.Time
	e.Until("the first action is written", func() bool {
		first = termination.FirstAction(e.node(name), time.Time{})
		return !first.IsZero()
	})
	e.Until("the pod is deleted", func() bool { return e.getPod(pod.Name).DeletionTimestamp != nil })
	if given := *e.getPod(pod.Name).DeletionGracePeriodSeconds; given != 1 {
		e.T.Errorf("the pod got %d s", given)
	}
	off := e.power(name)
	after := off.Time.Sub(first)
	if after < 10*time.Second || after > 12500*time.Millisecond { // first is in whole seconds
		e.T.Errorf("the machine was stopped %v after the first action, want 10 s", after)
	}
	if message := e.awaitNodeEvent(name, "DeadlineReached"); !strings.Contains(message, "late by ") {
		e.T.Errorf("event %q", message)
	}
}

// controlPlaneNode has our label, and is never served.
func controlPlaneNode(t *testing.T, e *ending) {
	name := e.pick()
	e.patch(name, `{"metadata":{"labels":{"node-role.kubernetes.io/control-plane":""}}}`)
	e.label(name, "5s")
	if message := e.awaitNodeEvent(name, "DeadlineInvalid"); !strings.Contains(message, "control plane") {
		t.Errorf("event %q", message)
	}
	if node := e.node(name); termination.Protected(node) || len(node.Annotations[termination.InstanceAnnotation]) > 0 {
		t.Errorf("the node was touched: %+v", node.ObjectMeta)
	}
	e.delete(name)
	if e.node(name) != nil {
		t.Error("the node is not gone at once")
	}
}

// TestAPIServerAway stops the API server (#71). The leader ends, and the next one comes after the deadline.
func TestAPIServerAway(t *testing.T) {
	t.Parallel()
	const period = 20 * time.Second
	e := startEndingWith(t, harness.Setup{Restarts: true}, 2, "--leader-elect=true", "--leader-elect-lease-duration=6s",
		"--leader-elect-renew-deadline=2s", "--leader-elect-retry-period=500ms", "--instances=socket",
		"--instances-socket=SOCKET")
	name := e.take(period.String())
	e.seen(name)
	pod := e.pod(name, "db", stuck, grace(3600), e.withDisk(name))
	uid := e.node(name).UID
	e.fault(machines.Fault{Node: name, Kind: machines.Partition})
	leader := e.terminator
	e.Must(e.Plane.Restart(e.Ctx, func() error {
		select {
		case <-leader.Done():
		case <-e.Ctx.Done():
			t.Error("the leader did not end")
		}
		return nil
	}), "restart API server")
	deleted := e.delete(name)
	e.expectNever(machines.Event{Node: name, Event: machines.PowerOff})
	late := deleted.Add(period)
	e.Until("the deadline has passed", func() bool { return time.Now().After(late) })
	e.begin()
	e.expectLate(name, pod)
	e.AwaitEvent(machines.Event{Volume: e.disk(name), Event: machines.Detached})
	e.awaitGone(name)
	e.awaitPhase(uid, termination.PhaseEnded)
	e.expectNever(machines.Event{Event: machines.TwoWriters})
}

// sigterms returns when the pods got SIGTERM, the first one first.
func (e *ending) sigterms(pods []v1.Pod) []machines.Event {
	e.T.Helper()
	var all []machines.Event
	for _, pod := range pods {
		all = append(all, e.AwaitEvent(machines.Event{UID: pod.UID, Event: machines.Sigterm}))
	}
	slices.SortFunc(all, func(a, b machines.Event) int { return a.Time.Compare(b.Time) })
	return all
}
