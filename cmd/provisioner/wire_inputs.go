package main

import (
	"context"
	"fmt"

	v1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/cache"

	"github.com/exeunt-io/exeunt/pkg/provisioner/access"
	"github.com/exeunt-io/exeunt/pkg/provisioner/csibackend"
	"github.com/exeunt-io/exeunt/pkg/provisioner/identity"
	"github.com/exeunt-io/exeunt/pkg/storage"
)

// inputs gathers what volumes are made from, and returns the informer of
// VolumeAttributesClasses as well. Nodes are watched only for a driver with
// topology, and snapshots are read only for one that makes them.
func (w *wiring) inputs(ctx context.Context) (*csibackend.Inputs, cache.SharedIndexInformer, error) {
	flags := w.options.volumes
	flags.settings.Identity = identity.Creator(w.driver.Name(), w.options.node.name())
	config := csibackend.InputsConfig{
		Client: w.clients.Objects, Driver: w.driver, Translator: w.translator(), Settings: flags.settings,
		StrictTopology: flags.strictTopology, ImmediateTopology: flags.immediateTopology,
	}
	if w.driver.HasTopology() {
		var err error
		if config.Nodes, config.CSINodes, err = w.nodes(); err != nil {
			return nil, nil, err
		}
	}
	if w.driver.Clones() {
		config.ProtectClone = w.clones.Protect
	}
	if w.driver.Snapshots() {
		client, err := w.snapshotClient()
		if err != nil {
			return nil, nil, err
		}
		config.Snapshots, config.ProtectSnapshot = client, w.snapshots.Protect
	}
	attributes, err := w.attributes(ctx)
	return csibackend.NewInputs(config), attributes, err
}

// classSecret finds the secret that the class of a volume names for its deletion. A
// class that is gone, or that is of another driver by now, names none.
func (w *wiring) classSecret(inputs *csibackend.Inputs) func(context.Context, *v1.PersistentVolume) (*v1.SecretReference, error) {
	classes := w.factory.Storage().V1().StorageClasses().Lister()
	return func(ctx context.Context, volume *v1.PersistentVolume) (*v1.SecretReference, error) {
		class, err := classes.Get(storage.VolumeClass(volume))
		switch {
		case apierrors.IsNotFound(err):
			return nil, nil
		case err != nil:
			return nil, fmt.Errorf("read storage class %s: %w", storage.VolumeClass(volume), err)
		case !w.serves(class.Provisioner):
			return nil, nil
		}
		return inputs.DeletionSecret(ctx, class, volume)
	}
}

// attributes is the informer of VolumeAttributesClasses, which only wakes claims that
// wait for one: nil for a driver that takes none, for a cluster that has none, and
// where the right to watch them is missing, which upstream's sidecar does not have.
func (w *wiring) attributes(ctx context.Context) (cache.SharedIndexInformer, error) {
	if !w.driver.Modifies() {
		return nil, nil
	}
	classes := storagev1.SchemeGroupVersion.WithResource("volumeattributesclasses")
	if served, err := access.Serves(w.clients.Objects.Discovery(), classes); err != nil || !served {
		return nil, err
	}
	if may, err := access.MayWatch(ctx, w.clients.Objects, classes.GroupResource(), metav1.NamespaceAll); err != nil || !may {
		return nil, err
	}
	return w.factory.Storage().V1().VolumeAttributesClasses().Informer(), nil
}
