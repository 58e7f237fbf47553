package boundpairs

import (
	"fmt"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"github.com/exeunt-io/exeunt/pkg/finalizer"
	"github.com/exeunt-io/exeunt/pkg/storage"
)

// class is the storage class of all pairs.
const class = "some-class"

// created is when all objects were created.
var created = metav1.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

func size(number int) v1.ResourceList {
	return v1.ResourceList{v1.ResourceStorage: *resource.NewQuantity(int64(1+number%8)<<30, resource.BinarySI)}
}

func uid(kind, number int) types.UID {
	return types.UID(fmt.Sprintf("%08x-0000-4000-8000-%012x", kind, number))
}

func namespace(number int) string { return fmt.Sprintf("team-%d", number%50) }

func claimName(number int) string { return fmt.Sprintf("data-database-%d", number) }

func volumeName(number int) string { return "pvc-" + string(uid(1, number)) }

// Claim returns the claim of the pair with that number, of the CSI driver.
func Claim(number int, driver string) *v1.PersistentVolumeClaim {
	return &v1.PersistentVolumeClaim{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: namespace(number), Name: claimName(number), UID: uid(1, number),
			ResourceVersion: fmt.Sprint(1_000_000 + 4*number), CreationTimestamp: created,
			Finalizers: []string{string(finalizer.ClaimProtection)},
			Labels:     map[string]string{"app.kubernetes.io/name": "database", "app.kubernetes.io/instance": namespace(number)},
			Annotations: map[string]string{
				storage.AnnStorageProvisioner: driver, storage.AnnBetaStorageProvisioner: driver,
				storage.AnnBindCompleted: "yes", storage.AnnBoundByController: "yes",
			},
			ManagedFields: []metav1.ManagedFieldsEntry{
				managed("kube-controller-manager", "",
					`{"f:metadata":{"f:labels":{".":{},"f:app.kubernetes.io/instance":{},"f:app.kubernetes.io/name":{}}},"f:spec":{"f:accessModes":{},"f:resources":{"f:requests":{".":{},"f:storage":{}}},"f:storageClassName":{},"f:volumeMode":{}}}`),
				managed("pv-controller", "",
					`{"f:metadata":{"f:annotations":{".":{},"f:pv.kubernetes.io/bind-completed":{},"f:pv.kubernetes.io/bound-by-controller":{},"f:volume.beta.kubernetes.io/storage-provisioner":{},"f:volume.kubernetes.io/storage-provisioner":{}}},"f:spec":{"f:volumeName":{}}}`),
				managed("pv-controller", "status",
					`{"f:status":{"f:accessModes":{},"f:capacity":{".":{},"f:storage":{}},"f:phase":{}}}`),
			},
		},
		Spec: v1.PersistentVolumeClaimSpec{
			StorageClassName: ptr.To(class), AccessModes: []v1.PersistentVolumeAccessMode{v1.ReadWriteOnce},
			VolumeName: volumeName(number), VolumeMode: ptr.To(v1.PersistentVolumeFilesystem),
			Resources: v1.VolumeResourceRequirements{Requests: size(number)},
		},
		Status: v1.PersistentVolumeClaimStatus{
			Phase: v1.ClaimBound, AccessModes: []v1.PersistentVolumeAccessMode{v1.ReadWriteOnce}, Capacity: size(number),
		},
	}
}

// Volume returns the volume of the pair with that number, of the CSI driver.
func Volume(number int, driver string) *v1.PersistentVolume {
	claim := Claim(number, driver)
	return &v1.PersistentVolume{
		ObjectMeta: metav1.ObjectMeta{
			Name: volumeName(number), UID: uid(2, number), ResourceVersion: fmt.Sprint(1_000_001 + 4*number),
			CreationTimestamp: created,
			Finalizers:        []string{string(finalizer.External), string(finalizer.VolumeProtection)},
			Annotations: map[string]string{
				storage.AnnDynamicallyProvisioned:                            driver,
				"volume.kubernetes.io/provisioner-deletion-secret-name":      "",
				"volume.kubernetes.io/provisioner-deletion-secret-namespace": "",
			},
			ManagedFields: []metav1.ManagedFieldsEntry{
				managed("provisioner", "",
					`{"f:metadata":{"f:annotations":{".":{},"f:pv.kubernetes.io/provisioned-by":{},"f:volume.kubernetes.io/provisioner-deletion-secret-name":{},"f:volume.kubernetes.io/provisioner-deletion-secret-namespace":{}},"f:finalizers":{".":{},"v:\"external-provisioner.volume.kubernetes.io/finalizer\"":{}}},"f:spec":{"f:accessModes":{},"f:capacity":{".":{},"f:storage":{}},"f:claimRef":{".":{},"f:apiVersion":{},"f:kind":{},"f:name":{},"f:namespace":{},"f:resourceVersion":{},"f:uid":{}},"f:csi":{".":{},"f:driver":{},"f:fsType":{},"f:volumeAttributes":{".":{},"f:storage.kubernetes.io/csiProvisionerIdentity":{}},"f:volumeHandle":{}},"f:persistentVolumeReclaimPolicy":{},"f:storageClassName":{},"f:volumeMode":{}}}`),
				managed("pv-controller", "status", `{"f:status":{"f:phase":{}}}`),
			},
		},
		Spec: v1.PersistentVolumeSpec{
			PersistentVolumeReclaimPolicy: v1.PersistentVolumeReclaimDelete, VolumeMode: ptr.To(v1.PersistentVolumeFilesystem),
			StorageClassName: class, AccessModes: claim.Spec.AccessModes, Capacity: size(number),
			ClaimRef: &v1.ObjectReference{
				Kind: "PersistentVolumeClaim", APIVersion: "v1", Namespace: claim.Namespace, Name: claim.Name,
				UID: claim.UID, ResourceVersion: fmt.Sprint(999_000 + 4*number),
			},
			PersistentVolumeSource: v1.PersistentVolumeSource{CSI: &v1.CSIPersistentVolumeSource{
				Driver: driver, VolumeHandle: fmt.Sprintf("vol-%017x", number), FSType: "ext4",
				VolumeAttributes: map[string]string{"storage.kubernetes.io/csiProvisionerIdentity": "1756400000000-8081-" + driver},
			}},
		},
		Status: v1.PersistentVolumeStatus{Phase: v1.VolumeBound, LastPhaseTransitionTime: &created},
	}
}

func managed(manager, subresource, fields string) metav1.ManagedFieldsEntry {
	return metav1.ManagedFieldsEntry{
		Manager: manager, Operation: metav1.ManagedFieldsOperationUpdate, APIVersion: "v1", Time: &created,
		FieldsType: "FieldsV1", FieldsV1: metav1.NewFieldsV1(fields), Subresource: subresource,
	}
}
