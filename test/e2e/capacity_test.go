package e2e

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	spec "github.com/container-storage-interface/spec/lib/go/csi"
	appsv1 "k8s.io/api/apps/v1"
	v1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	storageclient "k8s.io/client-go/kubernetes/typed/storage/v1"
	"k8s.io/client-go/tools/cache"
	watchtools "k8s.io/client-go/tools/watch"

	"github.com/exeunt-io/exeunt/deploy"
	"github.com/exeunt-io/exeunt/internal/sandbox"
)

const twoZones = "--with=topology --topology=zone=a --topology=zone=b --capacity=1Gi"

func TestCapacityObjectsFollowTheDriverTheClassesAndTheNodes(t *testing.T) {
	t.Parallel()
	s := enter(t, private(t, setup{honor: true, bare: true, driver: twoZones}))
	deployment := s.createOwnedPod("sidecar")
	s.createNode("node-a", map[string]string{"zone": "a"})
	s.createNode("node-b", map[string]string{"zone": "b"})
	// Nothing below waits for the hour to pass: changes alone have the driver asked.
	sidecar := s.startSidecar(s.driver, "sidecar", nil, "--enable-capacity", "--capacity-poll-interval=1h",
		"--capacity-ownerref-level=2", "--kube-api-capacity-qps=1000", "--kube-api-capacity-burst=1000")
	gib := int64(1) << 30
	for _, object := range s.awaitCapacity("every zone has its object", fmt.Sprintf("wait/a=%d wait/b=%d", gib, gib)) {
		if got := object.Labels["csi.storage.k8s.io/drivername"] + " " + object.Labels["csi.storage.k8s.io/managed-by"]; got != s.driver.DriverName+" external-provisioner" {
			t.Errorf("labels of %s: %s", object.Name, got)
		}
		if owner := metav1.GetControllerOf(&object); owner == nil || owner.UID != deployment.UID || owner.Kind != "Deployment" {
			t.Errorf("owner of %s: %+v, want the deployment", object.Name, owner)
		}
	}

	s.createClaim("claim", deleteClass)
	volume := s.awaitBound("claim")
	zone := volume.Spec.NodeAffinity.Required.NodeSelectorTerms[0].MatchExpressions[0].Values[0]
	left := s.left(zone)
	if left >= gib {
		t.Fatalf("%d bytes left with a volume made", left)
	}
	both := map[string]int64{"a": gib, "b": gib}
	both[zone] = left
	s.awaitCapacity("a volume was made", fmt.Sprintf("wait/a=%d wait/b=%d", both["a"], both["b"]))
	s.deleteClaim("claim")
	s.awaitCapacity("the volume was deleted", fmt.Sprintf("wait/a=%d wait/b=%d", gib, gib))

	s.must(s.client.StorageV1().StorageClasses().Delete(s.ctx, waitClass, metav1.DeleteOptions{}), "delete class")
	s.awaitCapacity("the class is gone", "")
	again := newClass(waitClass, s.driver.DriverName, v1.PersistentVolumeReclaimDelete, storagev1.VolumeBindingWaitForFirstConsumer)
	_, err := s.client.StorageV1().StorageClasses().Create(s.ctx, &again, metav1.CreateOptions{})
	s.must(err, "create class")
	objects := s.awaitCapacity("the class is back", fmt.Sprintf("wait/a=%d wait/b=%d", gib, gib))

	s.must(s.capacities().Delete(s.ctx, objects[0].Name, metav1.DeleteOptions{}), "delete object")
	_, err = s.capacities().Patch(s.ctx, objects[1].Name, types.MergePatchType, []byte(`{"capacity":"7","maximumVolumeSize":"5"}`), metav1.PatchOptions{})
	s.must(err, "change object")
	deleted, changed := objects[0], objects[1]
	objects = s.awaitCapacity("what somebody else changed is put right", fmt.Sprintf("wait/a=%d wait/b=%d", gib, gib))
	if objects[0].UID == deleted.UID || objects[1].UID != changed.UID {
		t.Error("the deleted object was not made again, or the changed one was replaced")
	}

	_, err = s.client.CoreV1().Nodes().Patch(s.ctx, "node-b", types.MergePatchType, []byte(`{"metadata":{"labels":{"zone":"c"}}}`), metav1.PatchOptions{})
	s.must(err, "move node")
	s.awaitCapacity("a node has moved to where the driver has nothing", fmt.Sprintf("wait/a=%d wait/c=0", gib))
	s.must(s.client.StorageV1().CSINodes().Delete(s.ctx, "node-a", metav1.DeleteOptions{}), "delete CSI node")
	s.awaitCapacity("the driver has left a node", "wait/c=0")
	text, _ := s.get(sidecar, "/metrics")
	for _, line := range []string{"csistoragecapacities_desired_goal 1", "csistoragecapacities_desired_current 1", "csistoragecapacities_obsolete 0"} {
		if !strings.Contains(text, line) {
			t.Errorf("the metrics lack %s", line)
		}
	}
}

