package main

import (
	"fmt"

	snapshotclient "github.com/kubernetes-csi/external-snapshotter/client/v8/clientset/versioned"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"

	"github.com/exeunt-io/exeunt/pkg/controller/provisioning"
)

// inputs gathers what volumes are made from. Nodes are watched only for a driver
// with topology, and snapshots are read only for one that makes them.
func (w *wiring) inputs() (*provisioning.Inputs, error) {
	flags := w.options.volumes
	flags.settings.Identity = identity(w.driver.Name())
	config := provisioning.InputsConfig{
		Client: w.clients.Objects, Driver: w.driver, Translator: translator{}, Settings: flags.settings,
		StrictTopology: flags.strictTopology, ImmediateTopology: flags.immediateTopology,
	}
	if w.driver.HasTopology() {
		var err error
		if config.Nodes, config.CSINodes, err = w.nodes(); err != nil {
			return nil, err
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
			return nil, fmt.Errorf("connect to the API server for snapshots: %w", err)
		}
		config.Snapshots, config.ProtectSnapshot = client, w.snapshots.Protect
	}
	return provisioning.NewInputs(config), nil
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
