package scenarios

import (
	"context"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/exeunt-io/exeunt/pkg/termination"
	"github.com/exeunt-io/exeunt/test/node/internal/record"
)

// TestNodeTerminationOnNodes deletes Nodes whose machines are real, with a kubelet and its containers.
func TestNodeTerminationOnNodes(t *testing.T) {
	w := startTerminations(t)
	for name, scenario := range map[string]func(*testing.T, *terminations){
		"blocked":      blockedBudget,
		"dead kubelet": deadKubelet,
		"upgrade":      kubeletAway,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			scenario(t, w)
		})
	}
}

// early is how much too early a request may be, in seconds: the clock of the API server is known to half a second only.
const early = 0.5

// budget keeps a pod from being evicted.
func (w *terminations) budget(t *testing.T, app string) {
	t.Helper()
	one := intstr.FromInt32(1)
	_, err := w.Client.PolicyV1().PodDisruptionBudgets(namespace).Create(t.Context(), &policyv1.PodDisruptionBudget{
		ObjectMeta: metav1.ObjectMeta{Name: app},
		Spec: policyv1.PodDisruptionBudgetSpec{MinAvailable: &one,
			Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": app}}},
	}, metav1.CreateOptions{})
	must(t, err)
}

// daemon runs a pod of a DaemonSet on the node, as that of a driver.
func (w *terminations) daemon(t *testing.T, m *machine, name string) {
	t.Helper()
	labels := map[string]string{"app": name}
	_, err := w.Client.AppsV1().DaemonSets(namespace).Create(t.Context(), &appsv1.DaemonSet{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: appsv1.DaemonSetSpec{Selector: &metav1.LabelSelector{MatchLabels: labels}, Template: corev1.PodTemplateSpec{
			ObjectMeta: metav1.ObjectMeta{Labels: labels},
			Spec:       w.records(m, name, 3, 0), // it is ended from P on, 5 s before E
		}},
	}, metav1.CreateOptions{})
	must(t, err)
	w.eventually(t, "the pod of DaemonSet "+name+" is ready", func(ctx context.Context) error {
		set, err := w.Client.AppsV1().DaemonSets(namespace).Get(ctx, name, metav1.GetOptions{})
		if err == nil && set.Status.NumberReady != 1 {
			err = errNotReady
		}
		return err
	})
}

// blockedBudget deletes a node whose pods no budget lets go: each gets SIGTERM at L and its whole grace period.
func blockedBudget(t *testing.T, w *terminations) {
	const period, served, stubborn = 40 * time.Second, "served", "stubborn"
	m := w.boot(t, "blocked")
	w.daemon(t, m, "agent")
	for _, app := range []string{served, stubborn} {
		w.budget(t, app)
	}
	pod := w.recorder(m, served, 20, 17*time.Second)
	pod.Spec.Containers[0].Lifecycle = &corev1.Lifecycle{PreStop: &corev1.LifecycleHandler{Exec: &corev1.ExecAction{
		Command: []string{"/node", "note", "/record/" + served, "preStop"}}}}
	w.run(t, m, pod)
	w.run(t, m, w.recorder(m, stubborn, 10, -1))
	w.serve(t, m, period)
	requested, uid := w.deleteNode(t, m)
	report := w.awaitEnd(t, m, uid)

	ended, ignoring, agent := read(t, m.recordOf(served)), read(t, m.recordOf(stubborn)), read(t, m.recordOf("agent"))
	within(t, "SIGTERM with 20 s of grace", ended.First(record.Signaled), requested, 15-early, 17.5) // L, P is 35 s
	within(t, "its own end", ended.First(record.Ended), requested, 32-early, 35.5)
	if ended.Count("preStop") != 1 || ended.First("preStop").After(ended.First(record.Signaled)) {
		t.Errorf("preStop ran %d times, first at %v", ended.Count("preStop"), ended.First("preStop"))
	}
	within(t, "SIGTERM with 10 s of grace", ignoring.First(record.Signaled), requested, 25-early, 27)
	within(t, "its last write", ignoring.Last(), requested, 35-early, 37)
	if given := ignoring.Last().Sub(ignoring.First(record.Signaled)); given < 9*time.Second || given > 11*time.Second {
		t.Errorf("the pod that ignores SIGTERM got %v of 10 s", given)
	}
	// On a busy machine a pod is deleted a second late, and writes until P or a little longer.
	serving := requested.Add(time.Duration((35 - early) * float64(time.Second)))
	if at := agent.First(record.Signaled); at.Before(serving) && (at.Before(ignoring.Last()) || at.Before(ended.Last())) {
		t.Errorf("the DaemonSet's pod got SIGTERM at %v, before P and before the last write at %v", at, ignoring.Last())
	}
	if called, _ := m.times(); !called.IsZero() {
		within(t, "Stop", called, requested, period.Seconds(), period.Seconds()+2)
	}
	deletedWithGrace(t, report)
}

// deletedWithGrace requires that both pods were deleted with their grace period, less what the request came late: a
// grace period has whole seconds and ends at P.
func deletedWithGrace(t *testing.T, report termination.Report) {
	t.Helper()
	if c := report.Counts; c.Deleted+c.CutShort != 2 || c.Removed != 0 {
		t.Errorf("the report counts %+v, want two pods deleted", c)
	}
	for _, cut := range report.CutShort {
		if cut.Missing > 2 {
			t.Errorf("%s got %d s of grace, %d s less than its own", cut.Pod, cut.Given, cut.Missing)
		}
	}
}

// kubeletAway stops the kubelet for longer than a stuck pod is awaited, as an upgrade does, and deletes the node. With a
// deadline that is far away nobody is cut.
func kubeletAway(t *testing.T, w *terminations) {
	const name, grace, needed = "upgraded", 5, 3 * time.Second
	const away = (grace + 60 + 5) * time.Second // a pod is stuck 60 s after its grace period
	m := w.boot(t, name)
	w.run(t, m, w.recorder(m, name, grace, needed))
	w.serve(t, m, time.Hour)
	must(t, m.KillKubelet())
	requested, uid := w.deleteNode(t, m)
	w.eventually(t, "the pod is evicted, and the kubelet was away", func(ctx context.Context) error {
		pod, err := w.Client.CoreV1().Pods(namespace).Get(ctx, name, metav1.GetOptions{})
		if err == nil && (pod.DeletionTimestamp == nil || time.Since(requested) < away) {
			err = errNotReady
		}
		return err
	})
	must(t, m.StartKubelet())
	report := w.awaitEnd(t, m, uid)
	events := read(t, m.recordOf(name))
	within(t, "SIGTERM", events.First(record.Signaled), requested, away.Seconds(), away.Seconds()+60)
	if took := events.First(record.Ended).Sub(events.First(record.Signaled)); took < needed {
		t.Errorf("the pod ended %v after SIGTERM, want %v", took, needed)
	}
	if called, _ := m.times(); !called.IsZero() {
		t.Errorf("the machine was stopped at %v, an hour before the deadline", called)
	}
	if report.Counts.Evicted != 1 || len(report.CutShort) > 0 {
		t.Errorf("the report counts %+v and names %v, want one eviction", report.Counts, report.CutShort)
	}
}
