package csibackend

import (
	"errors"
	"testing"

	spec "github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/protobuf/proto"
	v1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/exeunt-io/exeunt/pkg/provision"
)

// A driver with several pools tells them apart by the parameters that it is given when
// the volume is made, and by nothing else.
func TestCapacityRequestMatchesCreateVolumeRequest(t *testing.T) {
	block := v1.PersistentVolumeBlock
	mount := &spec.VolumeCapability_Mount{Mount: &spec.VolumeCapability_MountVolume{FsType: "xfs",
		MountFlags: []string{"ro"}}}
	for name, tc := range map[string]struct {
		provisioner string
		mode        *v1.PersistentVolumeMode
		want        *spec.GetCapacityRequest
	}{
		"a file system": {"driver", nil, &spec.GetCapacityRequest{
			Parameters:         map[string]string{"pool": "fast"},
			VolumeCapabilities: []*spec.VolumeCapability{{AccessType: mount, AccessMode: &spec.VolumeCapability_AccessMode{Mode: spec.VolumeCapability_AccessMode_SINGLE_NODE_MULTI_WRITER}}},
		}},
		"a block device": {"driver", &block, &spec.GetCapacityRequest{
			Parameters: map[string]string{"pool": "fast"},
			VolumeCapabilities: []*spec.VolumeCapability{{
				AccessType: &spec.VolumeCapability_Block{Block: &spec.VolumeCapability_BlockVolume{}},
				AccessMode: &spec.VolumeCapability_AccessMode{Mode: spec.VolumeCapability_AccessMode_SINGLE_NODE_MULTI_WRITER},
			}},
		}},
		"a class of the in-tree plugin": {"kubernetes.io/plugin", nil, &spec.GetCapacityRequest{
			Parameters:         map[string]string{"pool": "fast", "translated": "true"},
			VolumeCapabilities: []*spec.VolumeCapability{{AccessType: mount, AccessMode: &spec.VolumeCapability_AccessMode{Mode: spec.VolumeCapability_AccessMode_SINGLE_NODE_MULTI_WRITER}}},
		}},
	} {
		t.Run(name, func(t *testing.T) {
			inputs := NewInputs(InputsConfig{Driver: &able{}, Translator: plugin{}})
			claim := &v1.PersistentVolumeClaim{
				ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "claim"},
				Spec:       v1.PersistentVolumeClaimSpec{VolumeMode: tc.mode, AccessModes: []v1.PersistentVolumeAccessMode{v1.ReadWriteOnce}},
			}
			class := &storagev1.StorageClass{Provisioner: tc.provisioner, MountOptions: []string{"ro"}, Parameters: map[string]string{
				"pool": "fast", "csi.storage.k8s.io/fstype": "xfs",
				"csi.storage.k8s.io/provisioner-secret-name": "secret", "csi.storage.k8s.io/provisioner-secret-namespace": "ns",
			}}
			got, err := inputs.CapacityRequest(t.Context(), claim, class, "volume")
			if err != nil {
				t.Fatal(err)
			}
			if !proto.Equal(got, tc.want) {
				t.Errorf("asked %v, want %v", got, tc.want)
			}
		})
	}
}

func TestCapacityOfRefusedClaimIsNotRequested(t *testing.T) {
	inputs := NewInputs(InputsConfig{Driver: &able{}, Translator: plugin{}})
	claim := &v1.PersistentVolumeClaim{Spec: v1.PersistentVolumeClaimSpec{
		AccessModes: []v1.PersistentVolumeAccessMode{v1.ReadWriteOnce}, Selector: &metav1.LabelSelector{},
	}}
	_, err := inputs.CapacityRequest(t.Context(), claim, &storagev1.StorageClass{Provisioner: "driver"}, "volume")
	var refusal *provision.Refusal
	if !errors.As(err, &refusal) {
		t.Errorf("%v, want a refusal", err)
	}
}
