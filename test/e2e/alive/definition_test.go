package alive

import (
	"reflect"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/exeunt-io/exeunt/deploy"
	"github.com/exeunt-io/exeunt/internal/answer"
	"github.com/exeunt-io/exeunt/pkg/alive"
	"github.com/exeunt-io/exeunt/test/sandbox"
)

var definitions = schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"}

// other is a CRD that nothing guards.
const other = `
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: others.example.com, labels: {app.kubernetes.io/part-of: exeunt}}
spec:
  group: example.com
  scope: Cluster
  names: {kind: Other, plural: others}
  versions:
    - name: v1
      served: true
      storage: true
      schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}
`

// deleteDefinition deletes the CRD in each way of row 54 until one is admitted, and returns the last answer.
func (r *rig) deleteDefinition() error {
	crds := r.dynamic(admin).Resource(definitions)
	err := crds.Delete(r.ctx, alive.CRD, metav1.DeleteOptions{})
	for _, selector := range []string{"", deploy.PartOf + "=" + deploy.Project} {
		if denied(err, "exeunt-alive-definition", "") {
			err = crds.DeleteCollection(r.ctx, metav1.DeleteOptions{GracePeriodSeconds: new(int64)},
				metav1.ListOptions{LabelSelector: selector})
		}
	}
	return err
}

// unbind deletes the binding.
func (r *rig) unbind(name string) {
	r.Helper()
	r.must(r.plane.Client().AdmissionregistrationV1().ValidatingAdmissionPolicyBindings().Delete(r.ctx, name,
		metav1.DeleteOptions{}), "delete binding")
}

func TestDefinitionOfAliveCannotBeDeleted(t *testing.T) {
	r := startGuarded(t)
	r.until("the guard is in force", func() bool {
		return r.dynamic(admin).Resource(definitions).Delete(r.ctx, alive.CRD,
			metav1.DeleteOptions{DryRun: []string{metav1.DryRunAll}}) != nil
	})
	r.unbind("exeunt-alive") // it stands alone
	r.until("the other guard is off", func() bool {
		return r.alives(admin).Delete(r.ctx, alive.Name, metav1.DeleteOptions{DryRun: []string{metav1.DryRunAll}}) == nil
	})
	before := r.get()
	if err := r.deleteDefinition(); !denied(err, "exeunt-alive-definition", "would delete Alive") {
		t.Errorf("#54: the deletion of the CRD is answered with %v", err)
	}
	if after := r.get(); after == nil || after.ResourceVersion != before.ResourceVersion {
		t.Errorf("#54: Alive has changed: %+v", after)
	}
	r.must(sandbox.ApplyYAML(r.ctx, r.plane.RESTConfig(), []byte(other)), "apply another CRD")
	if err := r.dynamic(admin).Resource(definitions).Delete(r.ctx, "others.example.com", metav1.DeleteOptions{}); err != nil {
		t.Errorf("another CRD is guarded, too: %v", err)
	}
}

// Both bindings are gone, and the CRD is deleted: Alive gets a deletionTimestamp, and permits nothing.
func TestForcedDeletionOfDefinitionPermitsNothing(t *testing.T) {
	r := startGuarded(t)
	r.must(r.patch(admin, map[string]any{"spec": map[string]any{"confirm": r.id, "confirmedAt": time.Now().UTC().Format(time.RFC3339)}}),
		"write all of a permission but protected")
	r.unbind("exeunt-alive")
	r.unbind("exeunt-alive-definition")
	r.until("the CRD is deleted", func() bool {
		return r.dynamic(admin).Resource(definitions).Delete(r.ctx, alive.CRD, metav1.DeleteOptions{}) == nil
	})
	r.until("Alive is being deleted", func() bool { return r.get().IsDeleted() })
	one := r.get()
	one.Status.Conditions = []metav1.Condition{{Type: alive.ConditionStarted, Status: metav1.ConditionTrue}}
	if !one.IsProtected() || alive.CleanUp(one, time.Now()) {
		t.Errorf("#54: the deleted Alive permits: %+v", one.Spec)
	}
	// The way back: the finalizers off Alive, the kind and its guards again, and a new Alive.
	r.must(r.patch(admin, finalizers()), "remove finalizers")
	r.until("the CRD is gone", func() bool {
		_, err := r.dynamic(admin).Resource(definitions).Get(r.ctx, alive.CRD, metav1.GetOptions{})
		return apierrors.ReasonForError(err) == metav1.StatusReasonNotFound
	})
	r.watchesDefinition()
	r.must(sandbox.Apply(r.ctx, r.plane.RESTConfig(), deploy.Alive), "apply Alive again")
	r.until("a new Alive is created", func() bool { return r.create(admin, func(*alive.Alive) {}) == nil })
	if !r.get().IsProtected() {
		t.Error("the new Alive is not protected")
	}
}

// watchesDefinition checks that alive-controller, unarmed, may wait for the return of the CRD, and reads no other.
func (r *rig) watchesDefinition() {
	r.Helper()
	crds := r.dynamic(controller).Resource(definitions)
	if _, err := crds.Get(r.ctx, alive.CRD, metav1.GetOptions{}); !answer.IsAbsent(err, alive.CRD) {
		r.Errorf("alive-controller reads the CRD that is gone: %v", err)
	}
	only := metav1.ListOptions{FieldSelector: "metadata.name=" + alive.CRD}
	if _, err := crds.List(r.ctx, only); err != nil {
		r.Errorf("alive-controller lists the CRD: %v", err)
	}
	watching, err := crds.Watch(r.ctx, only)
	r.must(err, "watch the CRD as alive-controller")
	watching.Stop()
	if _, err := crds.List(r.ctx, metav1.ListOptions{}); !apierrors.IsForbidden(err) {
		r.Errorf("alive-controller lists all CRDs: %v", err)
	}
}

