package uninstall_test

import (
	"encoding/json"
	"errors"
	"fmt"
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
	case request.Method == http.MethodPatch:
		change(found, request)
	case request.Method == http.MethodDelete:
		found["metadata"].(map[string]any)["deletionTimestamp"] = "2026-05-01T12:00:00Z"
	}
	metadata := found["metadata"].(map[string]any)
	if held, _ := metadata["finalizers"].([]any); metadata["deletionTimestamp"] != nil && len(held) == 0 {
		delete(i.objects, request.URL.Path)
	}
	_ = json.NewEncoder(w).Encode(found)
}

// change applies the patches of the remover.
func change(object map[string]any, request *http.Request) {
	var steps []struct {
		Op, Path string
		Value    any
	}
	if err := json.NewDecoder(request.Body).Decode(&steps); err != nil {
		panic(err)
	}
	for _, step := range steps {
		if words := strings.Split(step.Path, "/"); step.Op == "add" {
			object[words[1]].(map[string]any)[words[2]] = step.Value
		}
	}
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

// The deletion of a permitted Alive is the signal: alive-controller would begin a teardown.
func TestPermittedAliveIsProtectedBeforeRemoval(t *testing.T) {
	i := newInstalled(map[string]any{"finalizers": []any{own}})
	i.objects[alives]["spec"] = map[string]any{"protected": false, "confirm": "id", "confirmedAt": "2026-11-29T09:00:00Z"}
	writes, err := i.run(t)
	want := []string{"PATCH cluster", "DELETE exeunt-teardown-freeze"}
	if err != nil || len(i.objects) != 0 || !slices.Equal(writes[:2], want) {
		t.Errorf("writes %q, error %v, left %d", writes, err, len(i.objects))
	}
}

// A person permits a teardown while the guards are off.
func TestAlivePermittedDuringRemovalIsNotDeleted(t *testing.T) {
	i := newInstalled(map[string]any{"finalizers": []any{own}})
	permitted := false
	remover := &uninstall.Remover{Say: func(string) {}, Reader: clustertest.NewReader(t, func(w http.ResponseWriter,
		request *http.Request) {
		if request.Method == http.MethodDelete && request.URL.Path == alives && !permitted {
			var options metav1.DeleteOptions
			_ = json.NewDecoder(request.Body).Decode(&options)
			if p := options.Preconditions; p == nil || p.ResourceVersion == nil || *p.ResourceVersion != "7" {
				t.Errorf("any version would be deleted: %+v", p)
			}
			i.mu.Lock()
			permitted, i.objects[alives]["spec"] = true, map[string]any{"protected": false}
			i.objects[alives]["metadata"].(map[string]any)["resourceVersion"] = "8"
			i.mu.Unlock()
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(http.StatusConflict)
			_, _ = w.Write([]byte(`{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Conflict","code":409}`))
			return
		}
		i.answer(w, request)
	})}
	err := remover.Run(t.Context())
	p, d := slices.Index(i.writes, "PATCH cluster"), slices.Index(i.writes, "DELETE cluster")
	if err != nil || !permitted || p < 0 || p > d || len(i.objects) != 0 {
		t.Errorf("writes %q, error %v, left %d", i.writes, err, len(i.objects))
	}
}

// besideController removes everything while alive-controller makes another Alive just before the CRD is being deleted.
func (i *installed) besideController(t *testing.T, metadata map[string]any) error {
	t.Helper()
	handler := func(w http.ResponseWriter, request *http.Request) {
		i.mu.Lock()
		if request.Method == http.MethodDelete && request.URL.Path == definitions {
			i.objects[alives] = object("lifecycle.exeunt.io/v1alpha1", "Alive", "cluster", metadata)
			i.objects[definitions]["metadata"].(map[string]any)["finalizers"] = []any{"customresourcecleanup.apiextensions.k8s.io"}
		}
		i.mu.Unlock()
		i.answer(w, request)
		i.mu.Lock()
		defer i.mu.Unlock()
		if definition := i.objects[definitions]; definition != nil && i.objects[alives] == nil &&
			definition["metadata"].(map[string]any)["deletionTimestamp"] != nil {
			delete(i.objects, definitions)
		}
	}
	remover := &uninstall.Remover{Reader: clustertest.NewReader(t, handler), Say: func(string) {}}
	return remover.Run(t.Context())
}

// The finalizer of the new Alive would hold the CRD for ever, without its guards.
func TestAliveMadeDuringRemovalGoes(t *testing.T) {
	i := newInstalled(map[string]any{"finalizers": []any{own}})
	if err := i.besideController(t, map[string]any{"finalizers": []any{own}}); err != nil || len(i.objects) != 0 {
		t.Errorf("error %v, left %d, writes %q", err, len(i.objects), i.writes)
	}
}

// Exit code 4 would say that nothing was removed.
func TestParticipantDuringRemovalIsNoRefusal(t *testing.T) {
	i := newInstalled(map[string]any{"finalizers": []any{own}})
	err := i.besideController(t, map[string]any{"finalizers": []any{own, other},
		"annotations": map[string]any{other: "buckets: buckets of dev"}})
	if err == nil || errors.Is(err, uninstall.ErrRefused) || !strings.Contains(err.Error(), "a part is removed already") ||
		i.objects[alives] == nil {
		t.Errorf("error %v, writes %q", err, i.writes)
	}
}

// A proxy, or a webhook, answers with the code of an object that is gone.
func TestDeniedRemovalIsNotTakenForGone(t *testing.T) {
	for path, want := range map[string]string{
		"validatingadmissionpolicybindings/exeunt-alive": "delete validatingadmissionpolicybindings",
		"validatingadmissionpolicies/exeunt-alive":       "delete validatingadmissionpolicies",
		"customresourcedefinitions/alives":               "delete customresourcedefinitions",
		"alives/cluster":                                 "wait until Alive is gone: delete alives",
	} {
		t.Run(want, func(t *testing.T) {
			i := newInstalled(map[string]any{"finalizers": []any{own}})
			handler := func(w http.ResponseWriter, request *http.Request) {
				if request.Method != http.MethodDelete || !strings.Contains(request.URL.Path, path) {
					i.answer(w, request)
					return
				}
				w.Header().Set("Content-Type", "application/json")
				w.WriteHeader(http.StatusNotFound)
				_ = json.NewEncoder(w).Encode(metav1.Status{TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"},
					Status: metav1.StatusFailure, Reason: metav1.StatusReasonNotFound, Code: http.StatusNotFound,
					Message: "denied", Details: &metav1.StatusDetails{Name: path[strings.LastIndex(path, "/")+1:]}})
			}
			remover := &uninstall.Remover{Reader: clustertest.NewReader(t, handler), Say: func(string) {}}
			if err := remover.Run(t.Context()); err == nil || !strings.HasPrefix(err.Error(), want) ||
				!strings.Contains(err.Error(), "denied") {
				t.Errorf("error %v, left %d", err, len(i.objects))
			}
		})
	}
}

// The guard denies for a moment after its binding is gone, and alive-controller writes the status of Alive meanwhile.
func TestConflictAfterDenialIsReadAgain(t *testing.T) {
	i := newInstalled(map[string]any{"finalizers": []any{own}})
	refuse := func(w http.ResponseWriter, code int, status string) {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(code)
		_, _ = fmt.Fprintf(w, `{"kind":"Status","apiVersion":"v1","status":"Failure","code":%d,%s}`, code, status)
	}
	tries := 0
	remover := &uninstall.Remover{Say: func(string) {}, Reader: clustertest.NewReader(t, func(w http.ResponseWriter, request *http.Request) {
		if request.Method != http.MethodDelete || request.URL.Path != alives {
			i.answer(w, request)
			return
		}
		tries++
		switch tries {
		case 1:
			refuse(w, http.StatusForbidden, `"reason":"Forbidden","message":"ValidatingAdmissionPolicy 'exeunt-alive' denied request"`)
		case 2:
			i.mu.Lock()
			i.objects[alives]["metadata"].(map[string]any)["resourceVersion"] = "8"
			i.mu.Unlock()
			refuse(w, http.StatusConflict, `"reason":"Conflict"`)
		default:
			i.answer(w, request)
		}
	})}
	if err := remover.Run(t.Context()); err != nil || len(i.objects) != 0 {
		t.Errorf("after %d tries: %v, and %d objects are left", tries, err, len(i.objects))
	}
}
