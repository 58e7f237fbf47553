package inventory_test

import (
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	v1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"github.com/exeunt-io/exeunt/pkg/teardown/inventory"
)

var now = time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)

const preserve = inventory.PreserveLabel

func meta(namespace, name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: namespace, Name: name, UID: types.UID(name), ResourceVersion: "7",
		CreationTimestamp: metav1.Time{Time: now.Add(-time.Hour)}}
}

type edit[T any] func(*T)

func with[T any](object *T, edits []edit[T]) *T {
	for _, e := range edits {
		e(object)
	}
	return object
}

// disk returns a volume of driver ebs, bound to the claim NAMESPACE/data.
func disk(namespace string, edits ...edit[v1.PersistentVolume]) *v1.PersistentVolume {
	object := &v1.PersistentVolume{ObjectMeta: meta("", "disk")}
	object.Annotations = map[string]string{"pv.kubernetes.io/provisioned-by": "ebs"}
	object.Finalizers = []string{"external-provisioner.volume.kubernetes.io/finalizer"}
	object.Spec.PersistentVolumeReclaimPolicy = v1.PersistentVolumeReclaimDelete
	object.Spec.Capacity = v1.ResourceList{v1.ResourceStorage: resource.MustParse("1Gi")}
	object.Spec.CSI = &v1.CSIPersistentVolumeSource{Driver: "ebs", VolumeHandle: "vol-1"}
	object.Spec.ClaimRef = &v1.ObjectReference{Namespace: namespace, Name: "data", UID: "data"}
	object.Status.Phase = v1.VolumeBound
	return with(object, edits)
}

func named(name string) edit[v1.PersistentVolume] {
	return func(v *v1.PersistentVolume) {
		v.Name, v.UID, v.Spec.CSI.VolumeHandle = name, types.UID(name), "handle-of-"+name
		v.Spec.ClaimRef.Name, v.Spec.ClaimRef.UID = "of-"+name, types.UID("of-"+name)
	}
}

func of(driver string) edit[v1.PersistentVolume] {
	return func(v *v1.PersistentVolume) { v.Spec.CSI.Driver = driver }
}

func retain(v *v1.PersistentVolume) {
	v.Spec.PersistentVolumeReclaimPolicy = v1.PersistentVolumeReclaimRetain
}

func marked(v *v1.PersistentVolume) {
	v.Labels = map[string]string{preserve: ""}
	retain(v)
}

// data returns the claim NAMESPACE/data, bound to disk.
func data(namespace string, edits ...edit[v1.PersistentVolumeClaim]) *v1.PersistentVolumeClaim {
	object := &v1.PersistentVolumeClaim{ObjectMeta: meta(namespace, "data")}
	object.Spec.VolumeName = "disk"
	object.Spec.StorageClassName = ptr.To("fast")
	object.Status.Phase = v1.ClaimBound
	return with(object, edits)
}

func boundTo(volume string) edit[v1.PersistentVolumeClaim] {
	return func(c *v1.PersistentVolumeClaim) {
		c.Name, c.UID, c.Spec.VolumeName = "of-"+volume, types.UID("of-"+volume), volume
	}
}

func pending(c *v1.PersistentVolumeClaim) {
	c.Spec.VolumeName, c.Status.Phase = "", v1.ClaimPending
}

func requested(c *v1.PersistentVolumeClaim) {
	pending(c)
	c.Annotations = map[string]string{"volume.kubernetes.io/storage-provisioner": "ebs"}
}

// user returns a pod that uses the claim.
func user(namespace, claim string, edits ...edit[v1.Pod]) *v1.Pod {
	object := &v1.Pod{ObjectMeta: meta(namespace, "pod-of-"+claim)}
	object.Spec.Volumes = []v1.Volume{{Name: "v", VolumeSource: v1.VolumeSource{
		PersistentVolumeClaim: &v1.PersistentVolumeClaimVolumeSource{ClaimName: claim}}}}
	return with(object, edits)
}

// csi returns a pod that runs the CSI driver.
func csi(namespace, driver string) *v1.Pod {
	object := &v1.Pod{ObjectMeta: meta(namespace, "csi-"+driver)}
	object.Spec.Containers = []v1.Container{{Image: "registry/csi-provisioner:v5", Args: []string{"--driver-name=" + driver}}}
	return object
}

