package main

import (
	"context"
	"fmt"

	snapshotclient "github.com/kubernetes-csi/external-snapshotter/client/v8/clientset/versioned"
	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"

	"github.com/exeunt-io/exeunt/pkg/binding"
	"github.com/exeunt-io/exeunt/pkg/controller/provisioning"
)

// inputs gathers what volumes are made from, and returns the informer of
// VolumeAttributesClasses as well. Nodes are watched only for a driver with
// topology, and snapshots are read only for one that makes them.
func (w *wiring) inputs() (*provisioning.Inputs, cache.SharedIndexInformer, error) {
	flags := w.options.volumes
	flags.settings.Identity = identity(w.driver.Name())
	config := provisioning.InputsConfig{
		Client: w.clients.Objects, Driver: w.driver, Translator: translator{}, Settings: flags.settings,
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
		snapshots := rest.CopyConfig(w.clients.Config)
		snapshots.ContentType, snapshots.AcceptContentTypes = runtime.ContentTypeJSON, runtime.ContentTypeJSON
		client, err := snapshotclient.NewForConfig(snapshots)
		if err != nil {
			return nil, nil, fmt.Errorf("connect to the API server for snapshots: %w", err)
		}
		config.Snapshots, config.ProtectSnapshot = client, w.snapshots.Protect
	}
	attributes, err := w.attributes()
	return provisioning.NewInputs(config), attributes, err
}

// classSecret finds the secret that the class of a volume names for its deletion. A
// class that is gone, or that is of another driver by now, names none.
func (w *wiring) classSecret(inputs *provisioning.Inputs) func(context.Context, *v1.PersistentVolume) (*v1.SecretReference, error) {
	classes := w.factory.Storage().V1().StorageClasses().Lister()
	return func(ctx context.Context, volume *v1.PersistentVolume) (*v1.SecretReference, error) {
		class, err := classes.Get(binding.VolumeClass(volume))
		switch {
		case apierrors.IsNotFound(err):
			return nil, nil
		case err != nil:
			return nil, fmt.Errorf("read storage class %s: %w", binding.VolumeClass(volume), err)
		case !w.serves(class.Provisioner):
			return nil, nil
		}
		return inputs.DeletionSecret(ctx, class, volume)
	}
}

// attributes is the informer of VolumeAttributesClasses, nil for a driver that takes
// none and for a cluster that has none.
func (w *wiring) attributes() (cache.SharedIndexInformer, error) {
	if !w.driver.Modifies() {
		return nil, nil
	}
	served, err := w.clients.Objects.Discovery().ServerResourcesForGroupVersion("storage.k8s.io/v1")
	switch {
	case apierrors.IsNotFound(err):
		return nil, nil
	case err != nil:
		return nil, fmt.Errorf("ask the API server whether it has VolumeAttributesClasses: %w", err)
	}
	for _, resource := range served.APIResources {
		if resource.Name == "volumeattributesclasses" {
			return w.factory.Storage().V1().VolumeAttributesClasses().Informer(), nil
		}
	}
	return nil, nil
}
