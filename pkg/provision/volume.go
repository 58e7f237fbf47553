package provision

import (
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

// Unusable says what is wrong with the driver's volume, "" if it can be used.
func Unusable(request *csi.CreateVolumeRequest, volume *csi.Volume) string {
	const longest = 128 // bytes, CSI specification "Size Limits"
	required := request.GetCapacityRange().GetRequiredBytes()
	switch id := volume.GetVolumeId(); {
	case id == "":
		return "the driver returned no volume handle"
	case len(id) > longest:
		return "the driver returned a volume handle of more than 128 bytes"
	case volume.GetCapacityBytes() != 0 && volume.GetCapacityBytes() < required:
		return "the driver returned a volume smaller than requested"
	}
	return ""
}

// Volume returns the object for a volume that the driver made, without claimRef.
// With honor (the gate HonorPVReclaimPolicy) and the policy Delete it carries the
// finalizer External from its first write on (KEP-2644, "CSI Driver volumes").
func Volume(in Input, request *csi.CreateVolumeRequest, made *csi.Volume, driver string, honor bool) *v1.PersistentVolume {
	policy := v1.PersistentVolumeReclaimDelete
	if in.Class.ReclaimPolicy != nil {
		policy = *in.Class.ReclaimPolicy
	}
	size := max(made.GetCapacityBytes(), request.GetCapacityRange().GetRequiredBytes())
	volume := &v1.PersistentVolume{
		ObjectMeta: metav1.ObjectMeta{
			Name: in.Name,
			Annotations: map[string]string{
				binding.ProvisionedBy: driver, DeletionSecretName: "", DeletionSecretNamespace: "",
			},
		},
		Spec: v1.PersistentVolumeSpec{
			PersistentVolumeReclaimPolicy: policy,
			AccessModes:                   in.Claim.Spec.AccessModes,
			Capacity:                      v1.ResourceList{v1.ResourceStorage: *resource.NewQuantity(size, resource.BinarySI)},
			MountOptions:                  in.Class.MountOptions,
			VolumeMode:                    in.Claim.Spec.VolumeMode,
			StorageClassName:              in.Class.Name,
			PersistentVolumeSource:        source(request, made, driver),
		},
	}
	if in.Topology {
		volume.Spec.NodeAffinity = topology.Affinity(made.GetAccessibleTopology())
	}
	if honor && policy == v1.PersistentVolumeReclaimDelete {
		volume.Finalizers = finalizer.With(nil, finalizer.External)
	}
	return volume
}

func source(request *csi.CreateVolumeRequest, made *csi.Volume, driver string) v1.PersistentVolumeSource {
	return v1.PersistentVolumeSource{CSI: &v1.CSIPersistentVolumeSource{
		Driver:           driver,
		VolumeHandle:     made.GetVolumeId(),
		VolumeAttributes: made.GetVolumeContext(),
		FSType:           request.GetVolumeCapabilities()[0].GetMount().GetFsType(),
	}}
}
