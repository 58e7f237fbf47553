package situations

import (
	"strings"
	"time"

	v1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/uuid"

	"github.com/exeunt-io/exeunt/pkg/finalizer"
	"github.com/exeunt-io/exeunt/test/e2e/harness"
	"github.com/exeunt-io/exeunt/test/sandbox"
)

// loops runs pv-controller with leader election; the situation starts the provisioner.
var loops = &harness.Setup{NoProvisioner: true, LeaderElection: true}

// day is long for every Lease of a situation.
const day = 24 * time.Hour

// driverName is the name of the situation's own CSI driver.
func (r *place) driverName() string { return r.Namespace + ".example.com" }

// leaseName is the name of the leader Lease of the situation's provisioner.
func (r *place) leaseName() string { return strings.ReplaceAll(r.driverName(), ".", "-") }

// serve starts the situation's own driver and a provisioner of Exeunt that leads, and creates
// the class of the situation.
func (r *place) serve() {
	r.T.Helper()
	r.driver = harness.NewScriptedDriver(r.Session, false)
	process := r.StartProvisioner(&sandbox.Driver{Socket: r.driver.Socket}, "provisioner-"+r.Namespace, nil,
		"--leader-election", "--leader-election-retry-period=500ms", "--retry-interval-start=200ms")
	r.T.Cleanup(func() { r.StopProcess(process); r.ExpectEnd(process) })
	r.CreateClass(func(class *storagev1.StorageClass) { class.Provisioner = r.driver.Config.Name })
}

// deletePVThenClaim deletes the volume of a new claim, then the claim, and returns the volume
// once it is released.
func (r *place) deletePVThenClaim(prepare func(*v1.PersistentVolume)) *v1.PersistentVolume {
	r.T.Helper()
	r.CreateClaim("claim", r.Namespace)
	volume := r.AwaitBound("claim")
	prepare(volume)
	r.DeleteVolume(volume.Name)
	r.DeleteClaim("claim")
	return r.AwaitVolume(volume.Name, "is released", harness.IsReleased)
}

// released creates a volume of the situation's driver with the provisioner's finalizer whose
// claim is gone, and deletes it. It lacks pv-protection, as pv-controller has left it.
func (r *place) released(change ...func(*v1.PersistentVolume)) *v1.PersistentVolume {
	r.T.Helper()
	volume := r.releasedOnly(change...)
	r.DeleteVolume(volume.Name)
	return volume
}

// releasedOnly is released without the deletion.
func (r *place) releasedOnly(change ...func(*v1.PersistentVolume)) *v1.PersistentVolume {
	r.T.Helper()
	volume := r.CreateVolume("disk", v1.PersistentVolumeReclaimDelete,
		append([]func(*v1.PersistentVolume){r.ofOwnDriver}, change...)...)
	r.editFinalizers(volume, func(list []string) []string { return finalizer.Without(list, finalizer.VolumeProtection) })
	return r.setPhase(volume.Name, v1.VolumeReleased, "")
}

// ofOwnDriver makes the volume one of the situation's driver, with a claim that is gone.
func (r *place) ofOwnDriver(volume *v1.PersistentVolume) {
	volume.Spec.CSI.Driver = r.driverName()
	volume.Annotations = map[string]string{"pv.kubernetes.io/provisioned-by": r.driverName()}
	volume.Finalizers = []string{string(finalizer.External)}
	volume.Spec.ClaimRef = &v1.ObjectReference{APIVersion: "v1", Kind: "PersistentVolumeClaim", Namespace: r.Namespace,
		Name: "claim", UID: uuid.NewUUID()}
}

// setPhase writes the phase and the message of the volume.
func (r *place) setPhase(name string, phase v1.PersistentVolumePhase, message string) *v1.PersistentVolume {
	r.T.Helper()
	volume, err := r.Client.CoreV1().PersistentVolumes().Get(r.Ctx, name, metav1.GetOptions{})
	r.Must(err, "get volume")
	volume.Status = v1.PersistentVolumeStatus{Phase: phase, Message: message}
	volume, err = r.Client.CoreV1().PersistentVolumes().UpdateStatus(r.Ctx, volume, metav1.UpdateOptions{})
	r.Must(err, "set phase")
	return volume
}

