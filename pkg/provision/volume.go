package provision

import (
	"maps"

	"github.com/container-storage-interface/spec/lib/go/csi"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/exeunt-io/exeunt/pkg/binding"
	"github.com/exeunt-io/exeunt/pkg/finalizer"
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

// identityAttribute is the volume attribute that tells who made the volume.
const identityAttribute = "storage.kubernetes.io/csiProvisionerIdentity"

// Volume returns the object for a volume that the driver made, in CSI terms and
// without claimRef. With honor (the gate HonorPVReclaimPolicy) and the policy Delete
// it carries the finalizer External from its first write on (KEP-2644, "CSI Driver
// volumes").
func Volume(in Input, request *csi.CreateVolumeRequest, made *csi.Volume, honor bool) *v1.PersistentVolume {
	policy := v1.PersistentVolumeReclaimDelete
	if in.Class.ReclaimPolicy != nil {
		policy = *in.Class.ReclaimPolicy
	}
	size := max(made.GetCapacityBytes(), request.GetCapacityRange().GetRequiredBytes())
	volume := &v1.PersistentVolume{
		ObjectMeta: metav1.ObjectMeta{Name: in.Name, Annotations: annotations(in)},
		Spec: v1.PersistentVolumeSpec{
			PersistentVolumeReclaimPolicy: policy,
			AccessModes:                   in.Claim.Spec.AccessModes,
			Capacity:                      v1.ResourceList{v1.ResourceStorage: *resource.NewQuantity(size, resource.BinarySI)},
			MountOptions:                  in.Class.MountOptions,
			VolumeMode:                    in.Claim.Spec.VolumeMode,
			StorageClassName:              in.Class.Name,
			PersistentVolumeSource:        v1.PersistentVolumeSource{CSI: source(in, request, made)},
		},
	}
	if name := in.Claim.Spec.VolumeAttributesClassName; deref(name) != "" {
		volume.Spec.VolumeAttributesClassName = name
	}
	if in.Driver.Topology {
		volume.Spec.NodeAffinity = topology.Affinity(made.GetAccessibleTopology())
	}
	if honor && policy == v1.PersistentVolumeReclaimDelete {
		volume.Finalizers = finalizer.With(nil, finalizer.External)
	}
	return volume
}

func annotations(in Input) map[string]string {
	all := map[string]string{binding.ProvisionedBy: in.ProvisionedBy, DeletionSecretName: "", DeletionSecretNamespace: ""}
	if secret := in.Secrets.Provisioner; secret != nil {
		all[DeletionSecretName], all[DeletionSecretNamespace] = secret.Name, secret.Namespace
	}
	if secret := in.Secrets.ControllerModify; secret != nil {
		all[modifySecretName], all[modifySecretNamespace] = secret.Name, secret.Namespace
	}
	return all
}

func source(in Input, request *csi.CreateVolumeRequest, made *csi.Volume) *v1.CSIPersistentVolumeSource {
	attributes := map[string]string{}
	if in.Settings.Identity != "" {
		attributes[identityAttribute] = in.Settings.Identity
	}
	maps.Copy(attributes, made.GetVolumeContext())
	return &v1.CSIPersistentVolumeSource{
		Driver:                     in.Driver.Name,
		VolumeHandle:               made.GetVolumeId(),
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

// readsOnly says whether many nodes read the volume and none writes to it.
func readsOnly(modes []csi.VolumeCapability_AccessMode_Mode) bool {
	return len(modes) == 1 && modes[0] == csi.VolumeCapability_AccessMode_MULTI_NODE_READER_ONLY
}
