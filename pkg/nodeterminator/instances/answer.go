package instances

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"
)

// maxBody limits a request and an answer.
const maxBody = 1 << 20

// maxRetryAfter limits how long a provider can pause the calls.
const maxRetryAfter = time.Hour

// answer is the body of each answer.
type answer struct {
	State             State   `json:"state,omitempty"`
	Error             string  `json:"error,omitempty"`
	Unsupported       bool    `json:"unsupported,omitempty"`
	RetryAfterSeconds float64 `json:"retryAfterSeconds,omitempty"`
}

// parseAnswer returns the state in an answer, or the reason why there is none: an *Error by the provider, or what is
// wrong with the answer, as the rest of a sentence.
func parseAnswer(status int, header http.Header, body []byte) (State, error) {
	var a answer
	malformed := malformation(body, &a)
	switch {
	case status >= http.StatusBadRequest:
		return "", errorOf(status, header, a, body, malformed)
	case status != http.StatusOK:
		return "", fmt.Errorf("answered with status %d instead of 200", status)
	case malformed != nil:
		return "", malformed
	case a.Error != "": // an error is never a state
		return "", errorOf(status, header, a, body, nil)
	case a.State == "":
		return "", errors.New("answered without a state")
	case !slices.Contains(states, a.State):
		return "", fmt.Errorf("answered with the unknown state %q", cleaned(string(a.State)))
	}
	return a.State, nil
}

// malformation decodes the body, or returns what is wrong with it.
func malformation(body []byte, into *answer) error {
	switch text := bytes.TrimSpace(body); {
	case len(body) > maxBody:
		return errors.New("answered with more than 1 MiB")
	case len(text) == 0:
		return errors.New("answered with an empty body")
	case text[0] == '<':
		return errors.New("answered with HTML")
	case json.Unmarshal(text, into) != nil:
		return errors.New("answered with other text than the JSON of the protocol")
	}
	return nil
}

// errorOf returns the provider's error. A body that is malformed becomes its message, but for HTML and large bodies.
func errorOf(status int, header http.Header, a answer, body []byte, malformed error) *Error {
	switch {
	case malformed != nil && (len(body) > maxBody || bytes.HasPrefix(bytes.TrimSpace(body), []byte("<"))):
		return &Error{Message: fmt.Sprintf("%v and status %d", malformed, status), RetryAfter: retryAfter(header, 0)}
	case malformed != nil:
		a = answer{Error: string(body)}
	}
	message := cleaned(a.Error)
	if message == "" {
		message = fmt.Sprintf("status %d without a message", status)
	}
	return &Error{Message: message, Unsupported: a.Unsupported, RetryAfter: retryAfter(header, a.RetryAfterSeconds)}
}

// retryAfter returns the longer of the header's time and the body's seconds, within 0 and maxRetryAfter.
func retryAfter(header http.Header, seconds float64) time.Duration {
	text := strings.TrimSpace(header.Get("Retry-After"))
	if number, err := strconv.ParseUint(text, 10, 32); err == nil {
		seconds = max(seconds, float64(number))
	} else if until, err := http.ParseTime(text); err == nil {
		if from, err := http.ParseTime(header.Get("Date")); err == nil {
			seconds = max(seconds, until.Sub(from).Seconds())
		}
	}
	seconds = math.Min(math.Max(seconds, 0), maxRetryAfter.Seconds())
	return time.Duration(seconds * float64(time.Second))
}
