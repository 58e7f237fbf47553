package window

import (
	"net/http"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

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
