package api

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/exeunt-io/exeunt/pkg/why/cluster"
)

func TestReferenceIsUnresolvable(t *testing.T) {
	served := []cluster.Resource{
		{GroupVersionResource: schema.GroupVersionResource{Group: "g", Version: "v2", Resource: "widgets"}, Kind: "Widget", Namespaced: true},
		{GroupVersionResource: schema.GroupVersionResource{Version: "v1", Resource: "nodes"}, Kind: "Node"},
	}
	for name, tc := range map[string]struct {
		apiVersion, kind, namespace string
		incomplete, want            bool
	}{
		"owner in the namespace":         {"g/v2", "Widget", "ns", false, false},
		"another version of the kind":    {"g/v1", "Widget", "ns", false, false},
		"cluster-scoped owner":           {"v1", "Node", "ns", false, false},
		"namespaced owner of no such":    {"g/v2", "Widget", "", false, true},
		"kind that nobody serves":        {"g/v2", "Gadget", "ns", false, true},
		"kind of a group without answer": {"h/v1", "Gadget", "ns", true, false},
		"group that is not valid":        {"a/b/c", "Widget", "ns", false, true},
		"version without its group":      {"v1beta2", "Node", "ns", false, true},
		"version in capitals":            {"V1", "Node", "ns", false, true},
		"group without a version":        {"g", "Widget", "ns", false, true},
		"kind in lower case":             {"g/v2", "widget", "ns", false, false},
		"kind in capitals":               {"g/v2", "WIDGET", "ns", false, true},
	} {
		t.Run(name, func(t *testing.T) {
			reference := metav1.OwnerReference{APIVersion: tc.apiVersion, Kind: tc.kind, Name: "owner"}
			if got := unresolvable(reference, tc.namespace, served, !tc.incomplete); (got != "") != tc.want {
				t.Errorf("unresolvable: %q", got)
			}
		})
	}
}
