package intree

import (
	v1 "k8s.io/api/core/v1"

	"github.com/exeunt-io/exeunt/pkg/disk"
)

// NFSName is the name of the plugin of NFS volumes.
const NFSName = prefix + "nfs"

// NFS recycles exported directories. It does not provision or delete them.
type NFS struct {
	// Recycling describes the recycler pods.
	Recycling Recycling
}

// Name implements [Plugin].
func (n *NFS) Name() string { return NFSName }

// Location implements [Plugin].
func (n *NFS) Location(volume *v1.PersistentVolume) string {
	return disk.NFS(volume)
}

// RecyclerNamespace implements [Recycler].
func (n *NFS) RecyclerNamespace() string { return n.Recycling.namespace() }

// RecyclerPod implements [Recycler].
func (n *NFS) RecyclerPod(volume *v1.PersistentVolume) *v1.Pod {
	source := volume.Spec.NFS
	return n.Recycling.pod(volume, v1.VolumeSource{NFS: &v1.NFSVolumeSource{Server: source.Server, Path: source.Path}})
}
