package window

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/exeunt-io/exeunt/pkg/graceful/deadline"
	"github.com/exeunt-io/exeunt/pkg/why/cluster"
)

// run deletes the object with the grace period, nil for none. The clock of this machine is an hour ahead.
func (s *apiServer) run(seconds *int64) (string, error) {
	s.t.Helper()
	ahead := func() time.Time { return at(10).Add(time.Hour) }
	reader, err := cluster.NewReaderWithClock(&rest.Config{Host: "http://api", Transport: transport(s.roundTrip)}, ahead)
	if err != nil {
		s.t.Fatal(err)
	}
	result, err := NewDeleter(reader, seconds).Delete(s.t.Context(), machine)
	return result.String(), err
}

func seconds(n int64) *int64 { return &n }

// #60, #61: the object, what is asked for, and what the object has afterwards.
func TestDeadlineIsWrittenByServersClock(t *testing.T) {
	const name = `machine.example.com "a" `
	for row, tc := range map[string]struct {
		deleted    time.Time
		annotation string
		seconds    *int64
		want       string
		sentence   string
		requests   string
	}{
		"#60 grace": {time.Time{}, "", seconds(30), window(10, 40).String(),
			"deleted, its deadline is 2026-01-02T03:04:40Z", "GET PATCH DELETE GET PATCH"},
		"#60 force":        {time.Time{}, "", seconds(0), window(10, 10).String(), "deleted, by force", "GET PATCH DELETE GET"},
		"#60 no grace":     {time.Time{}, "", nil, "", "deleted, without a grace period", "GET DELETE GET"},
		"#63 leftover":     {time.Time{}, window(0, 30).String(), nil, "", "deleted, without a grace period", "GET PATCH DELETE GET"},
		"#61 force":        {at(1), window(0, 59).String(), seconds(0), window(0, 0).String(), "deleted, by force", "GET DELETE GET PATCH"},
		"#61 plain, force": {at(1), "", seconds(0), window(1, 1).String(), "deleted, by force", "GET DELETE GET PATCH"},
		"#61 earlier": {at(1), window(0, 59).String(), seconds(20), window(0, 30).String(),
			"deleted, its deadline is 2026-01-02T03:04:30Z", "GET DELETE GET PATCH"},
		"#61 no grace": {at(1), window(0, 59).String(), nil, window(0, 59).String(),
			"is already being deleted, its deadline is 2026-01-02T03:04:59Z", "GET"},
	} {
		t.Run(row, func(t *testing.T) {
			s := newAPIServer(t, object(tc.deleted, tc.annotation))
			got, err := s.run(tc.seconds)
			if err != nil || got != name+tc.sentence || s.annotation() != tc.want ||
				strings.Join(s.requests, " ") != tc.requests {
				t.Errorf("%q, %v\nrequests %v, annotation %q, want %q", got, err, s.requests, s.annotation(), tc.want)
			}
		})
	}
}

func TestRefusalNamesDeadlineThatStays(t *testing.T) {
	foreign, ahead := object(at(40), ""), object(at(90), window(90, 150).String())
	*foreign.DeletionGracePeriodSeconds = 30
	for row, tc := range map[string]struct {
		object  *metav1.ObjectMeta
		seconds *int64
		want    string
	}{
		"#61 later": {object(at(1), window(0, 30).String()), seconds(30),
			`the deadline of machine.example.com "a" stays 2026-01-02T03:04:30Z: a deadline can only move earlier`},
		"#61 plain": {object(at(1), ""), seconds(30),
			`machine.example.com "a" is already being deleted without a grace period, which only --force changes`},
		"#61 forced": {object(at(1), window(1, 1).String()), seconds(30),
			`machine.example.com "a" is already being deleted by force, which no grace period changes`},
		"#17 in the field": {foreign, seconds(5),
			`the deadline of machine.example.com "a" stays 2026-01-02T03:04:40Z: no annotation exeunt.io/deletion-window holds it for an API server of upstream, where a DELETE would end the grace period at once`},
		"#57 a clock ahead": {ahead, seconds(5),
			`the deadline of machine.example.com "a" stays 2026-01-02T03:06:30Z: no annotation exeunt.io/deletion-window holds it`},
		"no object": {nil, seconds(30), `there is no machine.example.com "a" in namespace lab`},
	} {
		t.Run(row, func(t *testing.T) {
			s := newAPIServer(t, tc.object)
			if _, err := s.run(tc.seconds); err == nil || !strings.HasPrefix(err.Error(), tc.want) ||
				strings.Join(s.requests, " ") != "GET" {
				t.Errorf("error %v, requests %v, want %s", err, s.requests, tc.want)
			}
		})
	}
}

