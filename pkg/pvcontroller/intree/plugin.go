package intree

import (
	"context"
	"errors"

	v1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
)

// Plugin serves the volumes of one kind of source.
type Plugin interface {
	// Name is what classes and volumes call the plugin, such as kubernetes.io/nfs.
	Name() string
	// Location says where the data of the volume is, as a path: the data of a
	// volume contains that of every location below it. It is "" for a volume of
	// another kind of source.
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

// Provisioner is a plugin that makes volumes.
type Provisioner interface {
	Plugin
	// Describe returns the volume that is asked for, and makes nothing: name, source,
	// capacity, access modes and reclaim policy. The caller adds what binds it to the
	// claim.
	Describe(request Request) (*v1.PersistentVolume, error)
	// Create makes the volume that Describe returned, in the storage. A volume that
	// exists already is a success.
	Create(ctx context.Context, volume *v1.PersistentVolume) error
}

// Deleter is a plugin that deletes volumes.
type Deleter interface {
	Plugin
	// Delete deletes the volume's data; nil says that it is gone. An error that
	// wraps [ErrInUse] says that it must be asked again later.
	Delete(ctx context.Context, volume *v1.PersistentVolume) error
}

// Recycler is a plugin whose volumes are scrubbed by a pod.
type Recycler interface {
	Plugin
	// RecyclerPod returns the pod that scrubs the volume.
	RecyclerPod(volume *v1.PersistentVolume) *v1.Pod
	// RecyclerNamespace is the namespace of those pods.
	RecyclerNamespace() string
}

// NodeBound is a plugin whose locations are those of one node each.
type NodeBound interface {
	Plugin
	// Apart says whether deleting or recycling the volume cannot reach the data of the
	// other one, though both have one location: they are on different nodes.
	Apart(volume, other *v1.PersistentVolume) bool
}

// Request asks for a volume.
type Request struct {
	// VolumeName is the name of the PersistentVolume.
	VolumeName string
	Claim      *v1.PersistentVolumeClaim
	Class      *storagev1.StorageClass
}

// Policy is the reclaim policy of the volume asked for.
func (r Request) Policy() v1.PersistentVolumeReclaimPolicy {
	if r.Class.ReclaimPolicy == nil {
		return v1.PersistentVolumeReclaimDelete
	}
	return *r.Class.ReclaimPolicy
}

var (
	// ErrDisabled: the plugin may not provision unless a flag says so.
	ErrDisabled = errors.New("disabled")
	// ErrInUse: the volume cannot be deleted yet, which is no failure.
	ErrInUse = errors.New("the volume is still in use")
)
