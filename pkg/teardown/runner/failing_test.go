package runner

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/client-go/tools/record"

	"github.com/exeunt-io/exeunt/pkg/alive"
	"github.com/exeunt-io/exeunt/pkg/teardown"
)

// #67 A webhook refuses the label of a kept volume: nothing is deleted until the deadline, and the status says why.
func TestRefusedMarkIsNamed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newScene()
		c.seen, c.disk = []*v1.PersistentVolume{keptDisk()}, keptDisk()
		r := newTestRunner(t, c.live, c.disk, &v1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: metav1.NamespaceSystem, UID: clusterID}})
		client, is := r.Objects.(*fake.Clientset)
		if !is {
			t.Fatal("no fake client")
		}
		client.PrependReactor("patch", "persistentvolumes", func(clienttesting.Action) (bool, runtime.Object, error) {
			return true, nil, apierrors.NewForbidden(v1.Resource("persistentvolumes"), "kept", errors.New("webhook labels.example.com"))
		})
		r.current, r.synced = c.watched, true
		s := c.session(r)
		for range 3 {
			if _, err := s.round(t.Context(), t.Context(), nil); err != nil {
				t.Fatal(err)
			}
			sleep(t.Context(), s.Waits.MaxRetry)
		}
		object, err := r.readAlive(t.Context())
		if err != nil || object.Status.Reason != string(teardown.Keeping) || !strings.Contains(object.Status.Message, "labels.example.com") {
			t.Errorf("the status says %s: %s, %v", object.Status.Reason, object.Status.Message, err)
		}
	})
}

// The command prints no log. An error that ends after a try or two is not worth a word.
func TestStepThatFailsAgainIsShown(t *testing.T) {
	for _, command := range []bool{true, false} {
		r := newTestRunner(t, nil)
		r.current, r.Command = deletedAlive(false), command
		r.current.Status.Phase = alive.Preparing
		events := record.NewFakeRecorder(10)
		r.Recorder = events
		var shown []Progress
		r.Follow = func(p Progress) { shown = append(shown, p) }
		s := newSession(r, nil, r.current, time.Time{})
		fail := func(times int) {
			for range times {
				s.backOff(context.Background(), errors.New("quota of ConfigMaps"))
			}
		}
		fail(failing - 1)
		s.backOff(context.Background(), nil)
		fail(failing - 1)
		if len(shown)+len(events.Events) != 0 {
			t.Errorf("command %t: %+v", command, shown)
		}
		fail(2)
		if len(events.Events) != 1 || !strings.Contains(<-events.Events, "quota of ConfigMaps") {
			t.Errorf("command %t: no event, or more than one", command)
		}
		if !command {
			if len(shown) != 0 {
				t.Errorf("alive-controller has a log, and its metrics show %+v", shown)
			}
			continue
		}
		if len(shown) != 2 || shown[0].Phase != teardown.Preparing || !shown[0].Leading ||
			!strings.Contains(shown[0].Message, "quota of ConfigMaps") {
			t.Errorf("%+v", shown)
		}
	}
}

// A webhook refuses the Lease: nobody leads, and the command waits without a session that could say so.
func TestRefusedLeaseIsShown(t *testing.T) {
	r := newTestRunner(t, nil)
	r.current, r.Command = deletedAlive(false), true
	client, is := r.Objects.(*fake.Clientset)
	if !is {
		t.Fatal("no fake client")
	}
	var refusal error
	for _, verb := range []string{"create", "update"} {
		client.PrependReactor(verb, "leases", func(clienttesting.Action) (bool, runtime.Object, error) {
			return true, nil, refusal
		})
	}
	var shown []Progress
	r.Follow = func(p Progress) { shown = append(shown, p) }
	leases := r.newRenewals(client).CoordinationV1().Leases(Namespace)
	write := func(err error) {
		refusal = err
		if len(shown)%2 == 0 {
			_, _ = leases.Create(t.Context(), lease(1), metav1.CreateOptions{})
		} else {
			_, _ = leases.Update(t.Context(), lease(1), metav1.UpdateOptions{})
		}
	}
	denied := errors.New("webhook leases.example.com")
	for _, err := range []error{denied, denied, nil, denied, denied} {
		write(err)
	}
	for range failing {
		write(apierrors.NewConflict(v1.Resource("leases"), LeaseName, errors.New("another runner")))
	}
	if len(shown) != 0 {
		t.Fatalf("%+v", shown)
	}
	for range failing + 1 {
		write(denied)
	}
	if len(shown) != 2 || shown[0].Phase == teardown.NoPhase || !strings.Contains(shown[1].Message, "leases.example.com") {
		t.Errorf("%+v", shown)
	}
}

// Nobody leads, so that nobody writes that the permission has ended.
func TestExpiredPermissionEndsTheWaitForTheLease(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newTestRunner(t, nil)
		armed := deletedAlive(false)
		armed.DeletionTimestamp, armed.Spec.ConfirmedAt = nil, new(metav1.Now())
		armed.Spec.Timeout = &metav1.Duration{Duration: time.Minute}
		r.current, r.synced = armed, true
		if !r.permits(armed) {
			t.Fatal("nothing is permitted")
		}
		ctx, stop := context.WithCancelCause(t.Context())
		defer stop(nil)
		go r.accompany(ctx, stop, armed, new(atomic.Bool))
		began := time.Now()
		select {
		case <-ctx.Done():
		case <-time.After(time.Hour):
		}
		if took := time.Since(began); !errors.Is(context.Cause(ctx), errNotPermitted) || took > 2*time.Minute {
			t.Errorf("after %s: %v", took, context.Cause(ctx))
		}
	})
}

// The runner of before was killed after the deletion of Alive, and a webhook refuses the Lease since.
func TestExpiredTeardownWithoutLeaderEndsTheCommand(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, object := newTestRunner(t, nil), deletedAlive(true)
		object.Spec.ConfirmedAt, object.Spec.Timeout = new(metav1.Now()), &metav1.Duration{Duration: time.Minute}
		r.current, r.synced, r.Command, r.Waits = object, true, true, DefaultWaits()
		ctx, stop := context.WithCancelCause(t.Context())
		defer stop(nil)
		go r.accompany(ctx, stop, object, new(atomic.Bool))
		<-time.After(5 * time.Minute)
		if ctx.Err() != nil {
			t.Errorf("a leader that is slow: %v", context.Cause(ctx))
		}
		<-time.After(time.Hour)
		if !errors.Is(context.Cause(ctx), ErrUnsaid) {
			t.Errorf("%v", context.Cause(ctx))
		}
	})
}

type answered struct{}

func (answered) RoundTrip(*http.Request) (*http.Response, error) {
	return &http.Response{Header: http.Header{"Date": {time.Now().UTC().Format(http.TimeFormat)}}, Body: http.NoBody}, nil
}

// #52 Answers of the API server have whole seconds. Nothing is deleted after the end of the permission.
func TestPermissionEndsByTheLatestTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, object := newTestRunner(t, nil), deletedAlive(true)
		object.Spec.ConfirmedAt, object.Spec.Timeout = new(metav1.Now()), &metav1.Duration{Duration: time.Minute}
		<-time.After(900 * time.Millisecond)
		response, err := r.Clock.Wrap(answered{}).RoundTrip(nil)
		if err != nil {
			t.Fatal(err)
		}
		_ = response.Body.Close()
		if !r.permits(object) {
			t.Error("the permission has ended at once")
		}
		<-time.After(time.Until(object.Deadline()))
		if r.permits(object) {
			t.Error("the permission lasts longer")
		}
	})
}
