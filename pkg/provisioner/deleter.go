package provisioner

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	v1 "k8s.io/api/core/v1"
	"sigs.k8s.io/sig-storage-lib-external-provisioner/v10/controller"

	"github.com/exeunt-io/exeunt/pkg/disk"
	"github.com/exeunt-io/exeunt/pkg/provisioner/backend"
)

var _ backend.Deleter = (*storage)(nil)

// HandleOf returns what identifies the volume's disk: its source, and its name too if
// volumes may share their source.
func (s *storage) HandleOf(volume *v1.PersistentVolume) string {
	if s.sharedSources {
		return volume.Name + " " + sourceOf(volume)
	}
	return sourceOf(volume)
}

// sourceOf returns the same text for sources that mean the same disk.
func sourceOf(volume *v1.PersistentVolume) string {
	source := volume.Spec.PersistentVolumeSource
	switch {
	case source.CSI != nil:
		return "csi:" + source.CSI.Driver + "/" + source.CSI.VolumeHandle
	case source.HostPath != nil:
		return "hostPath:" + disk.HostPath(volume)
	case source.NFS != nil:
		return "nfs:" + disk.NFS(volume)
	}
	text, err := json.Marshal(source)
	if err != nil { // Kubernetes objects always have a JSON form
		panic(err)
	}
	return string(text)
}

// Keys returns the index key of the volume's disk.
func (s *storage) Keys(volume *v1.PersistentVolume) []string { return []string{s.HandleOf(volume)} }

// Same reports whether the two volumes stand for one disk.
func (s *storage) Same(a, b *v1.PersistentVolume) bool { return s.HandleOf(a) == s.HandleOf(b) }

// Delete calls Delete of the provisioner, unless its DeletionGuard forbids that.
func (s *storage) Delete(ctx context.Context, volume *v1.PersistentVolume) error {
	ctx, cancel := bounded(ctx, s.deletionTimeout)
	defer cancel()
	if guard, ok := s.provisioner.(controller.DeletionGuard); ok && !guard.ShouldDelete(ctx, volume.DeepCopy()) {
		return &backend.Ignored{Reason: "ShouldDelete is false"}
	}
	err := s.callDelete(ctx, volume)
	var ignored *controller.IgnoredError
	if errors.As(err, &ignored) {
		return &backend.Ignored{Reason: ignored.Reason}
	}
	return err
}

// Discard calls Delete of the provisioner with the volume that Provision returned. An
// IgnoredError is a failure: nobody else knows the volume.
func (s *storage) Discard(ctx context.Context, volume *v1.PersistentVolume, _ string) error {
	ctx, cancel := bounded(ctx, s.deletionTimeout)
	defer cancel()
	if err := s.callDelete(ctx, volume); err != nil {
		return fmt.Errorf("delete the unrecorded volume: %w", err)
	}
	return nil
}
