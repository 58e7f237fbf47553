package journal_test

import (
	"fmt"

	"github.com/container-storage-interface/spec/lib/go/csi"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	. "github.com/exeunt-io/exeunt/pkg/journal"
)

// claimUID returns a UID as the API server makes it; equal numbers make equal UIDs.
func claimUID(number int) types.UID {
	return types.UID(fmt.Sprintf("%08x-c0de-4c1a-8b5e-0123456789ab", number*0x9e3779b1&0xffffffff))
}

// newEntry returns an entry as a zonal driver with secrets has it.
func newEntry(number int) Entry {
	uid := claimUID(number)
	claim := fmt.Sprintf("data-postgres-%d", number)
	return Entry{
		UID: uid, Namespace: "production", Name: claim, Node: "ip-10-0-12-34.eu-central-1.compute.internal",
		Request: Request{CreateVolumeRequest: newRequest("pvc-"+string(uid), claim)},
		Volume:  newVolume(uid, claim),
		Secret:  &Secret{Namespace: "kube-system", Name: "ebs-credentials", UID: "7c1f2a31-6a64-4b0c-9a51-5f2c4c0a9d10"},
	}
}

func newRequest(volume, claim string) *csi.CreateVolumeRequest {
	zones := []*csi.Topology{}
	for _, zone := range []string{"c", "a", "b"} {
		zones = append(zones, &csi.Topology{Segments: map[string]string{"topology.kubernetes.io/zone": "eu-central-1" +
			zone}})
	}
	return &csi.CreateVolumeRequest{
		Name:          volume,
		CapacityRange: &csi.CapacityRange{RequiredBytes: 100 << 30},
		VolumeCapabilities: []*csi.VolumeCapability{{
			AccessType: &csi.VolumeCapability_Mount{Mount: &csi.VolumeCapability_MountVolume{FsType: "ext4"}},
			AccessMode: &csi.VolumeCapability_AccessMode{Mode: csi.VolumeCapability_AccessMode_SINGLE_NODE_WRITER},
		}},
		Parameters: map[string]string{
			"type": "gp3", "encrypted": "true",
			"csi.storage.k8s.io/pv/name": volume, "csi.storage.k8s.io/pvc/name": claim,
			"csi.storage.k8s.io/pvc/namespace": "production",
		},
		AccessibilityRequirements: &csi.TopologyRequirement{Requisite: zones, Preferred: zones},
	}
}

// newVolume returns the object of the volume, with the reference to the claim.
func newVolume(uid types.UID, claim string) *v1.PersistentVolume {
	mode := v1.PersistentVolumeFilesystem
	return &v1.PersistentVolume{
		ObjectMeta: metav1.ObjectMeta{
			Name: "pvc-" + string(uid),
			Annotations: map[string]string{
				"pv.kubernetes.io/provisioned-by":                            "ebs.csi.aws.com",
				"volume.kubernetes.io/provisioner-deletion-secret-name":      "ebs-credentials",
				"volume.kubernetes.io/provisioner-deletion-secret-namespace": "kube-system",
			},
			Finalizers: []string{"external-provisioner.volume.kubernetes.io/finalizer"},
		},
		Spec: v1.PersistentVolumeSpec{
			Capacity: v1.ResourceList{v1.ResourceStorage: resource.MustParse("100Gi")},
			PersistentVolumeSource: v1.PersistentVolumeSource{CSI: &v1.CSIPersistentVolumeSource{
				Driver: "ebs.csi.aws.com", FSType: "ext4",
				VolumeAttributes: map[string]string{"storage.kubernetes.io/csiProvisionerIdentity": "1763805466123-4711-ebs.csi.aws.com"},
			}},
			AccessModes: []v1.PersistentVolumeAccessMode{v1.ReadWriteOnce},
			ClaimRef: &v1.ObjectReference{Kind: "PersistentVolumeClaim", APIVersion: "v1",
				Namespace: "production", Name: claim, UID: uid, ResourceVersion: "123456"},
			PersistentVolumeReclaimPolicy: v1.PersistentVolumeReclaimDelete,
			StorageClassName:              "encrypted-gp3", VolumeMode: &mode,
		},
	}
}