func TestWhatDoesNotChangeIsAskedForAgainButNotWritten(t *testing.T) {
	t.Parallel()
	s := enter(t, private(t, setup{honor: true, bare: true, driver: twoZones}))
	s.createNode("node-a", map[string]string{"zone": "a"})
	s.startSidecar(s.driver, "sidecar", nil, "--enable-capacity", "--capacity-poll-interval=200ms", "--capacity-ownerref-level=-1", "--capacity-for-immediate-binding")
	gib := int64(1) << 30
	s.awaitCapacity("every class has its object", fmt.Sprintf("delete/a=%d retain/a=%d wait/a=%d", gib, gib, gib))
	asked := s.callsOf(s.driver, "GetCapacity")
	s.awaitCalls(s.driver, "GetCapacity", asked+9)
	if writes := s.capacityWrites(); writes != 3 {
		t.Errorf("%d writes for 3 objects that stayed as they were", writes)
	}
	// The driver makes a volume for somebody else, which no event tells.
	s.makeVolume("unseen")
	left := s.left("a")
	s.awaitCapacity("the driver has less", fmt.Sprintf("delete/a=%d retain/a=%d wait/a=%d", left, left, left))
}

// createOwnedPod makes a pod that a ReplicaSet controls, which a Deployment controls.
func (s *scene) createOwnedPod(name string) *appsv1.Deployment {
	s.t.Helper()
	meta := func(owners ...metav1.OwnerReference) metav1.ObjectMeta {
		return metav1.ObjectMeta{Namespace: deploy.Namespace, Name: name, OwnerReferences: owners}
	}
	template := v1.PodTemplateSpec{
		ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"app": name}},
		Spec:       v1.PodSpec{Containers: []v1.Container{{Name: "main", Image: "image"}}},
	}
	selector := &metav1.LabelSelector{MatchLabels: map[string]string{"app": name}}
	deployment, err := s.client.AppsV1().Deployments(deploy.Namespace).Create(s.ctx, &appsv1.Deployment{
		ObjectMeta: meta(), Spec: appsv1.DeploymentSpec{Selector: selector, Template: template},
	}, metav1.CreateOptions{})
	s.must(err, "create deployment")
	replicas, err := s.client.AppsV1().ReplicaSets(deploy.Namespace).Create(s.ctx, &appsv1.ReplicaSet{
		ObjectMeta: meta(*metav1.NewControllerRef(deployment, appsv1.SchemeGroupVersion.WithKind("Deployment"))),
		Spec:       appsv1.ReplicaSetSpec{Selector: selector, Template: template},
	}, metav1.CreateOptions{})
	s.must(err, "create replica set")
	_, err = s.client.CoreV1().Pods(deploy.Namespace).Create(s.ctx, &v1.Pod{
		ObjectMeta: meta(*metav1.NewControllerRef(replicas, appsv1.SchemeGroupVersion.WithKind("ReplicaSet"))), Spec: template.Spec,
	}, metav1.CreateOptions{})
	s.must(err, "create pod")
	return deployment
}

