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
	storagelisters "k8s.io/client-go/listers/storage/v1"
	"k8s.io/client-go/tools/cache"
	library "sigs.k8s.io/sig-storage-lib-external-provisioner/v10/controller"

	"github.com/exeunt-io/exeunt/internal/answer"
	"github.com/exeunt-io/exeunt/pkg/controller"
	"github.com/exeunt-io/exeunt/pkg/journal"
	"github.com/exeunt-io/exeunt/pkg/provision"
	"github.com/exeunt-io/exeunt/pkg/storage"
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
func (i *Inputs) For(ctx context.Context,
	options library.ProvisionOptions) (provision.Input, provision.Credentials, *journal.Secret, error) {
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
func (i *Inputs) begin(ctx context.Context,
	options library.ProvisionOptions) (provision.Input, provision.Needs, error) {
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

// CapacityRequest returns the GetCapacity request for the claim's volume, without
// topology: capabilities and parameters are those of the CreateVolume request. Nothing is
// read. The errors are those of For.
func (i *Inputs) CapacityRequest(ctx context.Context, claim *v1.PersistentVolumeClaim, class *storagev1.StorageClass,
	volume string) (*spec.GetCapacityRequest, error) {
	input, _, err := i.begin(ctx, library.ProvisionOptions{PVC: claim, StorageClass: class, PVName: volume})
	if err != nil {
		return nil, err
	}
	request, err := provision.Request(input)
	if err != nil {
		return nil, err
	}
	return &spec.GetCapacityRequest{VolumeCapabilities: request.GetVolumeCapabilities(),
		Parameters: request.GetParameters()}, nil
}

// ClassSecret returns the deletion secret that the volume's storage class names, nil for
// none. A class that was deleted, or that now names another provisioner, names none.
func (i *Inputs) ClassSecret(ctx context.Context, classes storagelisters.StorageClassLister,
	serves func(provisioner string) bool, volume *v1.PersistentVolume) (*v1.SecretReference, error) {
	cached := func(_ context.Context, name string, _ metav1.GetOptions) (*storagev1.StorageClass, error) {
		return classes.Get(name)
	}
	class, exists, err := answer.Get(ctx, storage.VolumeClass(volume), cached)
	switch {
	case err != nil:
		return nil, fmt.Errorf("read storage class %s: %w", storage.VolumeClass(volume), err)
	case !exists || !serves(class.Provisioner):
		return nil, nil
	}
	return i.DeletionSecret(ctx, class, volume)
}

// classOf returns the class, translated to CSI if it is of the in-tree plugin.
func (i *Inputs) classOf(ctx context.Context, class *storagev1.StorageClass) (*storagev1.StorageClass, error) {
	if class.Provisioner == i.Driver.Name() {
		return class, nil
	}
	translated, err := i.Translator.Class(ctx, class)
	if err != nil {
		return nil, fmt.Errorf("translate storage class %s of the in-tree plugin: %w", class.Name, err)
	}
	return translated, nil
}

// DeletionSecret returns the class's secret for the deletion of a volume, nil for none. The
// claim may be gone: claimRef of the volume has its namespace and name.
func (i *Inputs) DeletionSecret(ctx context.Context, class *storagev1.StorageClass,
	volume *v1.PersistentVolume) (*v1.SecretReference, error) {
	claim := volume.Spec.ClaimRef
	if claim == nil {
		return nil, nil
	}
	translated, err := i.classOf(ctx, class)
	if err != nil {
		return nil, err
	}
	return provision.DeletionSecretOf(translated,
		&v1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: claim.Namespace, Name: claim.Name}}, volume.Name)
}

// attributes reads the parameters of a VolumeAttributesClass, "" for none.
func (i *Inputs) attributes(ctx context.Context, name string) (map[string]string, error) {
	if name == "" {
		return nil, nil
	}
	class, err := controller.ReadLive(ctx, "VolumeAttributesClass", name,
		i.Client.StorageV1().VolumeAttributesClasses().Get)
	if err != nil {
		return nil, err
	}
	return provision.Attributes(name, class, i.Driver.Name())
}

// credentials reads the secret that creating the volume needs, if there is one. It is
// read again for every call of the driver, and stored nowhere.
func (i *Inputs) credentials(ctx context.Context, in provision.Input) (provision.Credentials, *journal.Secret, error) {
	reference := in.Secrets.Provisioner
	if reference == nil {
		return provision.Credentials{}, nil, nil
	}
	what := "secret " + reference.Namespace + "/"
	values, uid, err := readSecret(ctx, i.Client, reference.Namespace, reference.Name)
	switch {
	case err != nil:
		return provision.Credentials{}, nil, fmt.Errorf("read %s%s, which storage class %q names: %w", what, reference.Name,
			in.Class.Name, err)
	case values == nil:
		return provision.Credentials{}, nil,
			&provision.NotReady{Sentence: fmt.Sprintf("The %s%s, which storage class %q names, does not exist", what,
				reference.Name, in.Class.Name)}
	}
	return provision.Conceal(values), &journal.Secret{Namespace: reference.Namespace, Name: reference.Name, UID: uid}, nil
}
