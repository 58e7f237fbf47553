package window

import (
	"net/http"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/exeunt-io/exeunt/pkg/graceful/deadline"
)

// Any API server may get a request: ours, ours with the gate off, or that of upstream beside it.
func TestGraceIsInForceWhicheverServerDeletes(t *testing.T) {
	for name, ours := range map[string]bool{"upstream, or the gate is off": false, "ours": true} {
		t.Run(name, func(t *testing.T) {
			s := newAPIServer(t, object(time.Time{}, ""))
			s.ours = ours
			got, err := s.run(seconds(30))
			if deadline.Of(s.object).Kind() != deadline.Graceful || err != nil ||
				got != `machine.example.com "a" deleted, its deadline is 2026-01-02T03:04:40Z` ||
				strings.Join(s.requests, " ") != "GET PATCH DELETE GET" {
				t.Errorf("%q, %v, %v", got, err, s.requests)
			}
		})
	}
}

// inField returns an object in its grace period as our API server serves it.
func inField() *metav1.ObjectMeta {
	served := object(at(50), window(5, 50).String())
	*served.DeletionGracePeriodSeconds = 45
	return served
}

// The object was read at our API server, and another one gets the DELETE.
func TestDeadlineMovesIfUpstreamsServerDeletes(t *testing.T) {
	for name, tc := range map[string]struct {
		seconds int64
		want    deadline.Window
	}{"earlier": {20, window(5, 30)}, "force": {0, window(5, 5)}} {
		t.Run(name, func(t *testing.T) {
			s := newAPIServer(t, inField())
			s.before = func(number int) {
				if number == 1 {
					s.put(object(at(5), window(5, 50).String())) // as upstream's API server serves it
				}
			}
			got, err := s.run(&tc.seconds)
			if err != nil || s.annotation() != tc.want.String() || strings.Join(s.requests, " ") != "GET DELETE GET PATCH" {
				t.Errorf("%q, %v, annotation %q, %v", got, err, s.annotation(), s.requests)
			}
		})
	}
}

// The object is gone after the DELETE, and another one of the name is in its grace period.
func TestDeadlineOfSuccessorStays(t *testing.T) {
	s := newAPIServer(t, object(time.Time{}, ""))
	s.before = func(number int) {
		if number == 3 { // the GET after the DELETE
			other := object(at(11), window(11, 59).String())
			other.UID, other.ResourceVersion = "another", "77"
			s.put(other)
		}
	}
	got, err := s.run(seconds(30))
	if want := window(11, 59).String(); err != nil || s.annotation() != want || got != `machine.example.com "a" deleted` {
		t.Errorf("%q, %v, requests %v, annotation %q, want %q", got, err, s.requests, s.annotation(), want)
	}
}

func TestGraceThatIsNotInForceIsAnError(t *testing.T) {
	s := newAPIServer(t, object(time.Time{}, ""))
	s.before = s.disturb(3, nil) // after the DELETE
	if _, err := s.run(seconds(30)); err == nil || !strings.Contains(err.Error(),
		"was deleted, but its grace period is not in force") || strings.Join(s.requests, " ") != "GET PATCH DELETE GET" {
		t.Errorf("error %v, requests %v", err, s.requests)
	}
}

// Force can be written again.
func TestForceThatAnotherClientRemovedIsWrittenAgain(t *testing.T) {
	s := newAPIServer(t, object(time.Time{}, ""))
	s.before = s.disturb(3, nil)
	if got, err := s.run(seconds(0)); err != nil || !deadline.Of(s.object).Forced() ||
		strings.Join(s.requests, " ") != "GET PATCH DELETE GET PATCH" {
		t.Errorf("%q, %v, requests %v", got, err, s.requests)
	}
}

// An API server whose clock is minutes off deletes the object: the annotation has no effect.
func TestAnnotationWithoutEffectIsNoGrace(t *testing.T) {
	s := newAPIServer(t, object(time.Time{}, ""))
	s.answer = func(request *http.Request) *metav1.Status {
		if request.Method == http.MethodDelete {
			s.now = at(10).Add(5 * time.Minute)
		}
		return nil
	}
	if got, err := s.run(seconds(30)); err == nil || !strings.Contains(err.Error(), "is not in force") {
		t.Errorf("%q, %v, requests %v", got, err, s.requests)
	}
}

func TestAcceptedDeleteOfLivingObjectIsAnError(t *testing.T) {
	s := newAPIServer(t, object(time.Time{}, ""))
	s.before = func(number int) {
		if number == 3 {
			s.put(object(time.Time{}, ""))
		}
	}
	if got, err := s.run(seconds(30)); err == nil ||
		!strings.HasSuffix(err.Error(), "is not being deleted, although the API server accepted the request") {
		t.Errorf("%q, %v, requests %v", got, err, s.requests)
	}
}
