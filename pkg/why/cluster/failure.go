package cluster

import (
	"context"
	"errors"
	"fmt"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// noteFailure notes that objects could not be read, and the right that is missing.
func (r *Reader) noteFailure(verb string, resource schema.GroupResource, namespace string, err error) {
	r.failures.Store(failureKey(verb, resource, namespace), err)
	r.Note("%s", Failure(verb, resource, namespace, err))
}

// Failure says in one sentence why a request failed, and which right would allow it.
func Failure(verb string, resource schema.GroupResource, namespace string, err error) string {
	where := ""
	if namespace != "" {
		where = " in namespace " + namespace
	}
	switch {
	case apierrors.IsForbidden(err):
		return fmt.Sprintf("no right to %s %s%s; grant the rule {apiGroups: [%q], resources: [%s], verbs: [%s]}",
			verb, resource.Resource, where, resource.Group, resource.Resource, verb)
	case errors.Is(err, context.DeadlineExceeded) || apierrors.IsTimeout(err):
		return fmt.Sprintf("could not %s %s%s: no answer in time", verb, resource, where)
	default:
		return fmt.Sprintf("could not %s %s%s: %s", verb, resource, where, oneLine(err))
	}
}

// Failure returns the error of the last request with the verb, "get" or "list", for the
// resource in the namespace that failed, or nil.
func (r *Reader) Failure(verb string, resource schema.GroupResource, namespace string) error {
	err, failed := r.failures.Load(failureKey(verb, resource, namespace))
	if !failed {
		return nil
	}
	return err.(error)
}

func failureKey(verb string, resource schema.GroupResource, namespace string) string {
	return verb + " " + resource.String() + " " + namespace
}

// oneLine returns the text of the error in one line of limited length.
func oneLine(err error) string {
	const limit = 300
	text := strings.Join(strings.Fields(fmt.Sprint(err)), " ")
	if len(text) > limit {
		text = strings.ToValidUTF8(text[:limit], "") + " ..."
	}
	return text
}
