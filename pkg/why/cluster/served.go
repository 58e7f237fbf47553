package cluster

import (
	"slices"
	"strings"

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
	return slices.DeleteFunc(slices.Clone(found.resources), func(s Resource) bool { return !slices.Contains(s.Verbs, "list") }), complete
}

// ServedIn returns the kinds of the groups that the API server serves, in their preferred versions, and whether
// these groups answered. Those that did not answer are noted.
func (r *Reader) ServedIn(groups ...string) ([]Resource, bool) {
	found := r.discovered()
	complete := r.noteUndiscovered(found, func(group string) bool { return slices.Contains(groups, group) })
	return slices.DeleteFunc(slices.Clone(found.resources), func(s Resource) bool { return !slices.Contains(groups, s.Group) }), complete
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
