package instances

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// noNode begins the answer to a request without a node or UID.
const noNode = `"error":"the request names no node`

const request = `{"providerID":"p","node":"n","nodeUID":"u","addresses":["10.0.0.1"]}`

func TestHandlerAnswersAsDocumented(t *testing.T) {
	huge := strings.Repeat(" ", maxBody) + request
	for name, tc := range map[string]struct {
		provider    Provider
		method      string
		path, body  string
		status      int
		want, after string
	}{
		"state":          {always(Foreign, nil), "POST", "/v1/get", request, 200, `{"state":"Foreign"}`, ""},
		"unknown fields": {always(Off, nil), "POST", "/v1/stop", `{"new":1,` + request[1:], 200, `{"state":"Off"}`, ""},
		"unsupported": {always("", &Error{Message: "no", Unsupported: true}), "POST", "/v1/delete", request, 501,
			`{"error":"no","unsupported":true}`, ""},
		"throttled": {always("", &Error{Message: "no", RetryAfter: 4_100_000_000}), "POST", "/v1/stop", request, 429,
			`{"error":"no","retryAfterSeconds":5}`, "5"},
		"no such call":       {always(Off, nil), "POST", "/v1/start", request, 404, "", ""},
		"reading":            {always(Off, nil), "GET", "/v1/stop", request, 405, "", ""},
		"no JSON":            {always(Off, nil), "POST", "/v1/stop", "stop", 400, `the request is no instance`, ""},
		"no node":            {always(Off, nil), "POST", "/v1/stop", `{"nodeUID":"u"}`, 400, noNode, ""},
		"no UID":             {always(Off, nil), "POST", "/v1/stop", `{"node":"n"}`, 400, noNode, ""},
		"huge request":       {always(Off, nil), "POST", "/v1/stop", huge, 400, `"error"`, ""},
		"provider's nothing": {always("", nil), "POST", "/v1/get", request, 500, `unknown state`, ""},
	} {
		t.Run(name, func(t *testing.T) {
			recorder := httptest.NewRecorder()
			Handler(tc.provider).ServeHTTP(recorder, httptest.NewRequest(tc.method, tc.path, strings.NewReader(tc.body)))
			if recorder.Code != tc.status || !strings.Contains(recorder.Body.String(), tc.want) ||
				recorder.Header().Get("Retry-After") != tc.after {
				t.Errorf("answer %d %s, Retry-After %q; want %d %s, %q", recorder.Code, recorder.Body,
					recorder.Header().Get("Retry-After"), tc.status, tc.want, tc.after)
			}
			if tc.status == http.StatusOK && recorder.Header().Get("Content-Type") != "application/json" {
				t.Errorf("the answer is %s", recorder.Header().Get("Content-Type"))
			}
		})
	}
}
