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
			want := "GET PATCH DELETE GET PATCH"
			if ours {
				want = "GET PATCH DELETE GET"
			}
			if deadline.Of(s.object).Kind() != deadline.Graceful || err != nil ||
				got != `machine.example.com "a" deleted, its deadline is 2026-01-02T03:04:40Z` ||
				strings.Join(s.requests, " ") != want {
				t.Errorf("%q, %v, %v", got, err, s.requests)
			}
		})
	}
}

// The longest grace period is one at both API servers: nothing moves once the DELETE is answered by ours.
func TestLongestGracePeriodIsInForce(t *testing.T) {
	for want, ours := range map[string]bool{"GET PATCH DELETE GET PATCH": false, "GET PATCH DELETE GET": true} {
		for _, grace := range []int64{MaxSeconds, MaxSeconds + 1, deadline.MaxSeconds, 1 << 62} {
			s := newAPIServer(t, object(time.Time{}, ""))
			s.ours = ours
			got, err := s.run(&grace)
			if read := deadline.Of(s.object); err != nil || strings.Join(s.requests, " ") != want ||
				!read.Deadline(0).Equal(at(10).Add(MaxSeconds*time.Second)) {
				t.Errorf("%d s, ours %t: %q, %v, requests %v, deadline %v", grace, ours, got, err, s.requests, read.Deadline(0))
			}
		}
	}
}

// route lets our API server answer the requests that are "o", and upstream's the others.
func (s *apiServer) route(servers string) {
	s.before = func(number int) { s.ours = number < len(servers) && servers[number] == 'o' }
}

// Each request reaches ours or upstream's API server.
func TestDeadlineMovesWhicheverServerAnswers(t *testing.T) {
	for name, tc := range map[string]struct {
		deleted    time.Time
		annotation string
		servers    string
		seconds    int64
		want       deadline.Window
		requests   string
	}{
		"DELETE at upstream's":              {at(5), window(5, 50).String(), "os", 20, window(5, 30), "GET DELETE GET PATCH"},
		"DELETE at upstream's, force":       {at(5), window(5, 50).String(), "os", 0, window(5, 5), "GET DELETE GET PATCH"},
		"second DELETE at ours":             {at(5), window(5, 50).String(), "osoo", 20, window(10, 30), "GET DELETE GET DELETE GET"},
		"second DELETE at ours, force":      {at(5), window(5, 50).String(), "osoo", 0, window(10, 10), "GET DELETE GET DELETE GET"},
		"PATCH at ours":                     {at(5), window(5, 50).String(), "sssoo", 20, window(10, 30), "GET DELETE GET PATCH DELETE GET"},
		"PATCH at ours, plain, force":       {at(5), "", "sssoo", 0, window(5, 5), "GET DELETE GET PATCH DELETE GET"},
		"PATCH at ours, DELETE at another":  {at(5), window(5, 50).String(), "ssso", 20, window(5, 30), "GET DELETE GET PATCH DELETE GET PATCH"},
		"live, DELETE at upstream's":        {time.Time{}, "", "ossoo", 30, window(10, 40), "GET PATCH DELETE GET DELETE GET"},
		"live, DELETE at ours":              {time.Time{}, "", "sso", 30, window(10, 40), "GET PATCH DELETE GET"},
		"live, force, DELETE at upstream's": {time.Time{}, "", "oo", 0, window(10, 10), "GET PATCH DELETE GET"},
	} {
		t.Run(name, func(t *testing.T) {
			s := newAPIServer(t, object(tc.deleted, tc.annotation))
			s.route(tc.servers)
			got, err := s.run(&tc.seconds)
			if err != nil || s.annotation() != tc.want.String() || strings.Join(s.requests, " ") != tc.requests {
				t.Errorf("%q, %v, annotation %q, want %q, %v", got, err, s.annotation(), tc.want, s.requests)
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

// Another client removes the annotation after the DELETE.
func TestAnnotationThatAnotherClientRemovedIsWrittenAgain(t *testing.T) {
	for grace, want := range map[int64]deadline.Window{0: window(10, 10), 30: window(10, 40)} {
		s := newAPIServer(t, object(time.Time{}, ""))
		s.before = s.disturb(3, nil)
		if got, err := s.run(&grace); err != nil || s.annotation() != want.String() ||
			strings.Join(s.requests, " ") != "GET PATCH DELETE GET PATCH" {
			t.Errorf("%q, %v, annotation %q, requests %v", got, err, s.annotation(), s.requests)
		}
	}
}

// Our API server stores no annotation of a plain deletion.
func TestGraceThatIsNotInForceIsAnError(t *testing.T) {
	s := newAPIServer(t, object(time.Time{}, ""))
	removed := s.disturb(3, nil)
	s.before = func(number int) {
		removed(number)
		s.ours = number > 3
	}
	if _, err := s.run(seconds(30)); err == nil || !strings.HasSuffix(err.Error(), "was deleted, but its grace period is "+
		"not in force: the API server accepted the annotation exeunt.io/deletion-window and did not store it") ||
		strings.Join(s.requests, " ") != "GET PATCH DELETE GET PATCH" {
		t.Errorf("error %v, requests %v", err, s.requests)
	}
}

// The DELETE takes minutes, or the clock of another API server is minutes off: the annotation has no effect.
func TestAnnotationWithoutEffectIsWrittenAgain(t *testing.T) {
	s := newAPIServer(t, object(time.Time{}, ""))
	s.answer = func(request *http.Request) *metav1.Status {
		if request.Method == http.MethodDelete {
			s.now = at(10).Add(5 * time.Minute)
		}
		return nil
	}
	if got, err := s.run(seconds(30)); err != nil || s.annotation() != window(310, 340).String() {
		t.Errorf("%q, %v, annotation %q, requests %v", got, err, s.annotation(), s.requests)
	}
}

// A webhook undoes each annotation of an object that is being deleted.
func TestDeadlineThatNobodyStoresIsAnError(t *testing.T) {
	s := newAPIServer(t, object(at(5), window(5, 50).String()))
	s.patched = func() { s.object.SetAnnotations(map[string]string{deadline.Annotation: window(5, 50).String()}) }
	_, err := s.run(seconds(20))
	if err == nil || err.Error() != `machine.example.com "a" is not as requested after 10 writes: others change it all the time, `+
		"a webhook undoes the writes, or they take too long; it was deleted, its deadline is 2026-01-02T03:04:50Z" {
		t.Errorf("error %v, requests %v", err, s.requests)
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