// left asks the driver itself.
func (s *scene) left(zone string) int64 {
	s.t.Helper()
	response, err := s.storage().GetCapacity(s.ctx, &spec.GetCapacityRequest{AccessibleTopology: &spec.Topology{Segments: map[string]string{"zone": zone}}})
	s.must(err, "ask the driver")
	return response.GetAvailableCapacity()
}

func (s *scene) capacities() storageclient.CSIStorageCapacityInterface {
	return s.client.StorageV1().CSIStorageCapacities(deploy.Namespace)
}

// awaitCapacity waits until there are exactly the objects in the text, each as
// CLASS/ZONE=BYTES, and returns them in that order.
func (s *scene) awaitCapacity(when, want string) []storagev1.CSIStorageCapacity {
	s.t.Helper()
	objects := map[types.UID]storagev1.CSIStorageCapacity{}
	source := cache.NewListWatchFromClient(s.client.StorageV1().RESTClient(), "csistoragecapacities", deploy.Namespace, fields.Everything())
	precondition := func(store cache.Store) (bool, error) {
		for _, object := range store.List() {
			known := object.(*storagev1.CSIStorageCapacity)
			objects[known.UID] = *known
		}
		return describe(objects) == want, nil
	}
	_, err := watchtools.UntilWithSync(s.ctx, source, &storagev1.CSIStorageCapacity{}, precondition, func(event watch.Event) (bool, error) {
		known := event.Object.(*storagev1.CSIStorageCapacity)
		if event.Type == watch.Deleted {
			delete(objects, known.UID)
		} else {
			objects[known.UID] = *known
		}
		return describe(objects) == want, nil
	})
	if err != nil {
		s.t.Fatalf("%s: waiting for objects %q: %v; there are %q", when, want, err, describe(objects))
	}
	return sorted(objects)
}

func describe(objects map[types.UID]storagev1.CSIStorageCapacity) string {
	var texts []string
	for _, object := range sorted(objects) {
		text := fmt.Sprintf("%s=%d", capacityKey(object), object.Capacity.Value())
		if object.MaximumVolumeSize != nil {
			text += fmt.Sprintf("(%d)", object.MaximumVolumeSize.Value())
		}
		texts = append(texts, text)
	}
	return strings.Join(texts, " ")
}

func sorted(objects map[types.UID]storagev1.CSIStorageCapacity) []storagev1.CSIStorageCapacity {
	return slices.SortedFunc(maps.Values(objects), func(a, b storagev1.CSIStorageCapacity) int {
		return cmp.Compare(capacityKey(a), capacityKey(b))
	})
}

func capacityKey(object storagev1.CSIStorageCapacity) string {
	return object.StorageClassName + "/" + strings.Join(slices.Sorted(maps.Values(object.NodeTopology.MatchLabels)), ",")
}

// awaitCalls waits until the driver has finished so many calls of the method.
func (s *scene) awaitCalls(driver *sandbox.Driver, method string, count int) {
	s.t.Helper()
	for call, err := range sandbox.FollowCalls(s.ctx, driver.CallLog) {
		s.must(err, "follow call log")
		if call.Method == method {
			if count--; count <= 0 {
				return
			}
		}
	}
	s.t.Fatalf("%d calls of %s are missing", count, method)
}

// capacityWrites counts the writes of capacity objects.
func (s *scene) capacityWrites() int {
	s.t.Helper()
	events, err := sandbox.ReadAudit(s.plane.AuditLog)
	s.must(err, "read audit log")
	count := 0
	for _, event := range events {
		if event.Resource == "csistoragecapacities" && event.Writes() {
			count++
		}
	}
	return count
}
