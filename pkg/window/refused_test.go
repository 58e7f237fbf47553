package window

import (
	"net/http"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/exeunt-io/exeunt/pkg/graceful/deadline"
)

// A webhook undoes the change: a DELETE would be one without the deadline.
func TestUndoneAnnotationDeletesNothing(t *testing.T) {
	s := newAPIServer(t, object(time.Time{}, ""))
	s.answer = func(request *http.Request) *metav1.Status {
		if request.Method == http.MethodPatch {
			s.patched = func() { s.object.SetAnnotations(nil) }
		}
		return nil
	}
	_, err := s.run(seconds(30))
	if err == nil || !strings.HasSuffix(err.Error(), "; nothing was deleted") ||
		strings.Join(s.requests, " ") != "GET PATCH" || s.object.GetDeletionTimestamp() != nil {
		t.Errorf("error %v, requests %v", err, s.requests)
	}
}

// The annotation of a DELETE that was not executed would be in force for any other deletion within a minute.
func TestAnnotationIsTakenBackIfDeleteFails(t *testing.T) {
	denied := &metav1.Status{Status: metav1.StatusFailure, Reason: metav1.StatusReasonForbidden, Code: 403, Message: "no right"}
	webhook := &metav1.Status{Status: metav1.StatusFailure, Reason: metav1.StatusReasonInternalError, Code: 500,
		Message: "failed calling webhook"}
	for name, tc := range map[string]struct {
		method  string
		status  *metav1.Status
		seconds int64
		kept    bool
	}{
		"refused, and a controller wrote the object": {http.MethodDelete, denied, 30, false},
		"force, refused":                               {http.MethodDelete, denied, 0, false},
		"force, outcome unknown":                       {http.MethodDelete, webhook, 0, false},
		"force, outcome of the write unknown":          {http.MethodPatch, webhook, 0, false},
		"grace, outcome unknown: it may be in force":   {http.MethodDelete, webhook, 30, true},
		"grace, outcome of the write unknown, no harm": {http.MethodPatch, webhook, 30, true},
	} {
		t.Run(name, func(t *testing.T) {
			s := newAPIServer(t, object(time.Time{}, ""))
			failed := false
			s.answer = func(request *http.Request) *metav1.Status {
				if request.Method != tc.method || failed {
					return nil
				}
				failed = true
				if tc.method == http.MethodPatch {
					s.object.SetAnnotations(map[string]string{deadline.Annotation: window(10, 10+int(tc.seconds)).String()})
				}
				s.object.SetResourceVersion("77")
				return tc.status
			}
			_, err := s.run(&tc.seconds)
			if err == nil || !failed || (s.annotation() != "") != tc.kept {
				t.Errorf("error %v, annotation %q, requests %v", err, s.annotation(), s.requests)
			}
		})
	}
}

// A webhook refuses everything but the annotation, with the code of an object that is gone or has changed.
func TestAnnotationThatStaysIsNamed(t *testing.T) {
	for reason, code := range map[metav1.StatusReason]int32{metav1.StatusReasonNotFound: 404, metav1.StatusReasonConflict: 409} {
		t.Run(string(reason), func(t *testing.T) {
			s := newAPIServer(t, object(time.Time{}, ""))
			annotated := false
			s.patched = func() { annotated = true }
			s.answer = func(request *http.Request) *metav1.Status {
				switch {
				case request.Method == http.MethodGet || !annotated:
					return nil
				case request.Method == http.MethodDelete:
					return &metav1.Status{Status: metav1.StatusFailure, Reason: metav1.StatusReasonForbidden, Code: 403}
				}
				return &metav1.Status{Status: metav1.StatusFailure, Reason: reason, Code: code,
					Details: &metav1.StatusDetails{Name: "a", Kind: "machines"}}
			}
			_, err := s.run(seconds(30))
			if err == nil || s.annotation() == "" || !strings.HasSuffix(err.Error(),
				"the annotation exeunt.io/deletion-window may be there, and has no effect after a minute") {
				t.Errorf("error %v, annotation %q, requests %v", err, s.annotation(), s.requests)
			}
		})
	}
}

