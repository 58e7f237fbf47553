package provisioner

import (
	"context"
	"strings"
	"testing"

	v1 "k8s.io/api/core/v1"
	"sigs.k8s.io/sig-storage-lib-external-provisioner/v10/controller"

	"github.com/exeunt-io/exeunt/pkg/provision"
)

// panicking is a provisioner with a defect.
type panicking struct{}

func (*panicking) Provision(context.Context, controller.ProvisionOptions) (*v1.PersistentVolume, controller.ProvisioningState, error) {
	panic("defect")
}

func (*panicking) Delete(context.Context, *v1.PersistentVolume) error { panic("defect") }

func TestPanicIsAFailedCall(t *testing.T) {
	s := newStorage(&panicking{})
	if _, failure := provisionOnce(t.Context(), t, s); failure == nil || failure.Outcome != provision.Unanswered || !strings.Contains(failure.Err.Error(), "defect") {
		t.Errorf("Provision: failure = %+v, want %v", failure, provision.Unanswered)
	}
	if err := deleteVolume(t.Context(), s); err == nil || !strings.Contains(err.Error(), "defect") {
		t.Errorf("Delete: error = %v", err)
	}
	if err := discardVolume(t.Context(), s); err == nil || !strings.Contains(err.Error(), "defect") {
		t.Errorf("Discard: error = %v", err)
	}
}