// #62: nothing is deleted.
func TestRefusedWriteDeletesNothing(t *testing.T) {
	forbidden := &metav1.Status{Status: metav1.StatusFailure, Reason: metav1.StatusReasonForbidden, Code: 403,
		Message: "no right"}
	tooLong := &metav1.Status{Status: metav1.StatusFailure, Reason: metav1.StatusReasonInvalid, Code: 422,
		Message: "metadata.annotations: Too long", Details: &metav1.StatusDetails{Causes: []metav1.StatusCause{{}}}}
	for name, tc := range map[string]struct {
		method string
		status *metav1.Status
		want   string
	}{
		"no right to patch": {http.MethodPatch, forbidden, `write the annotation exeunt.io/deletion-window of machine.example.com "a", which holds the deadline: no right; nothing was deleted`},
		"no room":           {http.MethodPatch, tooLong, "metadata.annotations: Too long; nothing was deleted"},
		"no right to delete, or a policy denies": {http.MethodDelete, forbidden,
			`delete machine.example.com "a": no right; nothing was deleted`},
	} {
		t.Run(name, func(t *testing.T) {
			s := newAPIServer(t, object(time.Time{}, ""))
			s.answer = func(request *http.Request) *metav1.Status {
				if request.Method == tc.method {
					return tc.status
				}
				return nil
			}
			if _, err := s.run(seconds(30)); err == nil || !strings.HasSuffix(err.Error(), tc.want) {
				t.Errorf("error %v, want %s", err, tc.want)
			}
			if s.object.GetDeletionTimestamp() != nil || s.annotation() != "" {
				t.Errorf("the object is %v", s.object)
			}
		})
	}
}

func TestDeadlineStaysIfDeleteIsRefused(t *testing.T) {
	s := newAPIServer(t, object(at(1), window(0, 59).String()))
	s.answer = func(request *http.Request) *metav1.Status {
		if request.Method != http.MethodDelete {
			return nil
		}
		return &metav1.Status{Status: metav1.StatusFailure, Reason: metav1.StatusReasonForbidden, Code: 403}
	}
	if _, err := s.run(seconds(0)); err == nil || !strings.HasSuffix(err.Error(), "; nothing was changed") ||
		s.annotation() != window(0, 59).String() {
		t.Errorf("error %v, annotation %q", err, s.annotation())
	}
}

func TestObjectThatChangesIsReadAgain(t *testing.T) {
	changed := object(time.Time{}, "")
	changed.ResourceVersion = "8"
	replaced := object(time.Time{}, "")
	replaced.UID, replaced.ResourceVersion = "other", "9"
	bare, deleted := object(time.Time{}, ""), object(at(5), "")
	bare.Finalizers, deleted.ResourceVersion = nil, "8"
	for name, tc := range map[string]struct {
		first, then *metav1.ObjectMeta // then replaces it before the second request
		want, err   string
		requests    string
	}{
		"changed":  {object(time.Time{}, ""), changed, "deleted, its deadline is", "", "GET PATCH GET PATCH DELETE GET PATCH"},
		"replaced": {object(time.Time{}, ""), replaced, "", `another object has the name of machine.example.com "a" now; nothing was deleted`, "GET PATCH GET"},
		"deleted by others": {object(time.Time{}, ""), deleted, "",
			"is already being deleted without a grace period, which only --force changes", "GET PATCH GET"},
		"the first finalizer comes": {bare, changed, "deleted, its deadline is", "", "GET DELETE GET PATCH DELETE GET PATCH"},
		"gone":                      {object(time.Time{}, ""), nil, "deleted", "", "GET PATCH GET"},
	} {
		t.Run(name, func(t *testing.T) {
			s := newAPIServer(t, tc.first)
			s.before = func(number int) {
				switch {
				case number == 1 && tc.then != nil:
					s.put(tc.then)
				case number == 1:
					s.object = nil
				}
			}
			got, err := s.run(seconds(30))
			if (err == nil) != (tc.err == "") || err != nil && !strings.HasSuffix(err.Error(), tc.err) ||
				!strings.Contains(got, tc.want) || strings.Join(s.requests, " ") != tc.requests {
				t.Errorf("%q, error %v, requests %v", got, err, s.requests)
			}
			if name == "replaced" && s.object.GetDeletionTimestamp() != nil {
				t.Error("the other object is deleted")
			}
		})
	}
}