// editFinalizers changes the finalizers of the volume, as a program does.
func (r *place) editFinalizers(volume *v1.PersistentVolume, edit func([]string) []string) {
	r.T.Helper()
	now, err := r.Client.CoreV1().PersistentVolumes().Get(r.Ctx, volume.Name, metav1.GetOptions{})
	r.Must(err, "get volume")
	now.Finalizers = edit(now.Finalizers)
	_, err = r.Client.CoreV1().PersistentVolumes().Update(r.Ctx, now, metav1.UpdateOptions{})
	r.Must(err, "change finalizers")
}

// reclaim removes the provisioner's finalizer, as the provisioner does once the disk is deleted.
func (r *place) reclaim(volume string) {
	r.T.Helper()
	r.strip(schema.GroupVersionResource{Version: "v1", Resource: "persistentvolumes"}, "", volume)
}

// strip removes all finalizers of the object, as its programs do.
func (r *place) strip(resource schema.GroupVersionResource, namespace, name string) {
	r.T.Helper()
	_, err := r.dynamic().Resource(resource).Namespace(namespace).
		Patch(r.Ctx, name, types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`), metav1.PatchOptions{})
	r.Must(err, "remove finalizers of "+name)
}

var (
	claims      = schema.GroupVersionResource{Version: "v1", Resource: "persistentvolumeclaims"}
	attachments = schema.GroupVersionResource{Group: "storage.k8s.io", Version: "v1", Resource: "volumeattachments"}
)

// asObject returns the volume as events name it.
func (r *place) asObject(volume *v1.PersistentVolume) *unstructured.Unstructured {
	r.T.Helper()
	fields, err := runtime.DefaultUnstructuredConverter.ToUnstructured(volume)
	r.Must(err, "convert volume")
	object := &unstructured.Unstructured{Object: fields}
	object.SetAPIVersion("v1")
	object.SetKind("PersistentVolume")
	return object
}

// attach creates a VolumeAttachment of the volume to the node.
func (r *place) attach(volume, node string, finalizers ...string) *storagev1.VolumeAttachment {
	r.T.Helper()
	attachment, err := r.Client.StorageV1().VolumeAttachments().Create(r.Ctx, &storagev1.VolumeAttachment{
		ObjectMeta: metav1.ObjectMeta{Name: "csi-" + r.Namespace, Finalizers: finalizers},
		Spec: storagev1.VolumeAttachmentSpec{
			Attacher: r.driverName(), NodeName: node, Source: storagev1.VolumeAttachmentSource{PersistentVolumeName: &volume},
		},
	}, metav1.CreateOptions{})
	r.Must(err, "create VolumeAttachment")
	return attachment
}

// detachFails writes the error of detaching into the status of the attachment.
func (r *place) detachFails(attachment *storagev1.VolumeAttachment, message string) {
	r.T.Helper()
	attachment.Status = storagev1.VolumeAttachmentStatus{Attached: true,
		DetachError: &storagev1.VolumeError{Time: metav1.Now(), Message: message}}
	_, err := r.Client.StorageV1().VolumeAttachments().UpdateStatus(r.Ctx, attachment, metav1.UpdateOptions{})
	r.Must(err, "set status of VolumeAttachment")
}

// detach removes the attachment, as the attacher does.
func (r *place) detach() {
	r.T.Helper()
	name := "csi-" + r.Namespace
	r.strip(attachments, "", name)
	if err := r.Client.StorageV1().VolumeAttachments().Delete(r.Ctx, name, metav1.DeleteOptions{}); err != nil {
		r.T.Logf("delete VolumeAttachment: %v", err)
	}
}