func space(name string, edits ...edit[v1.Namespace]) *v1.Namespace {
	return with(&v1.Namespace{ObjectMeta: meta("", name)}, edits)
}

func attached(volume string) *storagev1.VolumeAttachment {
	object := &storagev1.VolumeAttachment{ObjectMeta: meta("", "attachment")}
	object.Spec.Source.PersistentVolumeName = &volume
	return object
}

func service(edits ...edit[v1.Service]) *v1.Service {
	object := &v1.Service{ObjectMeta: meta("shop", "web")}
	object.Spec.Type = v1.ServiceTypeLoadBalancer
	object.Finalizers = []string{"service.kubernetes.io/load-balancer-cleanup"}
	object.Status.LoadBalancer.Ingress = []v1.LoadBalancerIngress{{IP: "192.0.2.1"}}
	return with(object, edits)
}

func ingress(finalizers ...string) *networkingv1.Ingress {
	object := &networkingv1.Ingress{ObjectMeta: meta("shop", "route")}
	object.Finalizers = finalizers
	return object
}

func gateway(finalizers ...string) *unstructured.Unstructured {
	object := custom("gateway.networking.k8s.io/v1", "Gateway", "shop", "gate")
	object.SetFinalizers(finalizers)
	return object
}

func custom(version, kind, namespace, name string) *unstructured.Unstructured {
	object := &unstructured.Unstructured{Object: map[string]any{}}
	object.SetAPIVersion(version)
	object.SetKind(kind)
	object.SetNamespace(namespace)
	object.SetName(name)
	object.SetUID(types.UID(name))
	return object
}

func snapshot(edits ...edit[unstructured.Unstructured]) *unstructured.Unstructured {
	object := custom("snapshot.storage.k8s.io/v1", "VolumeSnapshot", "shop", "snap")
	object.Object["status"] = map[string]any{"boundVolumeSnapshotContentName": "content"}
	return with(object, edits)
}

func contentWith(policy string, edits ...edit[unstructured.Unstructured]) *unstructured.Unstructured {
	object := custom("snapshot.storage.k8s.io/v1", "VolumeSnapshotContent", "", "content")
	object.Object["spec"] = map[string]any{"deletionPolicy": policy, "driver": "ebs",
		"volumeSnapshotRef": map[string]any{"namespace": "shop", "name": "snap", "uid": "snap"}}
	object.Object["status"] = map[string]any{"snapshotHandle": "snap-1", "restoreSize": int64(5)}
	return with(object, edits)
}

func class(mode storagev1.VolumeBindingMode) *storagev1.StorageClass {
	return &storagev1.StorageClass{ObjectMeta: meta("", "fast"), VolumeBindingMode: &mode}
}

func failed(message string, at time.Time) *v1.Event {
	return event("ProvisioningFailed", message, at)
}

func event(reason, message string, at time.Time) *v1.Event {
	object := &v1.Event{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: reason + message}, Reason: reason,
		Message: message, LastTimestamp: metav1.Time{Time: at}}
	object.InvolvedObject = v1.ObjectReference{Kind: "PersistentVolumeClaim", Name: "data", UID: "data"}
	return object
}

func lease(namespace, name, holder string) *coordinationv1.Lease {
	object := &coordinationv1.Lease{ObjectMeta: meta(namespace, name)}
	object.Spec.HolderIdentity = &holder
	return object
}

// fill returns an inventory with the objects.
func fill(options inventory.Options, objects ...any) *inventory.Inventory {
	i := inventory.New(options)
	for _, object := range objects {
		i.Set(object)
	}
	return i
}

// stepsOf returns the steps as "ACTION KIND NAME".
func stepsOf(i *inventory.Inventory, at time.Time) []string {
	found := []string{}
	for _, step := range i.Steps(at) {
		found = append(found, step.Action.String()+" "+step.Kind+" "+step.Name)
	}
	return found
}

// itemsOf returns the items as "OBJECT plan reason evidence".
func itemsOf(i *inventory.Inventory, at time.Time) []string {
	found := []string{}
	for _, item := range i.Items(at) {
		found = append(found, item.Object.Name+" "+string(item.Plan)+" "+item.Reason+" "+string(item.Evidence))
	}
	return found
}
