package runner

import (
	"slices"
	"strings"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	dynamicfake "k8s.io/client-go/dynamic/fake"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/rest"
	k8stesting "k8s.io/client-go/testing"

	"github.com/exeunt-io/exeunt/pkg/alive"
	"github.com/exeunt-io/exeunt/pkg/controller/servertime"
)

const clusterID types.UID = "6e7ab2c0-0000-0000-0000-000000000000"

// newTestRunner returns a runner of a cluster with the objects, and with Alive unless it is nil.
func newTestRunner(t *testing.T, object *alive.Alive, objects ...runtime.Object) *Runner {
	t.Helper()
	var structured []runtime.Object
	if object != nil {
		content, err := alive.ToUnstructured(object)
		if err != nil {
			t.Fatal(err)
		}
		structured = append(structured, content)
	}
	lists := map[schema.GroupVersionResource]string{alive.Resource: "AliveList", definitions: "CustomResourceDefinitionList",
		freezeParts[0]: "ValidatingAdmissionPolicyList", freezeParts[1]: "ValidatingAdmissionPolicyBindingList"}
	waits := DefaultWaits()
	waits.Probe, waits.Freeze = time.Millisecond, time.Second
	objectsOfKinds := dynamicfake.NewSimpleDynamicClientWithCustomListKinds(runtime.NewScheme(), lists, structured...)
	react := k8stesting.ObjectReaction(objectsOfKinds.Tracker())
	objectsOfKinds.PrependReactor("patch", "alives", func(action k8stesting.Action) (bool, runtime.Object, error) {
		handled, written, err := react(action)
		if content, is := written.(*unstructured.Unstructured); is && len(content.GetFinalizers()) == 0 { // as the API server
			err = objectsOfKinds.Tracker().Delete(alive.Resource, "", alive.Name)
		}
		return handled, written, err
	})
	return New(Config{Waits: waits, Cluster: clusterID, Agent: "test", Clients: &Clients{
		Objects: fake.NewClientset(objects...), Clock: servertime.New(), Config: &rest.Config{Host: "https://example.com"},
		Dynamic: objectsOfKinds}})
}

// deletedAlive returns an Alive amid its teardown.
func deletedAlive(started bool) *alive.Alive {
	object := alive.New()
	now := metav1.NewTime(time.Unix(1e9, 0).UTC())
	object.UID, object.ResourceVersion, object.DeletionTimestamp = "old", "1", &now
	protected := false
	object.Spec.Protected, object.Spec.Confirm, object.Spec.ConfirmedAt = &protected, clusterID, &now
	object.Finalizers = append(object.Finalizers, "example.com/buckets")
	if started {
		object.Status.Conditions = []metav1.Condition{{Type: alive.ConditionStarted, Status: metav1.ConditionTrue}}
	}
	return object
}

func testClaim(name string, deleted bool, owner *metav1.OwnerReference) *v1.PersistentVolumeClaim {
	claim := &v1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name, UID: types.UID("claim-" + name)}}
	if deleted {
		claim.DeletionTimestamp, claim.Finalizers = new(metav1.Now()), []string{"kubernetes.io/pvc-protection"}
	}
	if owner != nil {
		claim.OwnerReferences = []metav1.OwnerReference{*owner}
	}
	return claim
}

// testVolume returns the volume of the claim of its name.
func testVolume(name string, phase v1.PersistentVolumePhase) *v1.PersistentVolume {
	return &v1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID(name)},
		Spec: v1.PersistentVolumeSpec{PersistentVolumeReclaimPolicy: v1.PersistentVolumeReclaimDelete,
			ClaimRef: &v1.ObjectReference{Namespace: "shop", Name: name, UID: types.UID("claim-" + name)}},
		Status: v1.PersistentVolumeStatus{Phase: phase}}
}

func ofPod(uid types.UID) *metav1.OwnerReference {
	return &metav1.OwnerReference{APIVersion: "v1", Kind: "Pod", Name: string(uid), UID: uid, Controller: new(true)}
}

// Row 71 after the start.
func TestAbortSavesDisksOfDeletedClaims(t *testing.T) {
	ending := &v1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "ending", UID: "ending",
		DeletionTimestamp: new(metav1.Now()), Finalizers: []string{"example.com/hold"}}}
	running := &v1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "running", UID: "running"}}
	r := newTestRunner(t, deletedAlive(true), ending, running,
		testClaim("deleted", true, nil), testVolume("deleted", v1.VolumeBound),
		testClaim("used", false, nil), testVolume("used", v1.VolumeBound),
		testClaim("scratch", false, ofPod("ending")), testVolume("scratch", v1.VolumeBound),
		testClaim("orphan", false, ofPod("gone")), testVolume("orphan", v1.VolumeBound),
		testClaim("cache", false, ofPod("running")), testVolume("cache", v1.VolumeBound),
		testVolume("released", v1.VolumeReleased))
	done, err := r.Abort(t.Context())
	if err != nil || !done.Started {
		t.Fatalf("%+v, %v", done, err)
	}
	for name, want := range map[string]v1.PersistentVolumeReclaimPolicy{
		"deleted": v1.PersistentVolumeReclaimRetain, "scratch": v1.PersistentVolumeReclaimRetain,
		"orphan": v1.PersistentVolumeReclaimRetain, "used": v1.PersistentVolumeReclaimDelete,
		"cache": v1.PersistentVolumeReclaimDelete, "released": v1.PersistentVolumeReclaimDelete} {
		volume, err := r.Objects.CoreV1().PersistentVolumes().Get(t.Context(), name, metav1.GetOptions{})
		if err != nil || volume.Spec.PersistentVolumeReclaimPolicy != want {
			t.Errorf("volume %s: %v, %v, want %s", name, volume.Spec.PersistentVolumeReclaimPolicy, err, want)
		}
	}
	if !slices.ContainsFunc(done.Left, func(text string) bool { return strings.Contains(text, "released") }) {
		t.Errorf("the volume that is being deleted is not named: %q", done.Left)
	}
	if object, err := r.readAlive(t.Context()); err != nil || !object.IsProtected() || object.UID != "old" {
		t.Errorf("Alive is %+v, %v", object, err)
	}
}

// Row 71 before the start: participants' finalizers hold nothing yet.
func TestAbortBeforeStartUndoesAll(t *testing.T) {
	r := newTestRunner(t, deletedAlive(false))
	for _, part := range freezeParts {
		policy := &unstructured.Unstructured{Object: map[string]any{"apiVersion": part.GroupVersion().String(),
			"kind": map[bool]string{true: "ValidatingAdmissionPolicy", false: "ValidatingAdmissionPolicyBinding"}[part == freezeParts[0]]}}
		policy.SetName(FreezeName)
		if _, err := r.Dynamic.Resource(part).Create(t.Context(), policy, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	done, err := r.Abort(t.Context())
	if err != nil || done.Started {
		t.Fatalf("%+v, %v", done, err)
	}
	object, err := r.readAlive(t.Context())
	if err != nil || object == nil || object.UID == "old" || object.IsDeleted() || !object.IsProtected() {
		t.Errorf("Alive is %+v, %v", object, err)
	}
	for _, part := range freezeParts {
		left, err := r.Dynamic.Resource(part).List(t.Context(), metav1.ListOptions{})
		if err != nil || len(left.Items) != 0 {
			t.Errorf("%s: %d are left, %v", part.Resource, len(left.Items), err)
		}
	}
}
