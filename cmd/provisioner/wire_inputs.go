package main

import (
	"context"

	v1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"

	"github.com/exeunt-io/exeunt/pkg/controller"
	"github.com/exeunt-io/exeunt/pkg/provisioner/csibackend"
	"github.com/exeunt-io/exeunt/pkg/provisioner/identity"
)

// inputs returns the reader of everything that a CreateVolume request is built from, and
// the informer of VolumeAttributesClasses. Nodes are watched only for a driver with
// topology, snapshots are read only for a driver with snapshots.
func (w *wiring) inputs(ctx context.Context) (*csibackend.Inputs, cache.SharedIndexInformer, error) {
	flags := w.options.volumes
	flags.settings.Identity = identity.Creator(w.driver.Name(), w.options.node.name())
	config := csibackend.InputsConfig{
		Client: w.clients.Objects, Driver: w.driver, Translator: w.translator(), Settings: flags.settings,
		Reaches: w.reaches(), StrictTopology: flags.strictTopology, ImmediateTopology: flags.immediateTopology,
	}
	if w.driver.HasTopology() {
		var err error
		if config.Nodes, config.CSINodes, err = w.nodes(); err != nil {
			return nil, nil, err
		}
	}
	if w.driver.Clones() {
		config.CloneSources = w.clones
	}
	if w.driver.Snapshots() {
		client, err := w.snapshotClient()
		if err != nil {
			return nil, nil, err
		}
		config.Snapshots, config.SnapshotSources = client, w.snapshots
	}
	return csibackend.NewInputs(config), w.attributes(ctx), nil
}

// classSecret returns the reader of the deletion secrets that storage classes name.
func (w *wiring) classSecret(inputs *csibackend.Inputs) func(context.Context,
	*v1.PersistentVolume) (*v1.SecretReference, error) {
	classes := w.factory.Storage().V1().StorageClasses().Lister()
	return func(ctx context.Context, volume *v1.PersistentVolume) (*v1.SecretReference, error) {
		return inputs.ClassSecret(ctx, classes, w.scope().Serves, volume)
	}
}

// attributes returns the informer of VolumeAttributesClasses, which requeues claims that
// wait for a class. It returns nil if the driver cannot modify volumes, the API server
// does not serve the classes, or the right to watch them is missing: upstream's role
// does not grant it. An API server that cannot say so now must not end the program: the
// claims are retried with backoff then.
func (w *wiring) attributes(ctx context.Context) cache.SharedIndexInformer {
	if !w.driver.Modifies() {
		return nil
	}
	classes := storagev1.SchemeGroupVersion.WithResource("volumeattributesclasses")
	usable, err := controller.Serves(w.clients.Objects.Discovery(), classes)
	if usable && err == nil {
		usable, err = controller.MayWatch(ctx, w.clients.Objects, classes.GroupResource(), metav1.NamespaceAll)
	}
	if err != nil {
		klog.FromContext(ctx).Error(err,
			"Whether VolumeAttributesClasses may be watched is unknown; claims that wait for one are retried with backoff")
	}
	if err != nil || !usable {
		return nil
	}
	return w.factory.Storage().V1().VolumeAttributesClasses().Informer()
}
