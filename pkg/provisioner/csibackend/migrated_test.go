package csibackend

import (
	"context"
	"errors"
	"testing"

	spec "github.com/container-storage-interface/spec/lib/go/csi"
	"github.com/kubernetes-csi/csi-lib-utils/connection"
	v1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	library "sigs.k8s.io/sig-storage-lib-external-provisioner/v10/controller"
)

// labeledDriver records the metrics label of its last call.
type labeledDriver struct {
	able
	label any
}

func (d *labeledDriver) CreateVolume(ctx context.Context,
	request *spec.CreateVolumeRequest) (*spec.CreateVolumeResponse, error) {
	d.label = ctx.Value(connection.AdditionalInfoKey)
	return d.able.CreateVolume(ctx, request)
}

func TestMigratedCallIsLabeledInMetrics(t *testing.T) {
	for provisioner, want := range map[string]any{"driver": nil,
		"kubernetes.io/plugin": connection.AdditionalInfo{Migrated: "true"}} {
		driver := &labeledDriver{}
		b := &Backend{Driver: driver, Inputs: NewInputs(InputsConfig{Driver: driver, Translator: plugin{}})}
		create(t, b, prepare(t, b, optionsOf(provisioner)))
		if driver.label != want {
			t.Errorf("a call for a class of %s is labeled %v, want %v", provisioner, driver.label, want)
		}
	}
}

// optionsOf returns the options of a volume of the provisioner.
func optionsOf(provisioner string) library.ProvisionOptions {
	claim := &v1.PersistentVolumeClaim{Spec: v1.PersistentVolumeClaimSpec{AccessModes: []v1.PersistentVolumeAccessMode{v1.ReadWriteOnce}}}
	policy := v1.PersistentVolumeReclaimDelete
	class := &storagev1.StorageClass{Provisioner: provisioner, ReclaimPolicy: &policy, Parameters: map[string]string{}}
	return library.ProvisionOptions{StorageClass: class, PVName: "volume", PVC: claim}
}

// strict translates, as csi-translation-lib, volumes of its driver only.
type strict struct{ plugin }

func (s strict) Volume(volume *v1.PersistentVolume) (*v1.PersistentVolume, error) {
	if volume.Spec.CSI != nil {
		return volume, nil
	}
	volume, err := s.plugin.Volume(volume)
	if err == nil {
		volume.Spec.HostPath = nil
	}
	return volume, err
}

func (s strict) InTree(volume *v1.PersistentVolume) (*v1.PersistentVolume, error) {
	if volume.Spec.CSI.Driver != "driver" || volume.Spec.HostPath != nil {
		return nil, errors.New("not a volume of the driver")
	}
	return s.plugin.InTree(volume)
}

// The journal entry of a volume that was being discarded has the volume of the plugin.
func TestRequestIsRepeatedForVolumeOfPlugin(t *testing.T) {
	driver := &able{}
	b := &Backend{Driver: driver, Inputs: NewInputs(InputsConfig{Driver: driver, Translator: strict{}})}
	call := prepare(t, b, optionsOf("kubernetes.io/plugin"))
	want := create(t, b, call)
	call.Volume = want.Volume
	if got := create(t, b, call); !equality.Semantic.DeepEqual(got, want) {
		t.Errorf("answer = %+v, want %+v", got, want)
	}
}