// Another client writes its annotation between that of the request and the DELETE: the earlier deadline holds.
func TestEarlierOfTwoRequestsHolds(t *testing.T) {
	for name, tc := range map[string]struct {
		seconds int64
		want    deadline.Window
	}{
		"grace": {30, window(10, 40)},
		"force": {0, window(10, 10)},
	} {
		t.Run(name, func(t *testing.T) {
			s := newAPIServer(t, object(time.Time{}, ""))
			s.before = func(number int) {
				if number == 2 { // the DELETE
					s.object.SetAnnotations(map[string]string{deadline.Annotation: window(10, 59).String()})
				}
			}
			got, err := s.run(&tc.seconds)
			if err != nil || s.annotation() != tc.want.String() {
				t.Errorf("%q, %v, annotation %q, want %q, requests %v", got, err, s.annotation(), tc.want, s.requests)
			}
		})
	}
}

// disturb returns a function that another client runs before the request with the number.
func (s *apiServer) disturb(request int, annotations map[string]string) func(int) {
	return func(number int) {
		if number == request {
			s.object.SetAnnotations(annotations)
			s.object.SetResourceVersion(s.object.GetResourceVersion() + "1")
		}
	}
}

// The PATCH wakes the controller of the object, which writes the annotations that it knows before the DELETE arrives.
func TestAnnotationThatIsRemovedBeforeDeleteDeletesNothing(t *testing.T) {
	s := newAPIServer(t, object(time.Time{}, ""))
	s.before = s.disturb(2, nil)
	got, err := s.run(seconds(30))
	if err != nil || deadline.Of(s.object).Kind() != deadline.Graceful ||
		strings.Join(s.requests, " ") != "GET PATCH DELETE GET PATCH DELETE GET PATCH" {
		t.Errorf("deleted without a grace period for good: %q, %v, %v", got, err, s.requests)
	}
}

// A controller changes the object in answer to each annotation: another annotation would wake it again.
func TestAnnotationIsWrittenOnce(t *testing.T) {
	s := newAPIServer(t, object(time.Time{}, ""))
	s.before = s.disturb(2, map[string]string{deadline.Annotation: window(10, 100).String(), "example.com/seen": "yes"})
	got, err := s.run(seconds(30))
	if err != nil || s.annotation() != window(10, 40).String() ||
		strings.Join(s.requests, " ") != "GET PATCH DELETE GET DELETE GET PATCH" {
		t.Errorf("%q, %v, annotation %q, requests %v", got, err, s.annotation(), s.requests)
	}
}

// An annotation that is about to have no effect is written again.
func TestOldAnnotationIsWrittenAgain(t *testing.T) {
	s := newAPIServer(t, object(time.Time{}, ""))
	seen := s.disturb(2, map[string]string{deadline.Annotation: window(10, 100).String(), "example.com/seen": "yes"})
	s.before = func(number int) {
		seen(number)
		if number == 2 { // the answer to the DELETE is late
			s.now = at(40)
		}
	}
	got, err := s.run(seconds(30))
	if err != nil || s.annotation() != window(40, 70).String() ||
		strings.Join(s.requests, " ") != "GET PATCH DELETE GET PATCH DELETE GET PATCH" {
		t.Errorf("%q, %v, annotation %q, requests %v", got, err, s.annotation(), s.requests)
	}
}

// A slow DELETE uses up nothing of the grace period, whether it fails on the version first or not. Nor does a slow PATCH.
func TestSlowRequestsGiveTheWholeGracePeriod(t *testing.T) {
	for name, slow := range map[string]int{"PATCH": 1, "DELETE": 2} {
		for late := range 5 {
			for _, conflict := range []bool{false, true} {
				s := newAPIServer(t, object(time.Time{}, ""))
				s.before = func(number int) {
					if number == slow {
						s.now = at(10 + 20*late)
					}
					if number == 2 && conflict {
						s.object.SetResourceVersion("77")
					}
				}
				got, err := s.run(seconds(10))
				read := deadline.Of(s.object)
				if err != nil || read.Kind() != deadline.Graceful ||
					!read.Deadline(0).Equal(read.Requested().Add(10*time.Second)) {
					t.Errorf("%s is %d s late, conflict %t: %q, %v: deleted at %v, deadline %v, requests %v", name, 20*late, conflict,
						got, err, read.Requested(), read.Deadline(0), s.requests)
				}
			}
		}
	}
}

