package runner

import (
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
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
	return &v1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID(name), ResourceVersion: "1"},
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
	owned := ofPod("ending")
	owned.Controller = nil
	r := newTestRunner(t, deletedAlive(true), ending, running,
		testClaim("owned", false, owned), testVolume("owned", v1.VolumeBound),
		testClaim("deleted", true, nil), testVolume("deleted", v1.VolumeBound),
		testClaim("used", false, nil), testVolume("used", v1.VolumeBound),
		testClaim("scratch", false, ofPod("ending")), testVolume("scratch", v1.VolumeBound),
		testClaim("orphan", false, ofPod("gone")), testVolume("orphan", v1.VolumeBound),
		testClaim("cache", false, ofPod("running")), testVolume("cache", v1.VolumeBound),
		testVolume("vanished", v1.VolumeBound), testVolume("released", v1.VolumeReleased))
	done, err := r.Abort(t.Context())
	if err != nil || !done.Started {
		t.Fatalf("%+v, %v", done, err)
	}
	for name, want := range map[string]v1.PersistentVolumeReclaimPolicy{
		"deleted": v1.PersistentVolumeReclaimRetain, "scratch": v1.PersistentVolumeReclaimRetain,
		"owned":  v1.PersistentVolumeReclaimRetain,
		"orphan": v1.PersistentVolumeReclaimRetain, "vanished": v1.PersistentVolumeReclaimRetain, "used": v1.PersistentVolumeReclaimDelete,
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

// abortSaves aborts, checks that the abort says the text, and reports whether the volume keeps its disk.
func (r *Runner) abortSaves(t *testing.T, name, says string) (bool, error) {
	t.Helper()
	done, err := r.Abort(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if text := strings.Join(append(done.Undone, done.Left...), "\n"); !strings.Contains(text, says) {
		t.Errorf("the abort says:\n%s\nwithout %q", text, says)
	}
	volume, err := r.Objects.CoreV1().PersistentVolumes().Get(t.Context(), name, metav1.GetOptions{})
	return err == nil && volume.Spec.PersistentVolumeReclaimPolicy == v1.PersistentVolumeReclaimRetain, err
}

func releaseLate(t *testing.T, r *Runner) {
	update(t, r, "persistentvolumes", "", testVolume("late", v1.VolumeReleased))
}

func loseLate(t *testing.T, r *Runner) {
	volumes := v1.SchemeGroupVersion.WithResource("persistentvolumes")
	if err := r.Objects.(*fake.Clientset).Tracker().Delete(volumes, "", "late"); err != nil {
		t.Fatal(err)
	}
}

// A runner that is amid a batch goes on deleting for a moment (#71).
func TestAbortWaitsForTheBatchInFlight(t *testing.T) {
	for name, tc := range map[string]struct {
		leads func(t *testing.T, r *Runner)
		pass  int
		then  func(t *testing.T, r *Runner)
		said  string
	}{
		"nobody leads":         {nil, 1, nil, "late of claim shop/late keeps its disk"},
		"stops":                {stopsLater, 5, nil, "late of claim shop/late keeps its disk"},
		"is dead":              {holdsLease, 5, nil, "late of claim shop/late keeps its disk"},
		"does not stop":        {renewsLease, 5, nil, "a runner does not say that it has stopped"},
		"released in the end":  {stopsLater, 5, releaseLate, "late of claim shop/late: its disk is being deleted"},
		"all gone between two": {stopsLater, 5, loseLate, "late of claim shop/late is gone"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := newTestRunner(t, deletedAlive(true), testClaim("late", false, nil), testVolume("late", v1.VolumeBound))
				r.Waits.Probe = time.Second
				if tc.leads != nil {
					tc.leads(t, r)
				}
				// A deletion of the batch: the claim is listed once more as it was.
				afterList(r, "persistentvolumeclaims", func(pass int) {
					if pass == tc.pass {
						update(t, r, "persistentvolumeclaims", "shop", testClaim("late", true, nil))
						if tc.then != nil {
							tc.then(t, r)
						}
					}
				})
				saved, err := r.abortSaves(t, "late", tc.said)
				if saved != (tc.then == nil) {
					t.Errorf("the disk is saved: %t, %v", saved, err)
				}
			})
		})
	}
}

