package storage

import (
	"fmt"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	v1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	storageclient "k8s.io/client-go/kubernetes/typed/storage/v1"

	"github.com/exeunt-io/exeunt/deploy"
	"github.com/exeunt-io/exeunt/test/e2e/harness"
	"github.com/exeunt-io/exeunt/test/sandbox"
)

func TestCapacityObjectsFollowDriverClassesAndNodes(t *testing.T) {
	t.Parallel()
	s := harness.Own(t, harness.Setup{NoProvisioner: true, DriverFlags: harness.TwoZones})
	deployment := createDeploymentPod(s, "sidecar")
	s.CreateNode("node-a", map[string]string{"zone": "a"})
	s.CreateNode("node-b", map[string]string{"zone": "b"})
	// The poll interval is an hour: only changes lead to GetCapacity calls below.
	sidecar := s.StartProvisioner(s.Driver, "sidecar", nil, "--enable-capacity", "--capacity-poll-interval=1h",
		"--capacity-ownerref-level=2", "--kube-api-capacity-qps=1000", "--kube-api-capacity-burst=1000")
	expectOwnedObjects(s, deployment)
	expectCapacityOfVolume(s)
	expectObjectsRestored(s)

	_, err := s.Client.CoreV1().Nodes().Patch(s.Ctx, "node-b", types.MergePatchType,
		[]byte(`{"metadata":{"labels":{"zone":"c"}}}`), metav1.PatchOptions{})
	s.Must(err, "move node")
	s.AwaitCapacity("a node has moved to where the driver has nothing", fmt.Sprintf("wait/a=%d wait/c=0", gib))
	s.Must(s.Client.StorageV1().CSINodes().Delete(s.Ctx, "node-a", metav1.DeleteOptions{}), "delete CSI node")
	s.AwaitCapacity("the driver has left a node", "wait/c=0")
	text, _ := s.HTTPGet(sidecar, "/metrics")
	for _, line := range []string{"csistoragecapacities_desired_goal 1", "csistoragecapacities_desired_current 1",
		"csistoragecapacities_obsolete 0"} {
		if !strings.Contains(text, line) {
			t.Errorf("the metrics lack %s", line)
		}
	}
}

// gib is the capacity of an empty zone.
const gib = int64(1) << 30

// expectOwnedObjects waits for the object of each zone.
func expectOwnedObjects(s *harness.Session, deployment *appsv1.Deployment) {
	s.T.Helper()
	for _, object := range s.AwaitCapacity("every zone has its object", fmt.Sprintf("wait/a=%d wait/b=%d", gib, gib)) {
		if got := object.Labels["csi.storage.k8s.io/drivername"] + " " +
			object.Labels["csi.storage.k8s.io/managed-by"]; got != s.Driver.DriverName+" external-provisioner" {
			s.T.Errorf("labels of %s: %s", object.Name, got)
		}
		if owner := metav1.GetControllerOf(&object); owner == nil || owner.UID != deployment.UID ||
			owner.Kind != "Deployment" {
			s.T.Errorf("owner of %s: %+v, want the deployment", object.Name, owner)
		}
	}
}

// expectCapacityOfVolume creates and deletes a volume, which changes the capacity of its zone.
func expectCapacityOfVolume(s *harness.Session) {
	s.T.Helper()
	s.CreateClaim("claim", harness.DeleteClass)
	volume := s.AwaitBound("claim")
	zone := volume.Spec.NodeAffinity.Required.NodeSelectorTerms[0].MatchExpressions[0].Values[0]
	left := s.FreeCapacity(zone)
	if left >= gib {
		s.T.Fatalf("%d bytes free beside a volume", left)
	}
	both := map[string]int64{"a": gib, "b": gib}
	both[zone] = left
	s.AwaitCapacity("a volume was created", fmt.Sprintf("wait/a=%d wait/b=%d", both["a"], both["b"]))
	s.DeleteClaim("claim")
	s.AwaitCapacity("the volume was deleted", fmt.Sprintf("wait/a=%d wait/b=%d", gib, gib))
}

// expectObjectsRestored deletes and changes the class and objects.
func expectObjectsRestored(s *harness.Session) {
	s.T.Helper()
	s.Must(s.Client.StorageV1().StorageClasses().Delete(s.Ctx, harness.WaitClass, metav1.DeleteOptions{}), "delete class")
	s.AwaitCapacity("the class is gone", "")
	again := harness.NewClass(harness.WaitClass, s.Driver.DriverName, v1.PersistentVolumeReclaimDelete,
		storagev1.VolumeBindingWaitForFirstConsumer)
	s.CreateStorageClass(again)
	objects := s.AwaitCapacity("the class is back", fmt.Sprintf("wait/a=%d wait/b=%d", gib, gib))

	s.Must(capacities(s).Delete(s.Ctx, objects[0].Name, metav1.DeleteOptions{}), "delete object")
	_, err := capacities(s).Patch(s.Ctx, objects[1].Name, types.MergePatchType,
		[]byte(`{"capacity":"7","maximumVolumeSize":"5"}`), metav1.PatchOptions{})
	s.Must(err, "change object")
	deleted, changed := objects[0], objects[1]
	objects = s.AwaitCapacity("the changed object is restored", fmt.Sprintf("wait/a=%d wait/b=%d", gib, gib))
	if objects[0].UID == deleted.UID || objects[1].UID != changed.UID {
		s.T.Error("the deleted object was not created again, or the changed object was replaced")
	}
}

