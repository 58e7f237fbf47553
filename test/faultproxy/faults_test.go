package faultproxy

import (
	"encoding/json"
	"net/http"
	"slices"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestRefusalHasNoEffect(t *testing.T) {
	for kind, want := range map[Kind]struct {
		method, path string
		status       int
		reason       metav1.StatusReason
		retryAfter   string
	}{
		Conflict:            {http.MethodPut, claim, 409, metav1.StatusReasonConflict, ""},
		TooManyRequests:     {http.MethodPut, claim, 429, metav1.StatusReasonTooManyRequests, "1"},
		TooManyRequestsBare: {http.MethodPost, claims, 429, metav1.StatusReasonTooManyRequests, ""},
		InternalError:       {http.MethodDelete, claim, 500, metav1.StatusReasonInternalError, ""},
		Unavailable:         {http.MethodGet, claim, 503, metav1.StatusReasonServiceUnavailable, ""},
		Timeout:             {http.MethodPatch, claim, 504, metav1.StatusReasonTimeout, ""},
		UnknownPath:         {http.MethodGet, claim, 404, metav1.StatusReasonNotFound, ""},
		DeniedNotFound:      {http.MethodPatch, claim, 404, metav1.StatusReasonNotFound, ""},
		DeniedConflict:      {http.MethodDelete, claim, 409, metav1.StatusReasonConflict, ""},
		DeniedInvalid:       {http.MethodPut, claim, 422, metav1.StatusReasonInvalid, ""},
		DeniedForbidden:     {http.MethodPost, claims, 403, metav1.StatusReasonForbidden, ""},
		DeniedGone:          {http.MethodPatch, claim, 410, metav1.StatusReasonGone, ""},
		Gone:                {http.MethodGet, claims + "?watch=true&resourceVersion=7", 410, metav1.StatusReasonExpired, ""},
		TooLargeVersion:     {http.MethodGet, claims + "?resourceVersion=7", 504, metav1.StatusReasonTimeout, "1"},
	} {
		t.Run(string(kind), func(t *testing.T) {
			w := newWorld(t, map[Kind]float64{kind: 1}, nil)
			got, err := w.do(want.method, want.path, object)
			if err != nil {
				t.Fatal(err)
			}
			var status metav1.Status
			if err := json.Unmarshal(got.body, &status); err != nil || status.Kind != "Status" || status.Reason != want.reason {
				t.Errorf("answered %q, %v", got.body, err)
			}
			if got.code != want.status || got.header.Get("Retry-After") != want.retryAfter {
				t.Errorf("answered %d, header %v", got.code, got.header)
			}
			if got := w.server.requests(); len(got) > 0 {
				t.Errorf("the API server got %q", got)
			}
			w.expectOnly(kind)
		})
	}
}

// expectOnly fails the test if there was another fault than one of this kind.
func (w *world) expectOnly(kind Kind) {
	w.t.Helper()
	if kinds := w.kinds(); !slices.Equal(kinds, []Kind{kind}) || w.proxy.Stats()[kind] != 1 {
		w.t.Errorf("faults %v, stats %v, want %s", kinds, w.proxy.Stats(), kind)
	}
}

func TestCutRequestsHaveNoEffect(t *testing.T) {
	for _, kind := range []Kind{CutBefore, Disconnect, Outage} {
		t.Run(string(kind), func(t *testing.T) {
			w := newWorld(t, map[Kind]float64{kind: 1}, nil)
			if got, err := w.do(http.MethodPost, claims, object); err == nil {
				t.Errorf("answered with %d", got.code)
			}
			if got := w.server.requests(); len(got) > 0 {
				t.Errorf("the API server got %q", got)
			}
			w.expectOnly(kind)
		})
	}
}

func TestLostAnswersFollowOneEffect(t *testing.T) {
	for kind, want := range map[Kind]int{CutAfter: 0, ErrorAfter: 500, TimeoutAfter: 504} {
		t.Run(string(kind), func(t *testing.T) {
			w := newWorld(t, map[Kind]float64{kind: 1}, nil)
			if got, err := w.do(http.MethodPost, claims, object); got.code != want || (err != nil) != (want == 0) {
				t.Errorf("got %v, %v, want status %d", got, err, want)
			}
			if got := w.server.requests(); !slices.Equal(got, []string{"POST " + claims + " " + object}) {
				t.Errorf("the API server got %q", got)
			}
			w.expectOnly(kind)
		})
	}
}

func TestRefusedWriteKeepsItsAnswer(t *testing.T) {
	rates := map[Kind]float64{CutAfter: 1, ErrorAfter: 1}
	w := newWorld(t, rates, func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusConflict) })
	got, err := w.do(http.MethodPost, claims, object)
	if err != nil || got.code != http.StatusConflict || len(w.kinds()) > 0 {
		t.Errorf("got %v, %v, faults %v", got, err, w.kinds())
	}
}
