package cluster

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

var errEmpty = errors.New("the list is empty")

func empty(context.Context) error { return errEmpty }

func running() error { return nil }

func TestAwaitEndsWithASentence(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		err := await(t.Context(), "the driver is registered", empty, running)
		want := "wait until the driver is registered: it was not so within 2m0s: the list is empty"
		if err == nil || err.Error() != want {
			t.Errorf("await() = %v, want %s", err, want)
		}
		if waited := time.Since(start); waited != Patience {
			t.Errorf("await() returned after %s, want %s", waited, Patience)
		}
	})
}

func TestAwaitKeepsTheReasonWhenACheckHangs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		calls := 0
		err := await(t.Context(), "the node is ready", func(ctx context.Context) error {
			if calls++; calls == 1 {
				return errEmpty
			}
			<-ctx.Done()
			return ctx.Err()
		}, running)
		if !errors.Is(err, errEmpty) {
			t.Errorf("await() = %v, want the reason %v", err, errEmpty)
		}
	})
}

func TestAwaitEndsWithItsProgram(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		ended := errors.New("kube-scheduler has ended")
		err := await(t.Context(), "the node is ready", empty, func() error {
			if time.Since(start) < time.Second {
				return nil
			}
			return ended
		})
		if !errors.Is(err, ended) || time.Since(start) > 2*time.Second {
			t.Errorf("await() = %v after %s, want %v at once", err, time.Since(start), ended)
		}
	})
}

func TestAwaitReturnsWhenItHolds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		calls := 0
		err := await(t.Context(), "it holds", func(context.Context) error {
			if calls++; calls < 3 {
				return errEmpty
			}
			return nil
		}, running)
		if err != nil || calls != 3 {
			t.Errorf("await() = %v after %d calls, want nil after 3", err, calls)
		}
	})
}

func TestUnreadyPodsSayWhatTheyWaitFor(t *testing.T) {
	ready := corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "a", Name: "ready"}, Status: corev1.PodStatus{
		Conditions: []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}},
	}}
	waiting := corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "a", Name: "waiting", UID: "w"},
		Status: corev1.PodStatus{
			Phase: corev1.PodPending,
			ContainerStatuses: []corev1.ContainerStatus{{Name: "main", State: corev1.ContainerState{
				Waiting: &corev1.ContainerStateWaiting{Reason: "ErrImageNeverPull", Message: "no image"},
			}}},
		}}
	warning := func(uid string, second int, message string) corev1.Event {
		at := metav1.Date(2026, 1, 1, 0, 0, second, 0, time.UTC)
		event := corev1.Event{Reason: "FailedMount", Message: message, LastTimestamp: at}
		event.InvolvedObject.UID = waiting.UID
		if uid != "w" {
			event.InvolvedObject.UID = "other"
		}
		return event
	}
	got := unready([]corev1.Pod{ready, waiting}, []corev1.Event{warning("w", 2, "new"), warning("w", 1, "old"),
		warning("x", 3, "other")})
	want := "pod a/waiting is Pending; container main waits: ErrImageNeverPull no image; FailedMount: new"
	if strings.TrimSpace(got) != want {
		t.Errorf("unready() = %q, want %q", got, want)
	}
}
