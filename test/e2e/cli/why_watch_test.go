package cli

import (
	"bufio"
	"encoding/json"
	"os/exec"
	"strings"
	"syscall"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/exeunt-io/exeunt/pkg/blocker"
)

// watched is a running "exeunt why --watch".
type watched struct {
	*whyServer
	command *exec.Cmd
	lines   *bufio.Scanner
	stderr  *strings.Builder
}

func (l *whyServer) watch(args ...string) *watched {
	l.t.Helper()
	w := &watched{whyServer: l,
		command: l.command(append([]string{"why", "--watch", "-o", "json", "-n", l.namespace}, args...)...),
		stderr:  &strings.Builder{}}
	out, err := w.command.StdoutPipe()
	l.must(err, "connect to the output")
	w.command.Stderr = w.stderr
	w.lines = bufio.NewScanner(out)
	w.lines.Buffer(nil, 1<<20)
	l.must(w.command.Start(), "start exeunt")
	return w
}

// next returns the next report.
func (w *watched) next() blocker.Report {
	w.t.Helper()
	if !w.lines.Scan() {
		w.t.Fatalf("the watch ended: %v, %s", w.lines.Err(), w.stderr)
	}
	var report blocker.Report
	w.must(json.Unmarshal(w.lines.Bytes(), &report), "read "+w.lines.Text())
	return report
}

// expect reads the next report.
func (w *watched) expect(verdict blocker.Verdict, reason blocker.Reason) blocker.Report {
	w.t.Helper()
	report := w.next()
	for root := range blocker.Roots(report.Blockers) {
		if root.Reason == reason && report.Verdict == verdict {
			return report
		}
	}
	w.t.Fatalf("the report is %+v, want %v, %v", report, verdict, reason)
	return report
}

// expectEnd waits for the end of the program.
func (w *watched) expectEnd(code int) {
	w.t.Helper()
	for w.lines.Scan() {
		w.t.Errorf("also printed: %s", w.lines.Text())
	}
	_ = w.command.Wait() // its exit code counts
	if got := w.command.ProcessState.ExitCode(); got != code || w.stderr.Len() > 0 {
		w.t.Errorf("exit code %d, want %d; standard error: %q", got, code, w.stderr)
	}
}

func TestWatchEndsWithObject(t *testing.T) {
	t.Parallel()
	l := open(t, current)
	l.createConfig("held", "example.com/a", "example.com/b")
	w := l.watch("cm/held")
	if first := w.expect(blocker.Unknown, blocker.UnknownFinalizer); len(first.Blockers) != 2 {
		t.Errorf("the first report is %+v, want two blockers", first)
	}
	l.removeFinalizers("held")
	if last := w.next(); last.Verdict != blocker.Gone {
		t.Errorf("the last report is %+v, want gone", last)
	}
	w.expectEnd(0)
}

// A StatefulSet creates its pod again. The controller is played here.
func TestWatchReportsRecreatedPod(t *testing.T) {
	t.Parallel()
	l := open(t, current)
	isController := true
	owner := metav1.OwnerReference{APIVersion: "apps/v1", Kind: "StatefulSet", Name: "db", UID: "1",
		Controller: &isController}
	create := func() *corev1.Pod {
		pod, err := l.client.CoreV1().Pods(l.namespace).Create(l.ctx, &corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{Name: "db-0", OwnerReferences: []metav1.OwnerReference{owner}},
			Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "main", Image: "image"}}},
		}, metav1.CreateOptions{})
		l.must(err, "create pod")
		return pod
	}
	before := create()
	w := l.watch("pod/db-0")
	if report := w.next(); report.Verdict != blocker.None {
		t.Errorf("the first report is %+v, want none", report)
	}
	now := int64(0)
	l.must(l.client.CoreV1().Pods(l.namespace).Delete(l.ctx, "db-0", metav1.DeleteOptions{GracePeriodSeconds: &now}),
		"delete pod")
	after := create()
	if gone := w.next(); gone.Verdict != blocker.Gone || gone.Object.UID != string(before.UID) {
		t.Errorf("the second report is %+v, want gone, UID %s", gone, before.UID)
	}
	again := w.expect(blocker.None, blocker.Recreated)
	if again.Object.UID != string(after.UID) || again.Blockers[0].Holder != "StatefulSet db" {
		t.Errorf("the last report is %+v, want UID %s of StatefulSet db", again, after.UID)
	}
	w.expectEnd(0)
}

func TestInterruptedWatchEndsCleanly(t *testing.T) {
	t.Parallel()
	l := open(t, current)
	l.createConfig("held", "example.com/held")
	w := l.watch("cm/held")
	w.expect(blocker.Unknown, blocker.UnknownFinalizer)
	l.must(w.command.Process.Signal(syscall.SIGINT), "interrupt")
	w.expectEnd(2)
}

func TestWatchWithoutRightLooksAgain(t *testing.T) {
	t.Parallel()
	l := open(t, current)
	l.createConfig("held", "example.com/held")
	l.grantReading("reader", "configmaps")
	w := l.watch("cm/held", "--as", "reader")
	w.expect(blocker.Unknown, blocker.UnknownFinalizer)
	l.removeFinalizers("held")
	if last := w.next(); last.Verdict != blocker.Gone {
		t.Errorf("the last report is %+v, want gone", last)
	}
	_ = w.command.Wait()
	if want := "no right to watch configmaps in namespace lab; grant the rule"; !strings.Contains(w.stderr.String(),
		want) || strings.Count(w.stderr.String(), "\n") != 1 {
		t.Errorf("standard error is %q, want once %q", w.stderr, want)
	}
}