func TestObjectThatAlwaysChangesIsGivenUp(t *testing.T) {
	s := newAPIServer(t, object(time.Time{}, ""))
	s.before = func(number int) {
		changed := object(time.Time{}, "")
		changed.ResourceVersion = fmt.Sprint(100 + number)
		s.put(changed)
	}
	if _, err := s.run(seconds(30)); err == nil || !strings.HasSuffix(err.Error(),
		"nothing was deleted; given up after 10 writes: others change it all the time, or a webhook refuses") || len(s.requests) != 21 {
		t.Errorf("error %v, requests %v", err, s.requests)
	}
}

func TestObjectWithoutFinalizersIsGoneAtOnce(t *testing.T) {
	bare := object(time.Time{}, "")
	bare.Finalizers = nil
	s := newAPIServer(t, bare)
	got, err := s.run(seconds(30))
	if want := `machine.example.com "a" deleted at once: it had no finalizer, so no controller waits for a deadline`; err != nil || got != want || strings.Join(s.requests, " ") != "GET DELETE GET" {
		t.Errorf("%q, error %v, requests %v", got, err, s.requests)
	}
}

// #17: any DELETE removes an object whose last finalizer went at an API server of upstream.
func TestObjectThatLostItsFinalizersInGraceIsRemoved(t *testing.T) {
	stuck := object(at(40), "")
	*stuck.DeletionGracePeriodSeconds, stuck.Finalizers = 30, nil
	for _, grace := range []*int64{nil, seconds(5)} {
		s := newAPIServer(t, stuck)
		if got, err := s.run(grace); err != nil || s.object != nil || got != `machine.example.com "a" deleted` {
			t.Errorf("%q, error %v, requests %v", got, err, s.requests)
		}
	}
}

// At our API server the deletion timestamp is the deadline, and the API server writes the annotation.
func TestOurServerDecidesItself(t *testing.T) {
	const name = `machine.example.com "a" deleted, `
	for row, tc := range map[string]struct {
		seconds        int64
		want, err      string
		requests       string
		deletionWindow deadline.Window
	}{
		"earlier": {20, name + "its deadline is 2026-01-02T03:04:30Z", "", "GET DELETE GET", window(10, 30)},
		"force":   {0, name + "by force", "", "GET DELETE GET", window(10, 10)},
		"later": {60, "", `the deadline of machine.example.com "a" stays 2026-01-02T03:04:50Z: a deadline can only move earlier`,
			"GET", window(5, 50)},
	} {
		t.Run(row, func(t *testing.T) {
			s := newAPIServer(t, object(at(5), window(5, 50).String()))
			s.ours = true
			got, err := s.run(&tc.seconds)
			if err == nil && got != tc.want || err != nil && err.Error() != tc.err || (err == nil) != (tc.err == "") ||
				strings.Join(s.requests, " ") != tc.requests || s.annotation() != tc.deletionWindow.String() {
				t.Errorf("%q, error %v, requests %v, annotation %q", got, err, s.requests, s.annotation())
			}
		})
	}
}

func TestServerWithoutClockDeletesNothing(t *testing.T) {
	s := newAPIServer(t, object(time.Time{}, ""))
	s.noDate = true
	if _, err := s.run(seconds(30)); err == nil || !strings.HasSuffix(err.Error(), "; nothing was deleted") ||
		strings.Join(s.requests, " ") != "GET" {
		t.Errorf("error %v, requests %v", err, s.requests)
	}
}
