// Package hostpath makes volumes that are directories on one node.
package hostpath

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/sig-storage-lib-external-provisioner/v10/controller"
)

// Provisioner makes one directory for each volume. It is idempotent by volume name:
// Provision for a volume that exists returns that volume.
type Provisioner struct {
	// BaseDir has the directories of all volumes: a clean, absolute path.
	BaseDir string
}

// Provision implements [controller.Provisioner].
func (p *Provisioner) Provision(_ context.Context,
	options controller.ProvisionOptions) (*v1.PersistentVolume, controller.ProvisioningState, error) {
	if options.PVC.Spec.Selector != nil {
		return nil, controller.ProvisioningFinished, errors.New("claims with a selector are not supported")
	}
	directory := filepath.Join(p.BaseDir, options.PVName)
	if err := os.Mkdir(directory, 0o777); err != nil && !errors.Is(err, os.ErrExist) {
		return nil, controller.ProvisioningFinished, fmt.Errorf("make directory: %w", err)
	}
	if err := os.Chmod(directory, 0o777); err != nil { // the umask has no say
		return nil, controller.ProvisioningInBackground, fmt.Errorf("let all users write to the directory: %w", err)
	}
	return &v1.PersistentVolume{
		ObjectMeta: metav1.ObjectMeta{Name: options.PVName},
		Spec: v1.PersistentVolumeSpec{
			PersistentVolumeReclaimPolicy: *options.StorageClass.ReclaimPolicy,
			MountOptions:                  options.StorageClass.MountOptions,
			AccessModes:                   options.PVC.Spec.AccessModes,
			VolumeMode:                    options.PVC.Spec.VolumeMode,
			Capacity:                      v1.ResourceList{v1.ResourceStorage: options.PVC.Spec.Resources.Requests[v1.ResourceStorage]},
			PersistentVolumeSource:        v1.PersistentVolumeSource{HostPath: &v1.HostPathVolumeSource{Path: directory}},
		},
	}, controller.ProvisioningFinished, nil
}

// Delete implements [controller.Provisioner]. A directory that no longer exists is
// deleted; one outside of BaseDir is not this provisioner's.
func (p *Provisioner) Delete(_ context.Context, volume *v1.PersistentVolume) error {
	source := volume.Spec.HostPath
	if source == nil || filepath.Dir(filepath.Clean(source.Path)) != p.BaseDir {
		return &controller.IgnoredError{Reason: "the volume is no directory in " + p.BaseDir}
	}
	if err := os.RemoveAll(source.Path); err != nil {
		return fmt.Errorf("remove directory: %w", err)
	}
	return nil
}
