package runner

import (
	"encoding/json"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	dynamicfake "k8s.io/client-go/dynamic/fake"
	"k8s.io/client-go/kubernetes/fake"
	k8stesting "k8s.io/client-go/testing"

	"github.com/exeunt-io/exeunt/pkg/alive"
	"github.com/exeunt-io/exeunt/pkg/teardown"
)

// A command that has read Alive goes on after an abort (#71), or beside another command.
func TestPermissionDoesNotUndoAnAbort(t *testing.T) {
	of := func(uid types.UID, protected bool, generation int64) *alive.Alive {
		object := deletedAlive(false)
		object.UID, object.Generation, object.Spec.Protected = uid, generation, &protected
		return object
	}
	for name, tc := range map[string]struct {
		before, now *alive.Alive
		permitted   bool
	}{
		"aborted":                         {of("old", false, 2), of("old", true, 3), false},
		"permitted and aborted":           {of("old", true, 1), of("old", true, 3), false},
		"replaced":                        {of("old", true, 1), of("other", true, 1), false},
		"permitted by another":            {of("old", true, 1), of("old", false, 2), true},
		"permitted before and by another": {of("old", false, 2), of("old", false, 3), true},
		"another status":                  {of("old", true, 1), of("old", true, 1), true},
	} {
		t.Run(name, func(t *testing.T) {
			tc.now.ResourceVersion = "2"
			r := newTestRunner(t, tc.now)
			first := true
			refuse := func(k8stesting.Action) (bool, runtime.Object, error) {
				stale := first
				first = false
				return stale, nil, apierrors.NewConflict(schema.GroupResource{Resource: "alives"}, alive.Name, errors.New("stale"))
			}
			r.Dynamic.(*dynamicfake.FakeDynamicClient).PrependReactor("patch", "alives", refuse)
			armed, err := r.permit(t.Context(), tc.before, Word{})
			if (err == nil) != tc.permitted || tc.permitted && armed.IsProtected() {
				t.Errorf("Alive is %+v, %v, want permitted %t", armed, err, tc.permitted)
			}
			live, err := r.readAlive(t.Context())
			if err != nil || !tc.permitted && !live.IsProtected() {
				t.Errorf("the abort is undone: %+v, %v", live, err)
			}
		})
	}
}

// frozen returns policy and binding of the freeze that the teardowns of two Alive have written.
func frozen(policyOf, bindingOf string) (objects []*unstructured.Unstructured) {
	for i, of := range []string{policyOf, bindingOf} {
		kind := []string{"ValidatingAdmissionPolicy", "ValidatingAdmissionPolicyBinding"}[i]
		object := &unstructured.Unstructured{Object: map[string]any{"apiVersion": freezeParts[i].GroupVersion().String(),
			"kind": kind}}
		object.SetName(FreezeName)
		object.SetAnnotations(map[string]string{ofAlive: of})
		objects = append(objects, object)
	}
	return objects
}

// completed returns the record of a teardown that was complete.
func completed(of string) (objects []runtime.Object) {
	for name, phase := range map[string]teardown.Phase{reportName: teardown.Complete, planName + "0": ""} {
		objects = append(objects, &v1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: Namespace, Name: name,
			Labels:      map[string]string{recordLabel: "teardown"},
			Annotations: map[string]string{ofAlive: of, inPhase: string(phase)}},
			Data: map[string]string{documentKey: "{}"}})
	}
	return objects
}

// An earlier teardown was complete; the last one lost its Alive, perhaps before its plan was written (#57).
func TestEarlierRecordIsNoSuccess(t *testing.T) {
	for name, tc := range map[string]struct {
		freeze   []*unstructured.Unstructured
		known    types.UID
		complete bool
	}{
		"freeze of the same":                {frozen("first", "first"), "", true},
		"policy of the same":                {frozen("first", "first")[:1], "", true},
		"freeze of a later one":             {frozen("second", "second"), "", false},
		"policy of a later one":             {frozen("second", "first"), "", false},
		"freeze of nobody":                  {frozen("", ""), "", false},
		"no freeze":                         {nil, "", false},
		"the command worked on it":          {nil, "first", true},
		"the command worked on a later one": {frozen("first", "first"), "second", false},
	} {
		t.Run(name, func(t *testing.T) {
			r := newTestRunner(t, nil, completed("first")...)
			r.commanded = tc.known
			for i, object := range tc.freeze {
				if _, err := r.Dynamic.Resource(freezeParts[i]).Create(t.Context(), object, metav1.CreateOptions{}); err != nil {
					t.Fatal(err)
				}
			}
			outcome, err := r.lastOutcome(t.Context())
			if complete := err == nil && outcome.Phase == teardown.Complete; complete != tc.complete {
				t.Errorf("the outcome is %+v, %v", outcome, err)
			}
			report, err := r.Report(t.Context())
			if err != nil || (len(report.Incomplete) == 0) != tc.complete {
				t.Errorf("the report lacks %q, %v", report.Incomplete, err)
			}
		})
	}
}

// asInstalled lets what a command installs exist.
func asInstalled(r *Runner) *dynamicfake.FakeDynamicClient {
	client := r.Dynamic.(*dynamicfake.FakeDynamicClient)
	client.PrependReactor("get", "*", func(action k8stesting.Action) (bool, runtime.Object, error) {
		name := action.(k8stesting.GetAction).GetName()
		installed := frozen("", "")[0]
		installed.SetName(name)
		return name != alive.Name && name != FreezeName, installed, nil
	})
	return client
}

