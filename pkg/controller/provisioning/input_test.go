package provisioning

import (
	"context"
	"testing"

	v1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	library "sigs.k8s.io/sig-storage-lib-external-provisioner/v10/controller"
)

// plain is a driver that can do nothing but make volumes.
type plain struct{ Driver }

func (plain) Name() string       { return "driver" }
func (plain) HasTopology() bool  { return false }
func (plain) TellsWriters() bool { return false }

func TestWhatTheDriverMayStillBeAtIsAskedForAgainUnchanged(t *testing.T) {
	inputs := NewInputs(InputsConfig{Driver: plain{}})
	options := library.ProvisionOptions{
		PVName:       "v",
		PVC:          &v1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{UID: "uid"}, Spec: v1.PersistentVolumeClaimSpec{AccessModes: []v1.PersistentVolumeAccessMode{v1.ReadWriteOnce}}},
		StorageClass: &storagev1.StorageClass{Parameters: map[string]string{"tier": "gold"}},
	}
	tier := func() string {
		t.Helper()
		input, err := inputs.For(context.Background(), options)
		must(t, err)
		return input.Class.Parameters["tier"]
	}
	first, err := inputs.For(context.Background(), options)
	must(t, err)
	inputs.Keep("uid", first)
	options.StorageClass = &storagev1.StorageClass{Parameters: map[string]string{"tier": "silver"}}
	if got := tier(); got != "gold" {
		t.Errorf("tier %q while the driver may be at it, want gold", got)
	}
	inputs.Forget("uid")
	if got := tier(); got != "silver" {
		t.Errorf("tier %q after the outcome was known, want silver", got)
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
