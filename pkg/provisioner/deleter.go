package provisioner

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	v1 "k8s.io/api/core/v1"
	"sigs.k8s.io/sig-storage-lib-external-provisioner/v10/controller"

	"github.com/exeunt-io/exeunt/pkg/disk"
	"github.com/exeunt-io/exeunt/pkg/provisioner/backend"
	"github.com/exeunt-io/exeunt/pkg/topology"
)

var (
	_ backend.Deleter = (*storage)(nil)
	_ backend.Nested  = (*storage)(nil)
)

// HandleOf returns what identifies the volume's disk: its source, the nodes of a directory
// on nodes, and the volume's name too if volumes may share their source.
func (s *storage) HandleOf(volume *v1.PersistentVolume) string {
	handle := s.key(volume)
	if affinity := volume.Spec.NodeAffinity; isOnNodes(volume) && affinity != nil {
		handle += " " + jsonOf(affinity)
	}
	return handle
}

// key returns the text that volumes with one disk have in common.
func (s *storage) key(volume *v1.PersistentVolume) string {
	if s.sharedSources {
		return volume.Name + " " + sourceOf(volume)
	}
	return sourceOf(volume)
}

// isOnNodes reports whether the volume is a directory, which each node has its own of.
func isOnNodes(volume *v1.PersistentVolume) bool {
	return volume.Spec.HostPath != nil || volume.Spec.Local != nil
}

// What the index keys of directories begin with: those of a node are the same in a local volume.
const (
	hostPathKeys = "hostPath"
	nfsKeys      = "nfs"
)

// defaultPool is the pool of RBD volumes that name none.
const defaultPool = "rbd"

// sourceOf returns the same text for sources that mean the same disk, whether the API
// server has set its defaults or not.
func sourceOf(volume *v1.PersistentVolume) string {
	source := volume.Spec.PersistentVolumeSource
	switch {
	case source.CSI != nil:
		return "csi:" + source.CSI.Driver + "/" + source.CSI.VolumeHandle
	case source.HostPath != nil:
		return disk.Directory(hostPathKeys, disk.HostPath(volume))
	case source.Local != nil:
		return disk.Directory(hostPathKeys, disk.Local(volume))
	case source.NFS != nil:
		return disk.Directory(nfsKeys, disk.NFS(volume))
	case source.ISCSI != nil:
		return fmt.Sprintf("iscsi:%s/%s/%d", source.ISCSI.TargetPortal, source.ISCSI.IQN, source.ISCSI.Lun)
	case source.RBD != nil:
		return fmt.Sprintf("rbd:%s/%s/%s", strings.Join(slices.Sorted(slices.Values(source.RBD.CephMonitors)), ","),
			cmp.Or(source.RBD.RBDPool, defaultPool), source.RBD.RBDImage)
	case source.AzureDisk != nil:
		return "azureDisk:" + source.AzureDisk.DataDiskURI
	case source.ScaleIO != nil:
		return fmt.Sprintf("scaleIO:%s/%s/%s", source.ScaleIO.Gateway, source.ScaleIO.System, source.ScaleIO.VolumeName)
	}
	return identityOf(source) // the API server has no defaults for other sources
}

// identityOf returns the source without the fields that say how a disk is mounted.
func identityOf(source v1.PersistentVolumeSource) string {
	var fields map[string]map[string]any
	if err := json.Unmarshal([]byte(jsonOf(source)), &fields); err != nil { // each source is an object
		panic(err)
	}
	for _, field := range fields {
		for _, mounted := range []string{"readOnly", "fsType", "secretRef", "secretFile", "user"} {
			delete(field, mounted)
		}
		if monitors, ok := field["monitors"].([]any); ok {
			slices.SortFunc(monitors, func(a, b any) int { return cmp.Compare(fmt.Sprint(a), fmt.Sprint(b)) })
		}
	}
	return jsonOf(fields)
}

func jsonOf(part any) string {
	text, err := json.Marshal(part)
	if err != nil { // Kubernetes objects always have a JSON form
		panic(err)
	}
	return string(text)
}

// Keys returns the index key of the volume's disk.
func (s *storage) Keys(volume *v1.PersistentVolume) []string { return []string{s.key(volume)} }

// Same reports whether the two volumes stand for one disk. A directory of one node is
// another disk than that of another node.
func (s *storage) Same(a, b *v1.PersistentVolume) bool {
	separate := isOnNodes(a) && topology.Disjoint(a.Spec.NodeAffinity, b.Spec.NodeAffinity)
	return s.key(a) == s.key(b) && !separate
}

// Enclosing returns the index keys of the directories around that of the volume.
func (s *storage) Enclosing(volume *v1.PersistentVolume) []string {
	switch source := volume.Spec.PersistentVolumeSource; {
	case s.sharedSources:
		return nil
	case source.HostPath != nil:
		return disk.Enclosing(hostPathKeys, disk.HostPath(volume))[1:]
	case source.Local != nil:
		return disk.Enclosing(hostPathKeys, disk.Local(volume))[1:]
	case source.NFS != nil:
		return disk.Enclosing(nfsKeys, disk.NFS(volume))[1:]
	}
	return nil
}

// Inside reports whether the directory of the other volume has that of the volume inside.
func (s *storage) Inside(volume, other *v1.PersistentVolume) bool {
	separate := isOnNodes(volume) && topology.Disjoint(volume.Spec.NodeAffinity, other.Spec.NodeAffinity)
	return slices.Contains(s.Enclosing(volume), s.key(other)) && !separate
}

// PrepareDelete asks the DeletionGuard of the provisioner, and returns the call of Delete.
func (s *storage) PrepareDelete(ctx context.Context, volume *v1.PersistentVolume) (backend.DeleteCall, error) {
	ctx, cancel := bounded(ctx, s.deletionTimeout)
	defer cancel()
	if allowed, err := s.callShouldDelete(ctx, volume); err != nil {
		return nil, err
	} else if !allowed {
		return nil, &backend.Ignored{Reason: "ShouldDelete is false"}
	}
	return func(ctx context.Context) error {
		err := s.callDelete(ctx, volume)
		var ignored *controller.IgnoredError
		if errors.As(err, &ignored) {
			return &backend.Ignored{Reason: ignored.Reason}
		}
		return err
	}, nil
}

// PrepareDiscard returns the call of Delete with the volume that Provision returned. An
// IgnoredError is a failure: nobody else knows the volume.
func (s *storage) PrepareDiscard(_ context.Context, volume *v1.PersistentVolume, _ string) (backend.DeleteCall, error) {
	return func(ctx context.Context) error {
		if err := s.callDelete(ctx, volume); err != nil {
			return fmt.Errorf("delete the unrecorded volume: %w", err)
		}
		return nil
	}, nil
}