// beforePermission returns what a command says whose Alive is gone before the permission is written. Record and freeze are
// those of the first teardown, which was complete.
func beforePermission(t *testing.T, object *alive.Alive, answer error) (*Outcome, error) {
	t.Helper()
	r := newTestRunner(t, object, completed("first")...)
	r.Command = true
	for i, part := range frozen("first", "first") {
		if _, err := r.Dynamic.Resource(freezeParts[i]).Create(t.Context(), part, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	client := asInstalled(r)
	client.PrependReactor("patch", "alives", func(k8stesting.Action) (bool, runtime.Object, error) {
		_ = client.Tracker().Delete(alive.Resource, "", alive.Name)
		return true, (*unstructured.Unstructured)(nil), answer
	})
	return r.Teardown(t.Context(), Word{})
}

// The API server answers 404, a webhook with what it likes: another runner completes the teardown meanwhile, or the
// record is of an earlier one (#57).
func TestAliveMayGoBeforeItsPermission(t *testing.T) {
	kind := schema.GroupResource{Resource: "alives"}
	for name, answer := range map[string]error{
		"not found": apierrors.NewNotFound(kind, alive.Name),
		"conflict":  apierrors.NewConflict(kind, alive.Name, errors.New("gone")),
	} {
		t.Run(name, func(t *testing.T) {
			object := deletedAlive(true)
			if outcome, err := beforePermission(t, object, answer); !errors.Is(err, ErrNotCompleted) {
				t.Errorf("with the record of another teardown: %+v, %v", outcome, err)
			}
			object.UID = "first"
			if outcome, err := beforePermission(t, object, answer); err != nil || outcome.Phase != teardown.Complete {
				t.Errorf("with its own record: %+v, %v", outcome, err)
			}
		})
	}
}

// While the command waits until the cluster is ready, the namespace of the Lease goes.
func TestCommandSaysWhyItsRunnerEnded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		object := deletedAlive(false)
		object.DeletionTimestamp = nil
		r := newTestRunner(t, object)
		asInstalled(r)
		leases := fake.NewClientset()
		leases.PrependReactor("get", "leases", func(k8stesting.Action) (bool, runtime.Object, error) {
			return true, nil, errors.New("another runner leads")
		})
		r.Command, r.Leases = true, leases
		if outcome, err := r.Teardown(t.Context(), Word{}); !errors.Is(err, ErrNamespaceGone) {
			t.Errorf("the outcome is %+v, %v", outcome, err)
		}
	})
}

// The freeze says whose it is before anything else is written (#57).
func TestFreezeNamesItsAlive(t *testing.T) {
	r := newTestRunner(t, nil)
	written := 0
	client := r.Dynamic.(*dynamicfake.FakeDynamicClient)
	client.PrependReactor("patch", "*", func(action k8stesting.Action) (bool, runtime.Object, error) {
		object := &unstructured.Unstructured{}
		if err := json.Unmarshal(action.(k8stesting.PatchAction).GetPatch(), &object.Object); err != nil {
			t.Error(err)
		}
		if object.GetAnnotations()[ofAlive] != "old" {
			t.Errorf("%s has the annotations %v", object.GetKind(), object.GetAnnotations())
		}
		written++
		return true, object, nil
	})
	s := newSession(r, nil, deletedAlive(false), time.Time{})
	if err := s.writeFreeze(t.Context(), nil); err != nil || written != 2 {
		t.Errorf("%d parts are written, %v", written, err)
	}
}

// A webhook denies with any code. alive-controller would wait for an event that does not come.
func TestDeniedCreationOfAliveIsAnError(t *testing.T) {
	resource := schema.GroupResource{Group: alive.Group, Resource: "alives"}
	crd := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "apiextensions.k8s.io/v1",
		"kind": "CustomResourceDefinition", "metadata": map[string]any{"name": alive.CRD}}}
	for name, tc := range map[string]struct {
		refusal      error
		defined, err bool
		object       *alive.Alive
	}{
		"not found, of a webhook":      {apierrors.NewNotFound(resource, alive.Name), true, true, nil},
		"already exists, of a webhook": {apierrors.NewAlreadyExists(resource, alive.Name), true, true, nil},
		"forbidden":                    {apierrors.NewForbidden(resource, alive.Name, errors.New("denied")), true, true, nil},
		"the kind is gone":             {apierrors.NewNotFound(resource, ""), false, false, nil},
		"another one was faster":       {apierrors.NewAlreadyExists(resource, alive.Name), true, false, deletedAlive(false)},
	} {
		t.Run(name, func(t *testing.T) {
			r := newTestRunner(t, tc.object)
			objects := r.Dynamic.(*dynamicfake.FakeDynamicClient)
			if tc.defined {
				if err := objects.Tracker().Create(definitions, crd, ""); err != nil {
					t.Fatal(err)
				}
			}
			objects.PrependReactor("create", "alives", func(k8stesting.Action) (bool, runtime.Object, error) {
				return true, nil, tc.refusal
			})
			if err := r.create(t.Context()); (err != nil) != tc.err {
				t.Errorf("error %v, want one: %t", err, tc.err)
			}
		})
	}
}
