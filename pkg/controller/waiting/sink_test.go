package waiting

import (
	"errors"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"
	testclock "k8s.io/utils/clock/testing"
)

func TestSinkRemembersTerminatingNamespaces(t *testing.T) {
	client, now := fake.NewClientset(), testclock.NewFakePassiveClock(time.Unix(0, 0))
	terminating := &apierrors.StatusError{ErrStatus: metav1.Status{Code: 403, Reason: metav1.StatusReasonForbidden,
		Details: &metav1.StatusDetails{
			Causes: []metav1.StatusCause{{Type: v1.NamespaceTerminatingCause}},
		}}}
	answers := map[string]error{"going": terminating, "broken": errors.New("no answer"), "alive": nil}
	client.PrependReactor("create", "events", func(action clienttesting.Action) (bool, runtime.Object, error) {
		return true, &v1.Event{}, answers[action.GetNamespace()]
	})
	sink := NewSink(client, now)
	for namespace, answer := range answers {
		_, err := sink.Create(&v1.Event{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "event"}})
		if !errors.Is(err, answer) {
			t.Errorf("%s: error %v, want %v", namespace, err, answer)
		}
		if want := namespace == "going"; sink.Refuses(namespace) != want {
			t.Errorf("%s refuses events: %v, want %v", namespace, !want, want)
		}
	}
	now.SetTime(time.Unix(0, 0).Add(time.Hour))
	if sink.Refuses("going") {
		t.Error("a namespace that may have been created again still refuses events")
	}
	answers["second"] = terminating
	_, _ = sink.Create(&v1.Event{ObjectMeta: metav1.ObjectMeta{Namespace: "second", Name: "event"}})
	if len(sink.refused) != 1 {
		t.Errorf("the sink remembers %v", sink.refused)
	}
}
