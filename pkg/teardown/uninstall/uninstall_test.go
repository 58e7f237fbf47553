package uninstall_test

import (
	"encoding/json"
	"errors"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/exeunt-io/exeunt/pkg/teardown/uninstall"
	"github.com/exeunt-io/exeunt/pkg/why/cluster/clustertest"
)

const (
	alives      = "/apis/lifecycle.exeunt.io/v1alpha1/alives/cluster"
	definitions = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/alives.lifecycle.exeunt.io"
)

// installed is a cluster with objects by their path. A finalizer keeps an object that is deleted.
type installed struct {
	mu      sync.Mutex
	objects map[string]map[string]any
	writes  []string
}

// object is as the API server has it.
func object(version, kind, name string, metadata map[string]any) map[string]any {
	metadata["name"], metadata["uid"], metadata["resourceVersion"] = name, "1", "7"
	return map[string]any{"apiVersion": version, "kind": kind, "metadata": metadata,
		"spec": map[string]any{"protected": true}}
}

// newInstalled has everything; the metadata is that of Alive.
func newInstalled(metadata map[string]any) *installed {
	const admission = "admissionregistration.k8s.io/v1"
	i := &installed{objects: map[string]map[string]any{
		alives: object("lifecycle.exeunt.io/v1alpha1", "Alive", "cluster", metadata),
		definitions: object("apiextensions.k8s.io/v1", "CustomResourceDefinition", "alives.lifecycle.exeunt.io",
			map[string]any{}),
	}}
	for _, name := range []string{"exeunt-teardown-freeze", "exeunt-alive", "exeunt-alive-definition"} {
		for resource, kind := range map[string]string{"validatingadmissionpolicies": "ValidatingAdmissionPolicy",
			"validatingadmissionpolicybindings": "ValidatingAdmissionPolicyBinding"} {
			i.objects["/apis/"+admission+"/"+resource+"/"+name] = object(admission, kind, name, map[string]any{})
		}
	}
	return i
}

func (i *installed) answer(w http.ResponseWriter, request *http.Request) {
	i.mu.Lock()
	defer i.mu.Unlock()
	w.Header().Set("Content-Type", "application/json")
	found := i.objects[request.URL.Path]
	if request.Method != http.MethodGet {
		i.writes = append(i.writes, request.Method+" "+request.URL.Path[strings.LastIndex(request.URL.Path, "/")+1:])
	}
	switch {
	case found == nil:
		name := request.URL.Path[strings.LastIndex(request.URL.Path, "/")+1:]
		w.WriteHeader(http.StatusNotFound)
		_ = json.NewEncoder(w).Encode(metav1.Status{TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"},
			Status: metav1.StatusFailure, Reason: metav1.StatusReasonNotFound, Code: http.StatusNotFound,
			Details: &metav1.StatusDetails{Name: name}})
		return
	case request.Method == http.MethodPatch, request.Method == http.MethodDelete && !isHeld(found):
		delete(i.objects, request.URL.Path)
	}
	_ = json.NewEncoder(w).Encode(found)
}

func isHeld(object map[string]any) bool {
	return object["metadata"].(map[string]any)["finalizers"] != nil
}

// run removes everything, and returns what was written.
func (i *installed) run(t *testing.T) ([]string, error) {
	t.Helper()
	remover := &uninstall.Remover{Reader: clustertest.NewReader(t, i.answer), Say: func(string) {}}
	err := remover.Run(t.Context())
	i.mu.Lock()
	defer i.mu.Unlock()
	return slices.Clone(i.writes), err
}

const own, other = "lifecycle.exeunt.io/teardown", "example.com/buckets"

// The bindings go first: they guard Alive and its CRD.
func TestGuardsGoBeforeWhatTheyGuard(t *testing.T) {
	i := newInstalled(map[string]any{"finalizers": []any{own}})
	writes, err := i.run(t)
	want := []string{"DELETE exeunt-teardown-freeze", "DELETE exeunt-alive", "DELETE exeunt-alive-definition",
		"DELETE cluster", "PATCH cluster", "DELETE alives.lifecycle.exeunt.io", "DELETE exeunt-teardown-freeze", "DELETE exeunt-alive",
		"DELETE exeunt-alive-definition"}
	if err != nil || !slices.Equal(writes, want) || len(i.objects) != 0 {
		t.Errorf("writes %q, error %v, left %d, want %q", writes, err, len(i.objects), want)
	}
}

// What a participant made would lose the only object that asks it to clean up.
func TestParticipantsRefuseRemoval(t *testing.T) {
	i := newInstalled(map[string]any{"finalizers": []any{own, other},
		"annotations": map[string]any{other: "buckets: buckets of dev"}})
	writes, err := i.run(t)
	if !errors.Is(err, uninstall.ErrRefused) || len(writes) != 0 {
		t.Fatalf("error %v, writes %q", err, writes)
	}
	for _, want := range []string{other, "namespace buckets", "buckets of dev", "kubectl patch"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("%q is missing in: %v", want, err)
		}
	}
}

func TestTeardownInProgressRefusesRemoval(t *testing.T) {
	i := newInstalled(map[string]any{"finalizers": []any{own}, "deletionTimestamp": "2026-05-01T12:00:00Z"})
	i.objects[alives]["spec"] = map[string]any{"protected": false}
	writes, err := i.run(t)
	if !errors.Is(err, uninstall.ErrRefused) || len(writes) != 0 || !strings.Contains(err.Error(), "teardown --abort") {
		t.Errorf("error %v, writes %q", err, writes)
	}
	i.objects[alives]["spec"] = map[string]any{} // whether it is in progress is not known
	if writes, err = i.run(t); !errors.Is(err, uninstall.ErrRefused) || len(writes) != 0 {
		t.Errorf("an Alive that cannot be read: error %v, writes %q", err, writes)
	}
}
