package measure

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
)

// Request is a kind of API request, as the API server counts it.
type Request struct {
	// Verb is GET, LIST, WATCH, POST, PUT, PATCH, APPLY, DELETE or DELETECOLLECTION.
	Verb string
	// Resource is the resource, with the subresource after a slash.
	Resource string
	// Code is the HTTP status of the response.
	Code int
}

// Writes reports whether the request can change an object.
func (r Request) Writes() bool {
	switch r.Verb {
	case "POST", "PUT", "PATCH", "APPLY", "DELETE", "DELETECOLLECTION":
		return true
	}
	return false
}

// Refused reports whether a write failed by a fault of the client.
func (r Request) Refused() bool { return r.Writes() && r.Code >= 400 && r.Code < 500 }

// String returns VERB RESOURCE CODE.
func (r Request) String() string { return fmt.Sprintf("%s %s %d", r.Verb, r.Resource, r.Code) }

// MarshalText makes a request a key in JSON.
func (r Request) MarshalText() ([]byte, error) { return []byte(r.String()), nil }

// UnmarshalText reads the text of String.
func (r *Request) UnmarshalText(text []byte) error {
	fields := strings.Fields(string(text))
	if len(fields) != 3 {
		return fmt.Errorf("read request %q: want VERB RESOURCE CODE", text)
	}
	code, err := strconv.Atoi(fields[2])
	if err != nil {
		return fmt.Errorf("read request %q: %w", text, err)
	}
	*r = Request{Verb: fields[0], Resource: fields[1], Code: code}
	return nil
}

// Requests are numbers of requests by kind.
type Requests map[Request]float64

// Sum adds the requests that such selects; nil selects all.
func (r Requests) Sum(such func(Request) bool) float64 {
	sum := 0.0
	for request, count := range r {
		if such == nil || such(request) {
			sum += count
		}
	}
	return sum
}

// Kinds returns the requests, sorted by resource, verb and code.
func (r Requests) Kinds() []Request {
	return slices.SortedFunc(maps.Keys(r), func(a, b Request) int {
		return strings.Compare(a.Resource+" "+a.String(), b.Resource+" "+b.String())
	})
}

// Refused returns the writes that failed by a fault of the client.
func (r Requests) Refused() Requests {
	refused := Requests{}
	for request, count := range r {
		if request.Refused() {
			refused[request] = count
		}
	}
	return refused
}

// subtract returns a - b for each key, without the keys that are left with nothing.
func subtract[K comparable](a, b map[K]float64) map[K]float64 {
	left := map[K]float64{}
	for key, count := range a {
		if rest := count - b[key]; rest > 0 {
			left[key] = rest
		}
	}
	return left
}

// share divides each value by the number of volumes.
func share[K comparable](counts map[K]float64, volumes int) map[K]float64 {
	each := map[K]float64{}
	for key, count := range counts {
		each[key] = count / float64(volumes)
	}
	return each
}
