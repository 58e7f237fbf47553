package main

import (
	"context"
	"fmt"
	"slices"

	spec "github.com/container-storage-interface/spec/lib/go/csi"
	v1 "k8s.io/api/core/v1"
	"k8s.io/client-go/tools/cache"

	"github.com/exeunt-io/exeunt/pkg/controller"
	"github.com/exeunt-io/exeunt/pkg/migration"
	"github.com/exeunt-io/exeunt/pkg/provision"
	"github.com/exeunt-io/exeunt/pkg/provisioner/csibackend"
	"github.com/exeunt-io/exeunt/pkg/provisioner/deletion"
	"github.com/exeunt-io/exeunt/pkg/provisioner/engine"
	"github.com/exeunt-io/exeunt/pkg/provisioner/provisioning"
	"github.com/exeunt-io/exeunt/pkg/storage"
	"github.com/exeunt-io/exeunt/pkg/topology"
)

// wireVolumes creates the engine that creates and deletes volumes.
func (w *wiring) wireVolumes(ctx context.Context) error {
	reporter := controller.NewReporter(w.recorder)
	attachments, err := w.attachments()
	if err != nil {
		return fmt.Errorf("watch attachments: %w", err)
	}
	inputs, attributes, err := w.inputs(ctx)
	if err != nil {
		return err
	}
	journal, err := w.journal(ctx)
	if err != nil {
		return err
	}
	w.engine, err = engine.New(engine.Config{
		Client: w.clients.Objects, Workers: w.options.workers, End: w.end, Journal: journal,
		Provisioning: w.provisioningConfig(inputs, attributes, reporter),
		Deletion: deletion.Config{
			Client: w.clients.Objects, Volumes: w.factory.Core().V1().PersistentVolumes().Informer(), Attachments: attachments,
			Deleter: &csibackend.Deleter{Client: w.clients.Objects, Driver: w.driver, Translator: w.translator(),
				ClassSecret: w.classSecret(inputs)},
			Reporter: reporter, Metrics: w.measures.counts, Backoff: w.options.backoff(), Honor: w.options.Honor(),
			Waiting: w.measures.tracked.Waiting, Unprotected: w.measures.tracked.Unprotected,
		},
	})
	if err != nil {
		return err
	}
	w.work = append(w.work, w.engine.Run)
	return nil
}

// provisioningConfig returns the part of the engine's configuration that creates volumes.
func (w *wiring) provisioningConfig(inputs *csibackend.Inputs, attributes cache.SharedIndexInformer,
	reporter *controller.Reporter) provisioning.Config {
	core := w.factory.Core().V1()
	timeouts := provisioning.DefaultTimeouts
	timeouts.Unresolved = w.options.journal.unresolvedAfter
	return provisioning.Config{
		Client: w.clients.Objects,
		Caches: provisioning.Caches{
			Claims: core.PersistentVolumeClaims().Informer(), Volumes: core.PersistentVolumes().Informer(),
			Classes: w.factory.Storage().V1().StorageClasses().Informer(), Attributes: attributes, Arrivals: w.arrivals,
		},
		Scope: w.scope(), Nodes: w.selectedNodes(),
		Backend: &csibackend.Backend{Driver: w.driver, Inputs: inputs, Failed: w.failed()}, Honor: w.options.Honor(),
		Reporter: reporter, Metrics: w.measures.counts, Backoff: w.options.backoff(), Timeouts: timeouts,
	}
}

func (w *wiring) translator() migration.Translator {
	return migration.New().For(w.driver.Name())
}

// failed returns the function that refreshes capacity after a failed CreateVolume.
func (w *wiring) failed() func(class string, requested *spec.TopologyRequirement) {
	if w.capacity == nil {
		return nil
	}
	return w.capacity.RefreshRequested
}

// scope is what this process provisions.
type scope struct {
	names    provisioning.Names
	settings provision.Settings
	// node is the served node, "" for all nodes; topology is that of the node.
	node     string
	topology map[string]string
}

func (w *wiring) scope() scope {
	return scope{w.names, w.options.volumes.settings, w.options.node.name(), w.topology}
}

// Serves reports whether the name is the driver, or the in-tree plugin that the driver replaced.
func (s scope) Serves(provisioner string) bool {
	return provisioner == s.names.Driver || slices.Contains(s.names.Migrated, provisioner)
}

// Node returns the served node, "" for all nodes.
func (s scope) Node() string { return s.node }

// Reaches reports whether the served node reaches the volume.
func (s scope) Reaches(volume *v1.PersistentVolume) bool {
	return s.node == "" || topology.Reaches(s.topology, volume.Spec.NodeAffinity)
}

// VolumeName returns the name of the claim's volume, in Kubernetes and in the storage system.
func (s scope) VolumeName(claim *v1.PersistentVolumeClaim) string {
	return provision.VolumeName(s.settings, claim.UID)
}

// serverOf returns which process serves the node that is selected for the claim.
func (s scope) serverOf(claim *v1.PersistentVolumeClaim) provision.Server {
	return provision.ServerOf(claim.Annotations[storage.AnnSelectedNode], s.node)
}

// servesClaim reports whether this process creates the volume of the claim.
func (w *wiring) servesClaim(claim *v1.PersistentVolumeClaim) bool {
	s := w.scope()
	return s.Serves(storage.ClaimProvisioner(claim)) && s.serverOf(claim) == provision.ThisProcess
}

// servedElsewhere reports whether another process creates the volume of the claim. A claim without a
// provisioner, such as one that waits for a pod or is bound to an existing volume, has no such process.
func (w *wiring) servedElsewhere(claim *v1.PersistentVolumeClaim) bool {
	s, name := w.scope(), storage.ClaimProvisioner(claim)
	return name != "" && !s.Serves(name) || s.serverOf(claim) == provision.OtherProcess
}

// attachments returns the informer of VolumeAttachments, nil for a driver that does not
// publish volumes.
func (w *wiring) attachments() (cache.SharedIndexInformer, error) {
	if !w.driver.Publishes() {
		return nil, nil
	}
	informer := w.factory.Storage().V1().VolumeAttachments().Informer()
	return informer, informer.SetTransform(provisioning.TrimAttachment)
}
