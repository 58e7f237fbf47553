package provision

import (
	"github.com/container-storage-interface/spec/lib/go/csi"
	v1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
)

// Driver is the name and the capabilities of a CSI driver.
type Driver struct {
	Name string
	// Topology: not every node reaches every volume.
	Topology bool
	// Snapshots and Clones: volumes can be created from a snapshot, or from another
	// volume.
	Snapshots, Clones bool
	// Modifies: volumes take the parameters of a VolumeAttributesClass.
	Modifies bool
}

// Settings are what the administrator chose for all volumes of a driver.
type Settings struct {
	// NamePrefix starts the names of volumes. NameLength is how many characters of
	// the claim's UID follow, without its dashes; -1 is all of them, with the dashes.
	NamePrefix string
	NameLength int
	// DefaultFSType serves claims whose class names no file system; it may be empty.
	DefaultFSType string
	// ExtraMetadata sends the names of claim and volume to the driver.
	ExtraMetadata bool
	// PublishReadOnly makes volumes read-only whose claim only wants to read.
	PublishReadOnly bool
	// KeepMode refuses to create a block volume from a snapshot of a file system, and
	// the reverse, unless the snapshot's content allows it.
	KeepMode bool
	// Identity is written into the attributes of every volume; empty writes nothing.
	Identity string
}

// Credentials are the content of a secret. They go into requests to the driver and
// nowhere else. However they are printed, the content does not show: a function
// holds it. The zero value has none.
type Credentials struct {
	content func() map[string]string
}

// Conceal returns the content as credentials.
func Conceal(content map[string]string) Credentials {
	return Credentials{content: func() map[string]string { return content }}
}

// Known reports whether there are credentials, which may be empty.
func (c Credentials) Known() bool { return c.content != nil }

// Reveal returns the content, nil if there is none.
func (c Credentials) Reveal() map[string]string {
	if c.content == nil {
		return nil
	}
	return c.content()
}

// Input is what a CreateVolumeRequest is built from.
type Input struct {
	// Name is the name of the volume, which makes the request idempotent.
	Name  string
	Claim *v1.PersistentVolumeClaim
	// Class is the claim's class. A class of an in-tree plugin is translated to CSI.
	Class    *storagev1.StorageClass
	Driver   Driver
	Settings Settings
	// AccessModes are the claim's access modes as the driver knows them.
	AccessModes []csi.VolumeCapability_AccessMode_Mode
	// Secrets are the secrets in the class parameters.
	Secrets Secrets
	// Source is what the volume is filled from, nil for nothing.
	Source *csi.VolumeContentSource
	// Topology is the required topology of the volume, nil for any.
	Topology *csi.TopologyRequirement
	// Mutable are the parameters of the claim's VolumeAttributesClass.
	Mutable map[string]string
}
