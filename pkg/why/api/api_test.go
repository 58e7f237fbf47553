package api

import (
	"fmt"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/exeunt-io/exeunt/pkg/why/chain"
	"github.com/exeunt-io/exeunt/pkg/why/cluster"
)

var configMaps = cluster.Resource{GroupVersionResource: schema.GroupVersionResource{Version: "v1",
	Resource: "configmaps"}, Kind: "ConfigMap", Namespaced: true}

func object(name string, deletedAt int64, finalizers ...string) metav1.PartialObjectMetadata {
	o := metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID(name),
		Finalizers: finalizers}}
	if deletedAt > 0 {
		o.DeletionTimestamp = &metav1.Time{Time: time.Unix(deletedAt, 0)}
	}
	return o
}

func TestObjectsWithSameFinalizersAreOneGroup(t *testing.T) {
	list := []metav1.PartialObjectMetadata{object("young", 30, "a"), object("other", 20, "b"), object("old", 10, "a"),
		object("left", 0)}
	content := collect([]cluster.Resource{configMaps, configMaps}, [][]metav1.PartialObjectMetadata{list, list},
		[]bool{true, true}, false)
	if len(content.items) != len(list) {
		t.Fatalf("the survey has %d objects, want each of %d once", len(content.items), len(list))
	}
	deleting, others := split(content.items)
	if len(others) != 1 || others[0].Name != "left" {
		t.Errorf("not being deleted are %v, want left alone", names(others))
	}
	var got []string
	for _, members := range groups(deleting) {
		got = append(got, strings.Join(names(members), " "))
	}
	if want := "[ConfigMap old ConfigMap young ConfigMap other]"; fmt.Sprint(got) != want {
		t.Errorf("the groups are %v, want %v", got, want)
	}
}

func TestFailedListIsNeverComplete(t *testing.T) {
	for name, content := range map[string]survey{
		"list failed": collect([]cluster.Resource{configMaps}, make([][]metav1.PartialObjectMetadata, 1), []bool{false},
			false),
		"discovery failed": collect(nil, nil, nil, true),
	} {
		if content.isComplete() || len(content.missedNames()) == 0 {
			t.Errorf("%s: the survey is complete", name)
		}
	}
}

func TestServedResourcePrefersStorageVersion(t *testing.T) {
	version := func(name string, served, storage bool) any {
		return map[string]any{"name": name, "served": served, "storage": storage}
	}
	for want, versions := range map[string][]any{
		"v2": {version("v1", true, false), version("v2", true, true)},
		"v1": {version("v1", true, false), version("v2", false, true)},
		"":   {version("v1", false, true)},
	} {
		definition := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{
			"group": "example.com", "scope": "Namespaced", "names": map[string]any{"plural": "widgets", "kind": "Widget"},
			"versions": versions,
		}}}
		resource, served := servedResource(definition)
		if resource.Version != want || served != (want != "") {
			t.Errorf("servedResource() = %v, %v, want version %q", resource, served, want)
		}
	}
}

func TestAskedAtIsBeforeGracePeriod(t *testing.T) {
	pod := &metav1.ObjectMeta{DeletionTimestamp: &metav1.Time{Time: time.Unix(100, 0)},
		DeletionGracePeriodSeconds: new(int64(40))}
	if got := askedAt(pod); got != "1970-01-01T00:01:00Z" {
		t.Errorf("askedAt() = %s", got)
	}
	if askedAt(&metav1.ObjectMeta{}) != "" {
		t.Error("an object that nobody deleted has a time of deletion")
	}
}

func TestPathOfObject(t *testing.T) {
	for want, ref := range map[string]cluster.Ref{
		"/api/v1/namespaces/ns/configmaps/x": {Resource: configMaps.GroupVersionResource, Namespace: "ns", Name: "x"},
		"/apis/example.com/v1/widgets/x":     {Resource: schema.GroupVersionResource{Group: "example.com", Version: "v1", Resource: "widgets"}, Name: "x"},
		"/apis/example.com/v1/namespaces/n/maps/x": {Resource: schema.GroupVersionResource{Group: "example.com",
			Version: "v1", Resource: "maps"}, Namespace: "n", Name: "x"},
	} {
		if got := path(ref); got != want {
			t.Errorf("path() = %s, want %s", got, want)
		}
	}
}

func TestShortened(t *testing.T) {
	if got := shortened([]string{"a", "b", "c"}, 2); got != "a, b, and 1 more" {
		t.Errorf("shortened() = %q", got)
	}
}

// The garbage collector keeps a dependent that has another owner, and a dependent may keep data.
func TestNextStepOfDependentDeletesNothing(t *testing.T) {
	dependent := func(owners ...types.UID) item {
		o := object("left", 0)
		for _, uid := range owners {
			o.OwnerReferences = append(o.OwnerReferences, metav1.OwnerReference{UID: uid})
		}
		return item{&o, configMaps}
	}
	for name, tc := range map[string]struct {
		next    string
		deletes bool
	}{
		"one owner":               {nextOfDependent(cluster.Commands{}, controller{}, "a", dependent("a")), true},
		"another owner":           {nextOfDependent(cluster.Commands{}, controller{}, "a", dependent("a", "b")), false},
		"not deleted yet, a list": {notDeleted(commandsOnly{}, &unstructured.Unstructured{}, []item{dependent()}, controller{})[0].Next, true},
	} {
		if strings.Contains(tc.next, "\nkubectl delete ") || strings.Contains(tc.next, "# kubectl delete ") != tc.deletes ||
			!strings.Contains(tc.next, "\nkubectl get ") {
			t.Errorf("%s:\n%s", name, tc.next)
		}
	}
}

// commandsOnly is an Explorer that writes commands.
type commandsOnly struct{ chain.Explorer }

func (commandsOnly) Commands() cluster.Commands { return cluster.Commands{} }