// A volume may be released between the list and the patch: then its driver deletes the disk.
func TestReleasedVolumeIsNotCalledSaved(t *testing.T) {
	r := newTestRunner(t, deletedAlive(true), testVolume("late", v1.VolumeBound))
	afterList(r, "persistentvolumeclaims", func(int) {
		volume := testVolume("late", v1.VolumeReleased)
		volume.ResourceVersion = "2"
		update(t, r, "persistentvolumes", "", volume)
	})
	done, err := r.Abort(t.Context())
	if err != nil || slices.ContainsFunc(done.Undone, func(text string) bool { return strings.Contains(text, "late") }) ||
		!slices.Contains(done.Left, "PersistentVolume late of claim shop/late: its disk is being deleted") {
		t.Errorf("%+v, %v", done, err)
	}
}

// afterList calls the function after each list of the resource, with the number of the list.
func afterList(r *Runner, resource string, then func(pass int)) {
	client, pass := r.Objects.(*fake.Clientset), 0
	react := k8stesting.ObjectReaction(client.Tracker())
	client.PrependReactor("list", resource, func(action k8stesting.Action) (bool, runtime.Object, error) {
		handled, list, err := react(action)
		pass++
		then(pass)
		return handled, list, err
	})
}

func update(t *testing.T, r *Runner, resource, namespace string, object runtime.Object) {
	t.Helper()
	tracker := r.Objects.(*fake.Clientset).Tracker()
	if err := tracker.Update(v1.SchemeGroupVersion.WithResource(resource), object, namespace); err != nil {
		t.Fatal(err)
	}
}

func lease(version int) *coordinationv1.Lease {
	return &coordinationv1.Lease{
		ObjectMeta: metav1.ObjectMeta{Namespace: Namespace, Name: LeaseName, ResourceVersion: strconv.Itoa(version)},
		Spec:       coordinationv1.LeaseSpec{HolderIdentity: new("runner"), LeaseDurationSeconds: new(int32(15))}}
}

// holdsLease: a runner leads.
func holdsLease(t *testing.T, r *Runner) {
	t.Helper()
	if err := r.Objects.(*fake.Clientset).Tracker().Add(lease(0)); err != nil {
		t.Fatal(err)
	}
}

// renewsLease: it leads, and renews the Lease for ever.
func renewsLease(t *testing.T, r *Runner) {
	t.Helper()
	holdsLease(t, r)
	afterList(r, "pods", func(pass int) { renew(t, r, pass) })
}

func renew(t *testing.T, r *Runner, pass int) {
	t.Helper()
	resource := coordinationv1.SchemeGroupVersion.WithResource("leases")
	if err := r.Objects.(*fake.Clientset).Tracker().Update(resource, lease(pass), Namespace); err != nil {
		t.Fatal(err)
	}
}

// stopsLater: it leads, and says that it has stopped after some passes.
func stopsLater(t *testing.T, r *Runner) {
	t.Helper()
	holdsLease(t, r)
	afterList(r, "pods", func(pass int) {
		if renew(t, r, pass); pass == 6 {
			stop(t, r)
		}
	})
}

// stop writes the status of a runner that has stopped.
func stop(t *testing.T, r *Runner) {
	t.Helper()
	object, err := r.readAlive(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	object.Status.Phase = alive.Stopped
	object.Status.Conditions = append(object.Status.Conditions, metav1.Condition{Type: alive.ConditionReady,
		Status: metav1.ConditionFalse, Reason: "IsProtected", ObservedGeneration: object.Generation})
	content, err := alive.ToUnstructured(object)
	if err != nil {
		t.Fatal(err)
	}
	if err := r.Dynamic.(*dynamicfake.FakeDynamicClient).Tracker().Update(alive.Resource, content, ""); err != nil {
		t.Fatal(err)
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
