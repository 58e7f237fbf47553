package csibackend

import (
	"context"
	"testing"

	spec "github.com/container-storage-interface/spec/lib/go/csi"
	"github.com/kubernetes-csi/csi-lib-utils/connection"
	v1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	library "sigs.k8s.io/sig-storage-lib-external-provisioner/v10/controller"
)

// labeledDriver records the metrics label of its last call.
type labeledDriver struct {
	able
	label any
}

func (d *labeledDriver) CreateVolume(ctx context.Context, request *spec.CreateVolumeRequest) (*spec.CreateVolumeResponse, error) {
	d.label = ctx.Value(connection.AdditionalInfoKey)
	return d.able.CreateVolume(ctx, request)
}

func TestMigratedCallIsLabeledInMetrics(t *testing.T) {
	for provisioner, want := range map[string]any{"driver": nil, "kubernetes.io/plugin": connection.AdditionalInfo{Migrated: "true"}} {
		driver := &labeledDriver{}
		b := &Backend{Driver: driver, Inputs: NewInputs(InputsConfig{Driver: driver, Translator: plugin{}})}
		claim := &v1.PersistentVolumeClaim{Spec: v1.PersistentVolumeClaimSpec{AccessModes: []v1.PersistentVolumeAccessMode{v1.ReadWriteOnce}}}
		policy := v1.PersistentVolumeReclaimDelete
		class := &storagev1.StorageClass{Provisioner: provisioner, ReclaimPolicy: &policy, Parameters: map[string]string{}}
		create(t, b, prepare(t, b, library.ProvisionOptions{StorageClass: class, PVName: "volume", PVC: claim}))
		if driver.label != want {
			t.Errorf("a call for a class of %s is labeled %v, want %v", provisioner, driver.label, want)
		}
	}
}