// Another client has written the annotation of force, and its DELETE is going to be refused by a policy: it takes its
// annotation back. Nobody who may force has forced.
func TestRefusedForceOfAnotherClientShortensNothing(t *testing.T) {
	s := newAPIServer(t, object(time.Time{}, ""))
	s.before = s.disturb(2, map[string]string{deadline.Annotation: window(10, 10).String()})
	got, err := s.run(seconds(30))
	if err != nil || deadline.Of(s.object).Kind() != deadline.Graceful {
		t.Errorf("asked for 30 s: %q, %v, annotation %q, %v", got, err, s.annotation(), s.requests)
	}
}

// A policy denies the DELETE. Meanwhile another client has written its own annotation, or has made the object anew.
func TestAnnotationOfAnotherClientIsNotTakenBack(t *testing.T) {
	for name, tc := range map[string]struct {
		uid  types.UID
		want deadline.Window
	}{"its own": {"u", window(10, 59)}, "of a new object": {"other", window(10, 100)}} {
		t.Run(name, func(t *testing.T) {
			s := newAPIServer(t, object(time.Time{}, ""))
			s.answer = func(request *http.Request) *metav1.Status {
				if request.Method != http.MethodDelete {
					return nil
				}
				other := object(time.Time{}, tc.want.String())
				other.UID = tc.uid
				s.put(other)
				return &metav1.Status{Status: metav1.StatusFailure, Reason: metav1.StatusReasonForbidden, Code: 403}
			}
			if _, err := s.run(seconds(30)); err == nil || s.annotation() != tc.want.String() {
				t.Errorf("error %v, annotation %q, requests %v", err, s.annotation(), s.requests)
			}
		})
	}
}

// Another client moves the deadline between the read and the PATCH.
func TestEarlierDeadlineOfAnotherClientStays(t *testing.T) {
	s := newAPIServer(t, object(time.Time{}, ""))
	s.before = s.disturb(4, map[string]string{deadline.Annotation: window(10, 15).String()})
	got, err := s.run(seconds(30))
	if err != nil || s.annotation() != window(10, 15).String() ||
		got != `machine.example.com "a" deleted, its deadline is 2026-01-02T03:04:15Z` {
		t.Errorf("%q, %v, annotation %q, requests %v", got, err, s.annotation(), s.requests)
	}
}

// Another client deletes the object by a clock that is minutes off: the annotation has no effect, and the deletion is
// plain for a controller that has begun to end the object.
func TestPlainDeletionOfAnotherClientStays(t *testing.T) {
	s := newAPIServer(t, object(time.Time{}, ""))
	s.before = func(number int) {
		if number == 2 {
			s.put(object(at(200), s.annotation()))
			s.object.SetResourceVersion("77")
		}
	}
	if got, err := s.run(seconds(30)); err == nil || !strings.HasSuffix(err.Error(), "which only --force changes") ||
		s.annotation() != window(10, 100).String() || strings.Join(s.requests, " ") != "GET PATCH DELETE GET PATCH GET" {
		t.Errorf("%q, %v, annotation %q, requests %v", got, err, s.annotation(), s.requests)
	}
}

// Another client deletes the object between the annotation and the DELETE, by the same deadline. The DELETE is sent all
// the same: only its answer says whether the user may force.
func TestDeadlineOfAnotherDeletionStays(t *testing.T) {
	denied := &metav1.Status{Status: metav1.StatusFailure, Reason: metav1.StatusReasonForbidden, Code: 403, Message: "no right"}
	for name, tc := range map[string]struct {
		seconds int64
		denied  bool
		want    deadline.Kind
	}{
		"grace":         {30, false, deadline.Graceful},
		"grace, denied": {30, true, deadline.Graceful}, // the other client may have asked for it
		"force":         {0, false, deadline.Forced},
		"force, denied": {0, true, deadline.Unspecified}, // nobody who may force has forced
	} {
		t.Run(name, func(t *testing.T) {
			s := newAPIServer(t, object(time.Time{}, ""))
			s.before = func(number int) {
				if number == 2 {
					s.put(object(at(11), s.annotation()))
					s.object.SetResourceVersion("77")
				}
			}
			s.answer = func(request *http.Request) *metav1.Status {
				if request.Method == http.MethodDelete && tc.denied && len(s.requests) > 3 {
					return denied
				}
				return nil
			}
			got, err := s.run(&tc.seconds)
			if kind := deadline.Of(s.object).Kind(); kind != tc.want || (err != nil) != tc.denied {
				t.Errorf("%v, want %v: %q, %v, requests %v", kind, tc.want, got, err, s.requests)
			}
		})
	}
}
