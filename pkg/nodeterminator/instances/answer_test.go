package instances

import (
	"encoding/json"
	"errors"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/exeunt-io/exeunt/internal/terminal"
)

const date = "Sun, 29 Nov 2026 00:00:00 GMT"

func TestErrorSaysWhenToRetry(t *testing.T) {
	for name, tc := range map[string]struct {
		status int
		after  string
		body   string
		want   time.Duration
	}{
		"seconds in the header":      {429, "7", "", 7 * time.Second},
		"time in the header":         {503, "Sun, 29 Nov 2026 00:00:30 GMT", "{}", 30 * time.Second},
		"time that is over":          {503, "Sun, 29 Nov 2026 00:00:00 GMT", "{}", 0},
		"seconds in the body":        {503, "", `{"error":"busy","retryAfterSeconds":9}`, 9 * time.Second},
		"parts of seconds":           {500, "", `{"error":"busy","retryAfterSeconds":0.5}`, 500 * time.Millisecond},
		"the longer of both":         {429, "3", `{"error":"busy","retryAfterSeconds":9}`, 9 * time.Second},
		"header with HTML":           {503, "4", "<html>", 4 * time.Second},
		"negative":                   {429, "-1", `{"error":"busy","retryAfterSeconds":-9}`, 0},
		"years":                      {429, "4000000000", `{"error":"busy","retryAfterSeconds":1e300}`, time.Hour},
		"more than any number":       {429, "99999999999999999999", `{"error":"busy"}`, 0},
		"text":                       {429, "soon", `{"error":"busy"}`, 0},
		"seconds of a malformed one": {503, "", `{"error":"busy","retryAfterSeconds":"9"}`, 0},
	} {
		t.Run(name, func(t *testing.T) {
			header := http.Header{"Retry-After": {tc.after}, "Date": {date}}
			_, err := parseAnswer(tc.status, header, []byte(tc.body))
			var said *Error
			if !errors.As(err, &said) || said.RetryAfter != tc.want {
				t.Errorf("the error is %+v, want %v", err, tc.want)
			}
		})
	}
}

func TestUnsupportedIsSaidInJSONOnly(t *testing.T) {
	for body, want := range map[string]bool{
		`{"error":"disks would go","unsupported":true}`:   true,
		`{"error":"disks would go","unsupported":false}`:  false,
		`{"error":"disks would go"}`:                      false,
		`{"error":"disks would go","unsupported":"true"}`: false,
		`<html>Unsupported method ('POST')</html>`:        false,
		`unsupported`: false,
	} {
		_, err := parseAnswer(http.StatusNotImplemented, http.Header{}, []byte(body))
		var said *Error
		if !errors.As(err, &said) || said.Unsupported != want {
			t.Errorf("%s: %+v, want unsupported %v", body, err, want)
		}
	}
}

// An answer is a known state that its JSON has, or a short error in one printable line.
func FuzzParseAnswer(f *testing.F) {
	for _, body := range []string{`{"state":"Running"}`, `{"state":"Off"} `, `{"state":"Gone","error":"e"}`,
		`{"STATE":"Off"}`,
		`{"error":"no\u001b[2J","unsupported":true,"retryAfterSeconds":1e999}`, "", "<html>", "null", `[]`, "\xff{",
		`{"state":"Off","retryAfterSeconds":-1e300}`, strings.Repeat("ü\n", 2000)} {
		f.Add(200, "", "", []byte(body))
		f.Add(503, "7", date, []byte(body))
		f.Add(302, "Sun, 29 Nov 2026 00:00:30 GMT", date, []byte(body))
	}
	f.Fuzz(func(t *testing.T, status int, after, date string, body []byte) {
		state, err := parseAnswer(status, http.Header{"Retry-After": {after}, "Date": {date}}, body)
		if err == nil {
			var document map[string]any
			if status != 200 || !slices.Contains(states, state) || json.Unmarshal(body, &document) != nil {
				t.Errorf("status %d %q is state %q", status, body, state)
			}
			return
		}
		text := err.Error()
		if state != "" || text == "" || len(text) > maxMessage+100 || text != terminal.Printable(text) {
			t.Errorf("state %q, error %q", state, text)
		}
		var said *Error
		if errors.As(err, &said) &&
			(len(said.Message) > maxMessage || said.RetryAfter < 0 || said.RetryAfter > maxRetryAfter) {
			t.Errorf("the error is %+v", said)
		}
	})
}
