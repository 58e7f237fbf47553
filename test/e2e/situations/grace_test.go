package situations

import (
	"encoding/json"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"github.com/exeunt-io/exeunt/pkg/blocker"
	"github.com/exeunt-io/exeunt/pkg/graceful/deadline"
	"github.com/exeunt-io/exeunt/test/e2e/harness"
	"github.com/exeunt-io/exeunt/test/sandbox"
)

// inGrace are situations of custom resources that were deleted with a grace period at a stock API server.
var inGrace = []situation{
	{
		number: "80", name: "a custom resource is in its grace period, and its controller waits", alone: true,
		build: func(r *place) []string {
			r.createDeployment(r.Namespace, "virt", "quay.example/kubevirt/virt-controller:v1.5.0", 1, 1)
			return machine.deleteWithin(r, time.Hour)
		},
		verdict: blocker.Waiting, roots: acts, next: "/object. What follows is for an object that stays longer",
		printed: []string{"\n  deadline: ", "m left), 3600 s after the request of ", "; by annotation exeunt.io/deletion-window"},
		step:    machine.finish,
	},
	{
		number: "80b", name: "a custom resource is in its grace period, and nobody knows its finalizer",
		build:   func(r *place) []string { return widget.deleteWithin(r, time.Hour) },
		verdict: blocker.Waiting, roots: []blocker.Reason{blocker.GracePeriod},
		next: ", the deadline of Widget ", printed: []string{"m left), 3600 s after "},
		step: widget.finish,
	},
	{
		number: "81", name: "the deadline of a custom resource passed while its controller was away", alone: true,
		build: func(r *place) []string {
			r.createDeployment(r.Namespace, "keda-operator", "registry.example:5000/kedacore/keda:2.17", 0, 0)
			r.createLease(r.Namespace, "operator.keda.sh", "keda-operator-7d9f8-x_1", 90*time.Minute, time.Hour)
			args := kedaObject.deleteWithin(r, time.Second)
			end := time.Now().Add(time.Second)
			r.Until("the deadline has passed", func() bool { return time.Now().After(end) })
			return args
		},
		verdict: blocker.Unknown, roots: []blocker.Reason{blocker.ControllerUnseen},
		next: "scale deployment/keda-operator --replicas=1", absent: "# wait",
		printed: []string{"(passed ", "s ago), 1 s after the request of "}, step: kedaObject.finish,
	},
	{
		number: "82", name: "a custom resource was forced, and its controller has not ended it",
		build:   func(r *place) []string { return widget.deleteWithin(r, 0) },
		verdict: blocker.Unknown, roots: []blocker.Reason{blocker.UnknownFinalizer}, next: "let it clean up", absent: "# wait",
		printed: []string{"\n  forced: ", "the object is to end at once; by"}, step: widget.finish,
	},
	{
		number: "83", name: "a custom resource has a grace period in its fields, and no finalizer", alone: true,
		programs: &harness.Setup{NoPrograms: true, SeparateEtcd: true},
		build:    func(r *place) []string { return r.storeInGrace() },
		verdict:  blocker.Stuck, roots: []blocker.Reason{blocker.LeftInGrace},
		next:     "# kubectl delete widgets.situations.example object",
		evidence: []string{"metadata.deletionGracePeriodSeconds is 300, and metadata.finalizers is empty"},
		printed:  []string{"s left), 300 s after the request of ", "; by field metadata.deletionTimestamp"},
		step:     func(r *place) { r.deleteCustom(widget.resource(), "object") },
	},
}

// deleteWithin creates the object "object" with its finalizer, and deletes it with the grace period, as "kubectl exeunt
// delete" does; 0 is force.
func (c custom) deleteWithin(r *place, period time.Duration) []string {
	r.T.Helper()
	resource := r.createCRD(c.group, c.kind)
	object, objects := r.createCustom(resource, c.kind, "object", c.finalizer), r.dynamic().Resource(resource).
		Namespace(r.Namespace)
	now := time.Now().UTC().Truncate(time.Second)
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"uid": object.GetUID(),
		"resourceVersion": object.GetResourceVersion(), "annotations": map[string]any{
			deadline.Annotation: deadline.Window{Start: now, End: now.Add(period)}.String()}}})
	r.Must(err, "make patch")
	_, err = objects.Patch(r.Ctx, "object", types.MergePatchType, patch, metav1.PatchOptions{})
	r.Must(err, "set the deletion window")
	r.Must(objects.Delete(r.Ctx, "object", metav1.DeleteOptions{
		GracePeriodSeconds: ptr.To(int64(period / time.Second)), Preconditions: &metav1.Preconditions{UID: ptr.To(object.GetUID())},
	}), "delete object")
	return []string{resource.GroupResource().String() + "/object"}
}

// storeInGrace stores an object past the API server as no stock one stores it, and as one with KEP-5673 would.
func (r *place) storeInGrace() []string {
	r.T.Helper()
	resource := r.createCRD(widget.group, widget.kind)
	now := time.Now().UTC().Truncate(time.Second)
	value, err := json.Marshal(map[string]any{
		"apiVersion": resource.GroupVersion().String(), "kind": widget.kind, "metadata": map[string]any{
			"name": "object", "namespace": r.Namespace, "uid": "0f2c6a4e-5b1d-4d0e-9d0c-6d1b1a2f3c4d", "generation": 2,
			"creationTimestamp": now.Add(-time.Hour).Format(time.RFC3339),
			"deletionTimestamp": now.Add(4 * time.Minute).Format(time.RFC3339), "deletionGracePeriodSeconds": 300,
		},
	})
	r.Must(err, "write the object")
	key := fmt.Sprintf("/registry/%s/%s/%s/object", resource.Group, resource.Resource, r.Namespace)
	r.Must(r.Plane.Store(r.Ctx, func(yield func(sandbox.Stored, error) bool) {
		yield(sandbox.Stored{Key: key, Value: value}, nil)
	}), "store the object")
	return []string{resource.GroupResource().String() + "/object"}
}
