package csibackend

import (
	"context"
	"fmt"

	v1 "k8s.io/api/core/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/klog/v2"

	"github.com/exeunt-io/exeunt/pkg/disk"
	"github.com/exeunt-io/exeunt/pkg/provisioner/backend"
	"github.com/exeunt-io/exeunt/pkg/provisioner/csi"
)

// DeletionDriver deletes volumes in the storage system.
type DeletionDriver interface {
	Name() string
	// DeleteVolume returns nil if the volume no longer exists.
	DeleteVolume(ctx context.Context, handle string, secrets map[string]string) error
}

// Deleter deletes the volumes of one CSI driver.
type Deleter struct {
	Client kubernetes.Interface
	Driver DeletionDriver
	// Translator translates the volumes of the in-tree plugin that the driver replaced.
	Translator disk.Translator
	// ClassSecret returns the secret that the class of a volume names for its deletion,
	// nil for none; the function is nil if classes are not read.
	ClassSecret func(ctx context.Context, volume *v1.PersistentVolume) (*v1.SecretReference, error)
}

var _ backend.Deleter = (*Deleter)(nil)

// Name returns the name of the driver.
func (d *Deleter) Name() string { return d.Driver.Name() }

func (d *Deleter) disks() disk.Driver {
	return disk.Driver{Name: d.Name(), Translator: d.Translator}
}

// HandleOf returns the volume handle, "" for a volume of another driver.
func (d *Deleter) HandleOf(volume *v1.PersistentVolume) string {
	return d.disks().HandleOf(volume)
}

// Keys returns the volume handle and the plugin's name of the disk. The name finds
// in-tree volumes whose handles are spelled otherwise.
func (d *Deleter) Keys(volume *v1.PersistentVolume) []string {
	var keys []string
	if handle := d.HandleOf(volume); handle != "" {
		keys = append(keys, "handle:"+handle)
	}
	if name := d.Translator.Disk(volume); name != "" {
		keys = append(keys, "plugin:"+name)
	}
	return keys
}

// Same reports whether the two volumes stand for one disk.
func (d *Deleter) Same(a, b *v1.PersistentVolume) bool {
	return d.disks().Same(a, b)
}

// PrepareDelete returns the call of DeleteVolume with the handle of the volume.
func (d *Deleter) PrepareDelete(ctx context.Context, volume *v1.PersistentVolume) (backend.DeleteCall, error) {
	handle, err := d.disks().Handle(volume)
	if err != nil {
		return nil, err
	}
	return d.PrepareDiscard(ctx, volume, handle)
}

// PrepareDiscard reads the secret that the volume names, and returns the call of DeleteVolume
// with the handle.
func (d *Deleter) PrepareDiscard(ctx context.Context, volume *v1.PersistentVolume,
	handle string) (backend.DeleteCall, error) {
	credentials, err := d.credentials(ctx, volume)
	if err != nil {
		return nil, err
	}
	migrated := volume.Spec.CSI == nil // a volume of the in-tree plugin that the driver replaced
	return func(ctx context.Context) error {
		if migrated {
			ctx = csi.Migrated(ctx)
		}
		return d.call(ctx, handle, credentials)
	}, nil
}

func (d *Deleter) call(ctx context.Context, handle string, credentials credentials) error {
	if credentials.missing != "" {
		klog.FromContext(ctx).Info("Deleting the volume without its secret", "reason", credentials.missing)
	}
	if err := d.Driver.DeleteVolume(ctx, handle, credentials.values); err != nil {
		return fmt.Errorf("delete volume %q with driver %s%s: %w", csi.Hide(handle, credentials.values), d.Name(),
			credentials.without(), err)
	}
	return nil
}
