package cluster

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
)

// Resource is a kind that the API server serves.
type Resource struct {
	schema.GroupVersionResource
	Kind       string
	Namespaced bool
	Verbs      []string
}

// discovered is what discovery returned.
type discovered struct {
	resources []Resource
	// failed are the groups that did not answer, and why.
	failed map[schema.GroupVersion]error
	// err is why no group did.
	err error
}

// Resources returns the kinds that can be listed, in their preferred versions, and whether
// all groups answered. Groups that did not answer are noted.
func (r *Reader) Resources() ([]Resource, bool) {
	found := r.discovered()
	complete := r.noteUndiscovered(found, func(string) bool { return true })
	return slices.DeleteFunc(slices.Clone(found.resources),
		func(s Resource) bool { return !slices.Contains(s.Verbs, "list") }), complete
}

// ServedIn returns the kinds of the groups that the API server serves, in their preferred versions, and whether
// these groups answered. Those that did not answer are noted.
func (r *Reader) ServedIn(groups ...string) ([]Resource, bool) {
	found := r.discovered()
	complete := r.noteUndiscovered(found, func(group string) bool { return slices.Contains(groups, group) })
	return slices.DeleteFunc(slices.Clone(found.resources),
		func(s Resource) bool { return !slices.Contains(groups, s.Group) }), complete
}

// discovered reads, once, which kinds the API server serves.
func (r *Reader) discovered() discovered {
	return remember(r, "resources", func(r *Reader) discovered {
		lists, err := r.discovery.ServerPreferredResources()
		if failed, partial := discovery.GroupDiscoveryFailedErrorGroups(err); partial {
			return discovered{resources: served(lists), failed: failed}
		}
		return discovered{resources: served(lists), err: err}
	})
}

// noteUndiscovered notes the groups of these names that did not answer, and reports whether all did.
func (r *Reader) noteUndiscovered(found discovered, concerns func(group string) bool) bool {
	complete := found.err == nil
	if !complete {
		r.Note("could not discover the kinds of the API server: %s", oneLine(found.err))
	}
	for version, err := range found.failed {
		if concerns(version.Group) {
			complete = false
			r.Note("could not discover the kinds of %s: %s", version, oneLine(err))
		}
	}
	return complete
}

// served returns the resources of the lists, without subresources.
func served(lists []*metav1.APIResourceList) []Resource {
	var all []Resource
	for _, list := range lists {
		gv, err := schema.ParseGroupVersion(list.GroupVersion)
		if err != nil {
			continue
		}
		for _, resource := range list.APIResources {
			if !strings.Contains(resource.Name, "/") {
				all = append(all, Resource{gv.WithResource(resource.Name), resource.Kind, resource.Namespaced, resource.Verbs})
			}
		}
	}
	return all
}

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