// The manifests are deleted one by one, as by "kubectl delete -k", Argo CD or Helm without the annotations that keep them.
func TestDeletedManifestsSignalNothing(t *testing.T) {
	r := startGuarded(t)
	before := r.get()
	if err := r.deleteDefinition(); !denied(err, "exeunt-alive-definition", "") {
		t.Errorf("the deletion of the CRD is answered with %v", err)
	}
	policies := r.plane.Client().AdmissionregistrationV1()
	for _, name := range []string{"exeunt-alive", "exeunt-alive-definition"} {
		r.unbind(name)
		r.must(policies.ValidatingAdmissionPolicies().Delete(r.ctx, name, metav1.DeleteOptions{}), "delete policy")
	}
	r.must(r.plane.Client().CoreV1().Namespaces().Delete(r.ctx, deploy.Namespace, metav1.DeleteOptions{}), "delete namespace")
	if after := r.get(); after == nil || after.ResourceVersion != before.ResourceVersion {
		t.Errorf("Alive has changed: %+v", after)
	}
}

func TestSchemaRefusesWhatMeansNothing(t *testing.T) {
	r := startGuarded(t)
	r.unbind("exeunt-alive") // it stands alone
	r.until("the guard is off", func() bool {
		return r.alives(admin).Delete(r.ctx, alive.Name, metav1.DeleteOptions{DryRun: []string{metav1.DryRunAll}}) == nil
	})
	for _, timeout := range []any{"", "0", "0s", "-5m", "59s", "10d", "24h1s", "1.5h", "soon", 60, nil} {
		if err := spec(r, admin, map[string]any{"timeout": timeout}); !apierrors.IsInvalid(err) && timeout != nil {
			t.Errorf("timeout %v: %v, want it invalid", timeout, err)
		}
	}
	for _, timeout := range []string{"1m", "60s", "1h30m", "24h"} {
		if err := spec(r, admin, map[string]any{"timeout": timeout}); err != nil {
			t.Errorf("timeout %s: %v", timeout, err)
		}
	}
	for name, change := range map[string]map[string]any{
		"protected is absent":          {"protected": nil},
		"protected is a text":          {"protected": "false"},
		"permission without its time":  {"protected": false, "confirm": r.id},
		"permission without an ID":     {"protected": false, "confirmedAt": "2026-05-01T12:00:00Z"},
		"confirmedAt is no time":       {"confirmedAt": "yesterday"},
		"last has a name that is none": {"last": []string{"kube-system", "Not_A_Namespace"}},
	} {
		if err := spec(r, admin, change); !apierrors.IsInvalid(err) {
			t.Errorf("%s: %v, want it invalid", name, err)
		}
	}
	for name, status := range map[string]map[string]any{
		"unknown phase": {"phase": "Dead"}, "negative count": {"remainingCount": -1},
	} {
		if err := r.patch(admin, map[string]any{"status": status}, "status"); !apierrors.IsInvalid(err) {
			t.Errorf("%s: %v, want it invalid", name, err)
		}
	}
	if err := r.create(admin, func(a *alive.Alive) { a.Name = "second" }); !apierrors.IsInvalid(err) {
		t.Errorf("a second Alive: %v, want it invalid", err)
	}
}

// What the types of pkg/alive write, the API server keeps.
func TestSchemaKeepsEveryField(t *testing.T) {
	r := startGuarded(t)
	r.in(deleting)
	now := metav1.NewTime(time.Now().UTC().Truncate(time.Second))
	want := alive.Status{Phase: alive.TearingDown, Reason: "Reason", Message: "Message", StartedAt: &now, RemainingCount: 1,
		Remaining: []alive.Remaining{{Object: alive.Object{Kind: "PersistentVolume", Namespace: "n", Name: "pv", UID: "u"},
			ExternalID: "disk", Finalizer: "f", Holder: "h", Reason: "r", Verdict: "stuck", Since: &now, Next: "next"}},
		Conditions: []metav1.Condition{{Type: alive.ConditionStarted, Status: metav1.ConditionTrue, Reason: "Started", Message: "m",
			LastTransitionTime: now, ObservedGeneration: 2}}}
	one := r.get()
	if one.Spec.Timeout == nil || one.Spec.Timeout.Duration != alive.DefaultTimeout {
		t.Errorf("timeout %v, want the default", one.Spec.Timeout)
	}
	one.Status = want
	object, err := alive.ToUnstructured(one)
	r.must(err, "write Alive")
	written, err := r.alives(admin).UpdateStatus(r.ctx, object, metav1.UpdateOptions{})
	r.must(err, "update status")
	if !reflect.DeepEqual(object.Object["status"], written.Object["status"]) {
		t.Errorf("the API server keeps %v of %v", written.Object["status"], object.Object["status"])
	}
	if got := r.get(); !alive.CleanUp(got, time.Now()) {
		t.Errorf("a participant may not clean up: %+v", got)
	}
}
