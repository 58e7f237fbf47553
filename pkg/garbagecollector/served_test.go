package garbagecollector

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

func TestKindIsCollectedInAVersionThatCanBe(t *testing.T) {
	all := metav1.Verbs{"get", "list", "watch", "delete"}
	ignored := []schema.GroupResource{{Group: "g", Resource: "ignored"}}
	version := func(name string) metav1.GroupVersionForDiscovery {
		return metav1.GroupVersionForDiscovery{GroupVersion: "g/" + name, Version: name}
	}
	found := kindsOf([]*metav1.APIGroup{{Name: "g", PreferredVersion: version("v2"),
		Versions: []metav1.GroupVersionForDiscovery{version("v2"), version("v1")}}}, []*metav1.APIResourceList{
		{GroupVersion: "g/v2", APIResources: []metav1.APIResource{
			{Name: "both", Kind: "Both", Verbs: all}, {Name: "readable", Kind: "Readable", Verbs: metav1.Verbs{"get"}}, {Name: "both/status", Kind: "Both", Verbs: all},
			{Name: "late", Kind: "Late", Verbs: metav1.Verbs{"get"}}, {Name: "ignored", Kind: "Ignored", Verbs: all},
			{Name: "hidden", Kind: "Hidden", Verbs: metav1.Verbs{"create"}},
		}},
		{GroupVersion: "g/v1", APIResources: []metav1.APIResource{{Name: "both", Kind: "Both", Verbs: all}, {Name: "late", Kind: "Late", Verbs: all}}},
	}, ignored)
	want := map[string]struct {
		version   string
		collected bool
	}{"Both": {"v2", true}, "Readable": {"v2", false}, "Late": {"v1", true}, "Ignored": {"v2", false}}
	if len(found.kinds) != len(want) {
		t.Errorf("found %d kinds, want %d", len(found.kinds), len(want))
	}
	for name, kind := range want {
		got := found.kinds[schema.GroupKind{Group: "g", Kind: name}]
		if got == nil || got.Version != kind.version || got.Collected != kind.collected {
			t.Errorf("%s: got %+v, want %+v", name, got, kind)
		}
	}
}

func TestEventsAreNotCollected(t *testing.T) {
	for resource, want := range map[schema.GroupResource]bool{
		{Resource: "events"}: false, {Group: "events.k8s.io", Resource: "events"}: false,
		{Group: "g", Resource: "events"}: true,
	} {
		if got := collects(resource, metav1.Verbs{"delete", "list", "watch"}, nil); got != want {
			t.Errorf("collects(%s) = %v", resource, got)
		}
	}
}
