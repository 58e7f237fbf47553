package provisioner

import (
	"context"
	"strings"
	"testing"

	v1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/sig-storage-lib-external-provisioner/v10/controller"

	"github.com/exeunt-io/exeunt/pkg/provision"
)

// panicking is a provisioner with a defect.
type panicking struct{}

func (*panicking) Provision(context.Context,
	controller.ProvisionOptions) (*v1.PersistentVolume, controller.ProvisioningState, error) {
	panic("defect")
}

func (*panicking) Delete(context.Context, *v1.PersistentVolume) error { panic("defect") }

// guardsPanicking is a provisioner with defects in what is asked before the calls.
type guardsPanicking struct{ scripted }

func (*guardsPanicking) ShouldProvision(context.Context, *v1.PersistentVolumeClaim) bool {
	panic("defect")
}
func (*guardsPanicking) ShouldDelete(context.Context, *v1.PersistentVolume) bool { panic("defect") }

// blockPanicking is a provisioner whose only defect is in SupportsBlock.
type blockPanicking struct{ scripted }

func (*blockPanicking) SupportsBlock(context.Context) bool { panic("defect") }

func TestPanicBeforeACallIsAFailure(t *testing.T) {
	options := controller.ProvisionOptions{PVC: &v1.PersistentVolumeClaim{}, StorageClass: &storagev1.StorageClass{}}
	block := options
	block.PVC = &v1.PersistentVolumeClaim{Spec: v1.PersistentVolumeClaimSpec{VolumeMode: ptr.To(v1.PersistentVolumeBlock)}}
	_, qualifier := newStorage(&guardsPanicking{}).Qualifies(t.Context(), options.PVC)
	_, _, supports := newStorage(&blockPanicking{}).Prepare(t.Context(), block)
	_, guard := newStorage(&guardsPanicking{}).PrepareDelete(t.Context(), &v1.PersistentVolume{})
	for method, err := range map[string]error{"ShouldProvision": qualifier, "SupportsBlock": supports,
		"ShouldDelete": guard} {
		if err == nil || !strings.Contains(err.Error(), method+" panicked: defect") {
			t.Errorf("%s: error = %v", method, err)
		}
	}
}

func TestPanicIsAFailedCall(t *testing.T) {
	s := newStorage(&panicking{})
	if _, failure := provisionOnce(t.Context(), t, s); failure == nil || failure.Outcome != provision.Unanswered ||
		!strings.Contains(failure.Err.Error(), "defect") {
		t.Errorf("Provision: failure = %+v, want %v", failure, provision.Unanswered)
	}
	if err := deleteVolume(t.Context(), s); err == nil || !strings.Contains(err.Error(), "defect") {
		t.Errorf("Delete: error = %v", err)
	}
	if err := discardVolume(t.Context(), s); err == nil || !strings.Contains(err.Error(), "defect") {
		t.Errorf("Discard: error = %v", err)
	}
}
