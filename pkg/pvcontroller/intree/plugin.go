package intree

import (
	"context"
	"errors"

	v1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
)

// Plugin serves the volumes of one kind of source.
type Plugin interface {
	// Name returns the name in storage classes and volumes, such as kubernetes.io/nfs.
	Name() string
	// Location returns the location of the volume's data as a path. The data at a path
	// contains the data at every path below. It returns "" for other kinds of sources.
	Location(volume *v1.PersistentVolume) string
}

// Migration knows which in-tree plugins a CSI driver has replaced.
type Migration interface {
	// Driver returns the CSI driver that replaced the plugin, and false for a plugin
	// that is not migrated.
	Driver(plugin string) (driver string, migrated bool)
	// PluginOf returns the name of the migrated plugin of the volume's source, "" for
	// any other source.
	PluginOf(volume *v1.PersistentVolume) string
}

// Provisioner is a plugin that provisions volumes.
type Provisioner interface {
	Plugin
	// Describe returns the requested volume without creating it: name, source, capacity,
	// access modes and reclaim policy. The caller adds the reference to the claim.
	Describe(request Request) (*v1.PersistentVolume, error)
	// Create creates the described volume in the storage system. An existing volume is a
	// success.
	Create(ctx context.Context, volume *v1.PersistentVolume) error
}

// Deleter is a plugin that deletes volumes.
type Deleter interface {
	Plugin
	// Delete deletes the volume's data. It returns nil once the data is gone, and an error
	// that wraps [ErrInUse] if the call must be repeated later.
	Delete(ctx context.Context, volume *v1.PersistentVolume) error
}

// Selective is a deleter that refuses some volumes.
type Selective interface {
	Deleter
	// CanDelete returns false for a volume that Delete refuses however often it is called.
	CanDelete(volume *v1.PersistentVolume) bool
}

// Recycler is a plugin whose volumes are scrubbed by a pod.
type Recycler interface {
	Plugin
	// RecyclerPod returns the pod that scrubs the volume.
	RecyclerPod(volume *v1.PersistentVolume) *v1.Pod
	// RecyclerNamespace returns the namespace of those pods.
	RecyclerNamespace() string
}

// NodeBound is a plugin whose locations are on one node each.
type NodeBound interface {
	Plugin
	// LocationOnNode returns the location of the data of a volume that the plugin does not serve,
	// but whose data is on a node, too. It returns "" for all others.
	LocationOnNode(volume *v1.PersistentVolume) string
	// Apart reports whether two volumes with the same location are on different nodes, so
	// that deleting or recycling the first does not reach the data of the other.
	Apart(volume, other *v1.PersistentVolume) bool
}

// NodeRefused is the error of a request that the plugin refuses for the selected node: the scheduler is to select
// again.
type NodeRefused struct {
	Err error
}

// Error returns the reason.
func (n *NodeRefused) Error() string { return n.Err.Error() }

// Unwrap returns the reason.
func (n *NodeRefused) Unwrap() error { return n.Err }

// Request is the request for one volume.
type Request struct {
	// VolumeName is the name of the PersistentVolume.
	VolumeName string
	Claim      *v1.PersistentVolumeClaim
	Class      *storagev1.StorageClass
}

// Policy returns the reclaim policy of the requested volume.
func (r Request) Policy() v1.PersistentVolumeReclaimPolicy {
	if r.Class.ReclaimPolicy == nil {
		return v1.PersistentVolumeReclaimDelete
	}
	return *r.Class.ReclaimPolicy
}

var (
	// ErrDisabled: provisioning with the plugin needs a flag.
	ErrDisabled = errors.New("disabled")
	// ErrInUse: the volume cannot be deleted yet. This is no failure.
	ErrInUse = errors.New("the volume is still in use")
)
