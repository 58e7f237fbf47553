package csibackend

import (
	"context"
	"fmt"

	spec "github.com/container-storage-interface/spec/lib/go/csi"
	"github.com/kubernetes-csi/csi-lib-utils/accessmodes"
	snapshotclient "github.com/kubernetes-csi/external-snapshotter/client/v8/clientset/versioned"
	v1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
	library "sigs.k8s.io/sig-storage-lib-external-provisioner/v10/controller"

	"github.com/exeunt-io/exeunt/pkg/journal"
	"github.com/exeunt-io/exeunt/pkg/provision"
)

// Translator knows the in-tree plugin that the driver serves, if there is one.
type Translator interface {
	// Class translates a class of the plugin to CSI.
	Class(ctx context.Context, class *storagev1.StorageClass) (*storagev1.StorageClass, error)
	// Volume returns the volume with a CSI source; a volume that has one is returned unchanged.
	Volume(volume *v1.PersistentVolume) (*v1.PersistentVolume, error)
	// InTree returns a volume of the driver as one of the plugin.
	InTree(volume *v1.PersistentVolume) (*v1.PersistentVolume, error)
}

// InputsConfig is what inputs are gathered with.
type InputsConfig struct {
	Client kubernetes.Interface
	// Snapshots reads snapshots; nil for a driver that makes no volumes from them.
	Snapshots snapshotclient.Interface
	// Nodes and CSINodes are those of the cluster; nil requests no topology.
	Nodes, CSINodes cache.SharedIndexInformer
	Driver          Driver
	Translator      Translator
	Settings        provision.Settings
	// Reaches reports whether the served node reaches a volume, with node deployment; nil if the driver reaches every volume.
	Reaches func(volume *v1.PersistentVolume) bool
	// StrictTopology requests the selected node's topology segment alone.
	// ImmediateTopology requests the segments of all nodes with the driver if no node
	// is selected.
	StrictTopology, ImmediateTopology bool
	// CloneSources and SnapshotSources protect the sources of volumes; nil for a driver
	// without clones or snapshots.
	CloneSources    SourceProtection[*v1.PersistentVolumeClaim]
	SnapshotSources SourceProtection[metav1.Object]
}

// SourceProtection keeps sources with a finalizer while volumes are created from them.
type SourceProtection[T metav1.Object] interface {
	// AwaitRemoval waits while the finalizer of the source namespace/name is being removed.
	// It is called before the source is read.
	AwaitRemoval(source string)
	// Protect adds the finalizer to a source that was just read.
	Protect(ctx context.Context, source T) error
}

// Inputs gathers what requests are built from.
type Inputs struct {
	InputsConfig
	// pool has the nodes of the cluster, nil without topology.
	pool *nodePool
}

// NewInputs returns the inputs of one driver's volumes.
func NewInputs(config InputsConfig) *Inputs {
	inputs := &Inputs{InputsConfig: config}
	if config.Nodes != nil {
		inputs.pool = newNodePool(config.Driver.Name(), config.Nodes, config.CSINodes)
	}
	return inputs
}

// For returns the input of the claim's request, and the content and identity of the secret
// for CreateVolume. It protects the data source with a finalizer.
//
// Errors are sentences for the user. A [provision.Refusal] lasts until the claim or the class
// changes; [provision.LeftToOther] means that another provisioner serves the claim; after
// [provision.UnsuitableNode] the scheduler must select another node.
func (i *Inputs) For(ctx context.Context, options library.ProvisionOptions) (provision.Input, provision.Credentials, *journal.Secret, error) {
	in, needs, err := i.begin(ctx, options)
	if err == nil {
		in.Mutable, err = i.attributes(ctx, needs.AttributesClass)
	}
	if err == nil {
		in.Source, err = i.source(ctx, in, needs.Source)
	}
	if err == nil {
		in.Topology, err = i.topology(ctx, in, options.SelectedNode)
	}
	if err != nil {
		return provision.Input{}, provision.Credentials{}, nil, err
	}
	credentials, secret, err := i.credentials(ctx, in)
	return in, credentials, secret, err
}

// begin returns what claim and class alone tell.
func (i *Inputs) begin(ctx context.Context, options library.ProvisionOptions) (provision.Input, provision.Needs, error) {
	class, err := i.classOf(ctx, options.StorageClass)
	if err != nil {
		return provision.Input{}, provision.Needs{}, err
	}
	needs, err := provision.NeedsOf(options.PVC, class, i.driver(), options.PVName)
	if err != nil {
		return provision.Input{}, provision.Needs{}, err
	}
	modes, err := i.accessModes(options.PVC)
	return provision.Input{
		Name: options.PVName, Claim: options.PVC,
		Class: class, Driver: i.driver(), Settings: i.Settings, AccessModes: modes, Secrets: needs.Secrets,
	}, needs, err
}

// driver returns the name and the capabilities of the driver.
func (i *Inputs) driver() provision.Driver {
	return provision.Driver{
		Name: i.Driver.Name(), Topology: i.Driver.HasTopology(),
		Snapshots: i.Driver.Snapshots(), Clones: i.Driver.Clones(), Modifies: i.Driver.Modifies(),
	}
}

// accessModes returns each access mode of the claim as the driver knows it.
func (i *Inputs) accessModes(claim *v1.PersistentVolumeClaim) ([]spec.VolumeCapability_AccessMode_Mode, error) {
	modes := make([]spec.VolumeCapability_AccessMode_Mode, 0, len(claim.Spec.AccessModes))
	for _, wanted := range claim.Spec.AccessModes {
		mode, err := accessmodes.ToCSIAccessMode([]v1.PersistentVolumeAccessMode{wanted}, i.Driver.HasSingleWriter())
		if err != nil {
			return nil, fmt.Errorf("translate access mode %s of the claim: %w", wanted, err)
		}
		modes = append(modes, mode)
	}
	return modes, nil
}
