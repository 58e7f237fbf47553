package sandbox

import (
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"net/http"
	"net/url"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/exeunt-io/exeunt/pkg/csimock"
)

// Event is one finished request in the audit log of the API server.
type Event struct {
	// Time is the time of the response, Duration the duration of the request.
	Time     time.Time
	Duration time.Duration
	// User sent the request with the program UserAgent.
	User, UserAgent string
	// Verb is get, list, watch, create, update, patch, delete or deletecollection.
	Verb string
	// Group, Resource, Subresource, Namespace and Name identify the object. They are empty
	// for requests that are not for a resource, such as /readyz.
	Group, Resource, Subresource, Namespace, Name string
	// Labels is the selector of labels of a list or a watch, "" if all objects are asked for.
	Labels string
	// Code is the HTTP status of the response.
	Code int
	// Authorized reports whether the user has the right to the request. Admission can
	// forbid an authorized request, such as the creation in a Terminating namespace.
	Authorized bool
	// Object is the response to a write of a volume or claim, without managed fields, if
	// Config.AuditObjects is on and the write was accepted; otherwise nil.
	Object *unstructured.Unstructured
}

// Writes reports whether the request can change an object.
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
		Labels:      line.labels(),
		Code:        line.ResponseStatus.Code,
		Authorized:  line.Annotations["authorization.k8s.io/decision"] == "allow",
	}
	if kind := line.ResponseObject["kind"]; kind != nil && kind != "Status" {
		e.Object = &unstructured.Unstructured{Object: line.ResponseObject}
	}
	return nil
}

// auditLine has the fields of an audit.k8s.io/v1 Event that Event needs.
type auditLine struct {
	RequestReceivedTimestamp time.Time
	StageTimestamp           time.Time
	Verb                     string
	UserAgent                string
	RequestURI               string
	User                     struct{ Username string }
	ObjectRef                struct{ APIGroup, Resource, Subresource, Namespace, Name string }
	ResponseStatus           struct{ Code int }
	Annotations              map[string]string
	ResponseObject           map[string]any
}

func (l auditLine) labels() string {
	request, err := url.Parse(l.RequestURI)
	if err != nil {
		return ""
	}
	return request.Query().Get("labelSelector")
}

// ReadAudit returns the events that an audit log has now.
func ReadAudit(path string) ([]Event, error) { return readAll[Event](path) }

// FollowAudit yields the existing and the future events in an audit log until ctx ends.
func FollowAudit(ctx context.Context, path string) iter.Seq2[Event, error] {
	return follow[Event](ctx, path)
}

// FollowCalls yields the existing and the future calls in a driver's call log until ctx
// ends.
func FollowCalls(ctx context.Context, path string) iter.Seq2[csimock.Call, error] {
	return follow[csimock.Call](ctx, path)
}

// Refused returns an error that names the first unauthorized request of a user with the
// prefix in an audit log, or nil. Requests of upstream's sidecar do not count.
func Refused(path, prefix string) error {
	events, err := ReadAudit(path)
	if err != nil {
		return err
	}
	for _, event := range events {
		ours := strings.HasPrefix(event.User, prefix) && event.User != UpstreamSidecarUser.Name()
		if event.Code == http.StatusForbidden && !event.Authorized && ours {
			return fmt.Errorf("%s was forbidden to %s %s/%s %s", event.User, event.Verb, event.Resource, event.Subresource,
				event.Name)
		}
	}
	return nil
}
