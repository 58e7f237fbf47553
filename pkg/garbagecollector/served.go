package garbagecollector

import (
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/exeunt-io/exeunt/pkg/garbage/graph"
)

// served are the kinds that discovery found.
type served struct {
	kinds map[schema.GroupKind]*graph.Kind
	// versions are all versions of all resources.
	versions map[schema.GroupVersionResource]bool
	// listed are the versions of groups whose resources are known.
	listed map[schema.GroupVersion]bool
}

// kindsOf returns the served kinds, each in the preferred version that can be collected.
func kindsOf(
	groups []*metav1.APIGroup, lists []*metav1.APIResourceList, ignored []schema.GroupResource,
) served {
	found := served{
		kinds: map[schema.GroupKind]*graph.Kind{}, versions: map[schema.GroupVersionResource]bool{},
		listed: map[schema.GroupVersion]bool{},
	}
	byVersion := map[string]*metav1.APIResourceList{}
	for _, list := range lists {
		byVersion[list.GroupVersion] = list
	}
	for _, group := range groups {
		for _, version := range append([]metav1.GroupVersionForDiscovery{group.PreferredVersion}, group.Versions...) {
			if list := byVersion[version.GroupVersion]; list != nil {
				gv := schema.GroupVersion{Group: group.Name, Version: version.Version}
				found.listed[gv] = true
				found.add(gv, list.APIResources, ignored)
			}
		}
	}
	return found
}

// add adds the resources of a version.
func (s *served) add(version schema.GroupVersion, resources []metav1.APIResource, ignored []schema.GroupResource) {
	for _, r := range resources {
		if strings.Contains(r.Name, "/") || !slices.Contains(r.Verbs, "get") {
			continue
		}
		kind := &graph.Kind{GroupVersionKind: version.WithKind(r.Kind), Resource: r.Name, Namespaced: r.Namespaced}
		kind.Collected = collects(kind.GroupResource(), r.Verbs, ignored)
		s.versions[kind.GroupVersionResource()] = true
		if known := s.kinds[kind.GroupKind()]; known == nil || kind.Collected && !known.Collected {
			s.kinds[kind.GroupKind()] = kind
		}
	}
}

// collects reports whether the objects of the resource are collected.
func collects(resource schema.GroupResource, verbs metav1.Verbs, ignored []schema.GroupResource) bool {
	isEvents := resource.Resource == "events" && (resource.Group == "" || resource.Group == "events.k8s.io")
	if isEvents || slices.Contains(ignored, resource) {
		return false
	}
	return slices.Contains(verbs, "delete") && slices.Contains(verbs, "list") && slices.Contains(verbs, "watch")
}

func groupsOf(versions map[schema.GroupVersion]error) map[string]bool {
	groups := map[string]bool{}
	for version := range versions {
		groups[version.Group] = true
	}
	return groups
}