func TestUnchangedCapacityIsPolledButNotWritten(t *testing.T) {
	t.Parallel()
	s := harness.Own(t, harness.Setup{NoProvisioner: true, DriverFlags: harness.TwoZones})
	s.CreateNode("node-a", map[string]string{"zone": "a"})
	s.StartProvisioner(s.Driver, "sidecar", nil, "--enable-capacity", "--capacity-poll-interval=200ms",
		"--capacity-ownerref-level=-1", "--capacity-for-immediate-binding")
	gib := int64(1) << 30
	s.AwaitCapacity("every class has its object", fmt.Sprintf("delete/a=%d retain/a=%d wait/a=%d", gib, gib, gib))
	calls := s.CountDriverCalls(s.Driver, "GetCapacity")
	awaitCalls(s, s.Driver, "GetCapacity", calls+9)
	if writes := capacityWrites(s); writes != 3 {
		t.Errorf("%d writes for 3 unchanged objects", writes)
	}
	// A volume of another client changes the capacity without any event.
	s.CreateStoredVolume("unseen")
	left := s.FreeCapacity("a")
	s.AwaitCapacity("the driver has less", fmt.Sprintf("delete/a=%d retain/a=%d wait/a=%d", left, left, left))
}

// createDeploymentPod creates a pod of a ReplicaSet of a Deployment, and returns the
// Deployment.
func createDeploymentPod(s *harness.Session, name string) *appsv1.Deployment {
	s.T.Helper()
	meta := func(owners ...metav1.OwnerReference) metav1.ObjectMeta {
		return metav1.ObjectMeta{Namespace: deploy.Namespace, Name: name, OwnerReferences: owners}
	}
	template := v1.PodTemplateSpec{
		ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"app": name}},
		Spec:       v1.PodSpec{Containers: []v1.Container{{Name: "main", Image: "image"}}},
	}
	selector := &metav1.LabelSelector{MatchLabels: map[string]string{"app": name}}
	deployment, err := s.Client.AppsV1().Deployments(deploy.Namespace).Create(s.Ctx, &appsv1.Deployment{
		ObjectMeta: meta(), Spec: appsv1.DeploymentSpec{Selector: selector, Template: template},
	}, metav1.CreateOptions{})
	s.Must(err, "create deployment")
	replicas, err := s.Client.AppsV1().ReplicaSets(deploy.Namespace).Create(s.Ctx, &appsv1.ReplicaSet{
		ObjectMeta: meta(*metav1.NewControllerRef(deployment, appsv1.SchemeGroupVersion.WithKind("Deployment"))),
		Spec:       appsv1.ReplicaSetSpec{Selector: selector, Template: template},
	}, metav1.CreateOptions{})
	s.Must(err, "create replica set")
	_, err = s.Client.CoreV1().Pods(deploy.Namespace).Create(s.Ctx, &v1.Pod{
		ObjectMeta: meta(*metav1.NewControllerRef(replicas, appsv1.SchemeGroupVersion.WithKind("ReplicaSet"))),
		Spec:       template.Spec,
	}, metav1.CreateOptions{})
	s.Must(err, "create pod")
	return deployment
}

func capacities(s *harness.Session) storageclient.CSIStorageCapacityInterface {
	return s.Client.StorageV1().CSIStorageCapacities(deploy.Namespace)
}

// awaitCalls waits until the driver has finished count calls of the method.
func awaitCalls(s *harness.Session, driver *sandbox.Driver, method string, count int) {
	s.T.Helper()
	for call, err := range sandbox.FollowCalls(s.Ctx, driver.CallLog) {
		s.Must(err, "follow call log")
		if call.Method == method {
			if count--; count <= 0 {
				return
			}
		}
	}
	s.T.Fatalf("%d calls of %s are missing", count, method)
}

// capacityWrites counts the writes of capacity objects.
func capacityWrites(s *harness.Session) int {
	s.T.Helper()
	events, err := sandbox.ReadAudit(s.Plane.AuditLog)
	s.Must(err, "read audit log")
	count := 0
	for _, event := range events {
		if event.Resource == "csistoragecapacities" && event.Writes() {
			count++
		}
	}
	return count
}
