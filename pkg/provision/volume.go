package provision

import (
	"maps"

	"github.com/container-storage-interface/spec/lib/go/csi"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/exeunt-io/exeunt/pkg/topology"
)

// Annotations that name the secret that DeleteVolume needs; a volume without one
// carries them empty.
const (
	DeletionSecretName      = "volume.kubernetes.io/provisioner-deletion-secret-name"
	DeletionSecretNamespace = "volume.kubernetes.io/provisioner-deletion-secret-namespace"
)

// Annotations that name the secret that changing the volume needs; a volume without
// one does not carry them.
const (
	modifySecretName      = "volume.kubernetes.io/controller-modify-secret-name"
	modifySecretNamespace = "volume.kubernetes.io/controller-modify-secret-namespace"
)

// identityAttribute is the volume attribute with the identity of the provisioner.
const identityAttribute = "storage.kubernetes.io/csiProvisionerIdentity"

// Skeleton returns the PersistentVolume of a CSI volume as far as it is known before the
// call, without its [Assignment].
func Skeleton(in Input, request *csi.CreateVolumeRequest) *v1.PersistentVolume {
	volume := &v1.PersistentVolume{
		ObjectMeta: metav1.ObjectMeta{Name: in.Name, Annotations: secretAnnotations(in.Secrets)},
		Spec: v1.PersistentVolumeSpec{
			PersistentVolumeReclaimPolicy: ptr.Deref(in.Class.ReclaimPolicy, v1.PersistentVolumeReclaimDelete),
			AccessModes:                   in.Claim.Spec.AccessModes,
			MountOptions:                  in.Class.MountOptions,
			VolumeMode:                    in.Claim.Spec.VolumeMode,
			PersistentVolumeSource:        v1.PersistentVolumeSource{CSI: source(in, request)},
		},
	}
	if name := in.Claim.Spec.VolumeAttributesClassName; ptr.Deref(name, "") != "" {
		volume.Spec.VolumeAttributesClassName = name
	}
	return volume
}

// Complete returns a copy of the skeleton with what the driver said of the volume.
// hasTopology reports whether the driver has topology.
func Complete(skeleton *v1.PersistentVolume, request *csi.CreateVolumeRequest, created *csi.Volume,
	hasTopology bool) *v1.PersistentVolume {
	volume := skeleton.DeepCopy()
	size := max(created.GetCapacityBytes(), request.GetCapacityRange().GetRequiredBytes())
	volume.Spec.Capacity = v1.ResourceList{v1.ResourceStorage: *resource.NewQuantity(size, resource.BinarySI)}
	if volume.Spec.CSI == nil { // only a forged journal entry has none
		volume.Spec.CSI = &v1.CSIPersistentVolumeSource{}
	}
	volume.Spec.CSI.VolumeHandle = created.GetVolumeId()
	if volume.Spec.CSI.VolumeAttributes == nil {
		volume.Spec.CSI.VolumeAttributes = map[string]string{}
	}
	maps.Copy(volume.Spec.CSI.VolumeAttributes, created.GetVolumeContext())
	if hasTopology {
		volume.Spec.NodeAffinity = topology.Affinity(created.GetAccessibleTopology())
	}
	return volume
}

func secretAnnotations(secrets Secrets) map[string]string {
	all := map[string]string{DeletionSecretName: "", DeletionSecretNamespace: ""}
	if secret := secrets.Provisioner; secret != nil {
		all[DeletionSecretName], all[DeletionSecretNamespace] = secret.Name, secret.Namespace
	}
	if secret := secrets.ControllerModify; secret != nil {
		all[modifySecretName], all[modifySecretNamespace] = secret.Name, secret.Namespace
	}
	return all
}

func source(in Input, request *csi.CreateVolumeRequest) *v1.CSIPersistentVolumeSource {
	attributes := map[string]string{}
	if in.Settings.Identity != "" {
		attributes[identityAttribute] = in.Settings.Identity
	}
	return &v1.CSIPersistentVolumeSource{
		Driver:                     in.Driver.Name,
		VolumeAttributes:           attributes,
		FSType:                     request.GetVolumeCapabilities()[0].GetMount().GetFsType(),
		ReadOnly:                   in.Settings.PublishReadOnly && readsOnly(in.AccessModes),
		ControllerPublishSecretRef: in.Secrets.ControllerPublish,
		ControllerExpandSecretRef:  in.Secrets.ControllerExpand,
		NodeStageSecretRef:         in.Secrets.NodeStage,
		NodePublishSecretRef:       in.Secrets.NodePublish,
		NodeExpandSecretRef:        in.Secrets.NodeExpand,
	}
}

// readsOnly reports whether many nodes read the volume and none writes to it.
func readsOnly(modes []csi.VolumeCapability_AccessMode_Mode) bool {
	return len(modes) == 1 && modes[0] == csi.VolumeCapability_AccessMode_MULTI_NODE_READER_ONLY
}
