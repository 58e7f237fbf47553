package sandbox

import (
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"net/http"
	"strings"
	"time"

	"github.com/exeunt-io/exeunt/pkg/csimock"
)

// Event is one finished request in the audit log of the API server.
type Event struct {
	// Time is when the request was answered, Duration how long that took.
	Time     time.Time
	Duration time.Duration
	// User is who asked, UserAgent with which program.
	User, UserAgent string
	// Verb is what was asked: get, list, watch, create, update, patch, delete
	// or deletecollection.
	Verb string
	// Group, Resource and Subresource are of what; Namespace and Name of which
	// object. A request for no resource, such as /readyz, has none of them.
	Group, Resource, Subresource, Namespace, Name string
	// Code is the HTTP status of the answer.
	Code int
	// Authorized reports whether the user has the right to the request. An authorized
	// request can be forbidden by admission, as new objects are in a namespace that is
	// being deleted.
	Authorized bool
}

// Writes says whether the request could change an object.
func (e Event) Writes() bool {
	switch e.Verb {
	case "create", "update", "patch", "delete", "deletecollection":
		return true
	}
	return false
}

// UnmarshalJSON reads an event as the API server writes it.
func (e *Event) UnmarshalJSON(text []byte) error {
	var line auditLine
	if err := json.Unmarshal(text, &line); err != nil {
		return err
	}
	*e = Event{
		Time:        line.StageTimestamp,
		Duration:    line.StageTimestamp.Sub(line.RequestReceivedTimestamp),
		User:        line.User.Username,
		UserAgent:   line.UserAgent,
		Verb:        line.Verb,
		Group:       line.ObjectRef.APIGroup,
		Resource:    line.ObjectRef.Resource,
		Subresource: line.ObjectRef.Subresource,
		Namespace:   line.ObjectRef.Namespace,
		Name:        line.ObjectRef.Name,
		Code:        line.ResponseStatus.Code,
		Authorized:  line.Annotations["authorization.k8s.io/decision"] == "allow",
	}
	return nil
}

// auditLine is the part of an audit.k8s.io/v1 Event that an Event is made of.
type auditLine struct {
	RequestReceivedTimestamp time.Time
	StageTimestamp           time.Time
	Verb                     string
	UserAgent                string
	User                     struct{ Username string }
	ObjectRef                struct{ APIGroup, Resource, Subresource, Namespace, Name string }
	ResponseStatus           struct{ Code int }
	Annotations              map[string]string
}

// ReadAudit returns the events in an audit log so far.
func ReadAudit(path string) ([]Event, error) { return readAll[Event](path) }

// FollowAudit yields the events in an audit log, those there and those to come,
// until ctx ends.
func FollowAudit(ctx context.Context, path string) iter.Seq2[Event, error] {
	return follow[Event](ctx, path)
}

// FollowCalls yields the calls in the call log of a driver, those there and
// those to come, until ctx ends.
func FollowCalls(ctx context.Context, path string) iter.Seq2[csimock.Call, error] {
	return follow[csimock.Call](ctx, path)
}

// Refused returns an error that names the first request in an audit log that a user
// whose name begins with prefix had no right to, or nil. What upstream's sidecar
// is forbidden is not ours to grant.
func Refused(path, prefix string) error {
	events, err := ReadAudit(path)
	if err != nil {
		return err
	}
	for _, event := range events {
		ours := strings.HasPrefix(event.User, prefix) && event.User != UpstreamSidecarUser.Name()
		if event.Code == http.StatusForbidden && !event.Authorized && ours {
			return fmt.Errorf("%s was forbidden to %s %s/%s %s", event.User, event.Verb, event.Resource, event.Subresource, event.Name)
		}
	}
	return nil
}
