package provisioner

import (
	"context"
	"errors"
	"fmt"

	v1 "k8s.io/api/core/v1"
	"k8s.io/klog/v2"

	"github.com/exeunt-io/exeunt/pkg/binding"
	"github.com/exeunt-io/exeunt/pkg/controller"
	"github.com/exeunt-io/exeunt/pkg/patch"
	"github.com/exeunt-io/exeunt/pkg/pvcontroller/intree"
	"github.com/exeunt-io/exeunt/pkg/pvcontroller/metrics"
	"github.com/exeunt-io/exeunt/pkg/pvcontroller/pvwriter"
	"github.com/exeunt-io/exeunt/pkg/reclaim/plugin"
	"github.com/exeunt-io/exeunt/pkg/storage"
)

// observation is a claim and its PersistentVolume. volume is nil if no PersistentVolume has
// the name binding.ProvisionedName(claim). Both were read from the API server.
type observation struct {
	claim  *v1.PersistentVolumeClaim
	volume *v1.PersistentVolume
	// created: the plugin has created the volume in this pass.
	created bool
}

// provision executes actions until the claim's volume is bound. The per-key lock keeps the
// reclaimer from deleting the volume at the same time.
func (c *Controller) provision(ctx context.Context, claim *v1.PersistentVolumeClaim) error {
	defer c.Locks.Lock(binding.ProvisionedName(claim))()
	volume, err := c.readVolume(ctx, claim)
	if err != nil {
		return c.reportFailure(claim, err)
	}
	o := observation{claim: claim, volume: volume}
	for steps := new(controller.StepCounter); ; {
		state := c.stateOf(o)
		action := binding.DecideProvision(state)
		if action == binding.WaitForClaim {
			return nil
		}
		klog.FromContext(ctx).V(4).Info("Decided on in-tree provisioning", "action", action, "volume",
			binding.ProvisionedName(claim), "state", state)
		if err := steps.Next(); err != nil {
			return err
		}
		next, err := c.execute(ctx, o, action)
		if err != nil || next == nil {
			return err
		}
		o = *next
	}
}

func (c *Controller) stateOf(o observation) binding.ProvisionState {
	if o.volume == nil {
		return binding.ProvisionState{Volume: binding.NotRecorded}
	}
	_, here := c.pluginOf(o.volume)
	return binding.ProvisionState{
		Volume:   binding.PluginVolumeOf(o.volume, o.claim, here),
		Deleting: o.volume.DeletionTimestamp != nil,
		Created:  o.created,
		Fits: o.claim.Spec.VolumeName == o.volume.Name || binding.ReservedVolume([]*v1.PersistentVolume{o.volume},
			o.claim) != nil,
	}
}

// pluginOf returns the in-tree plugin that provisioned the volume.
func (c *Controller) pluginOf(volume *v1.PersistentVolume) (intree.Provisioner, bool) {
	return c.Plugins.ProvisionerFor(volume.Annotations[storage.AnnDynamicallyProvisioned])
}

// execute executes one action and returns the new observation, nil after the last action.
func (c *Controller) execute(ctx context.Context, o observation, action binding.ProvisionAction) (*observation, error) {
	switch action {
	case binding.RecordVolume:
		return c.recordVolume(ctx, o)
	case binding.CreateVolume:
		return c.createVolume(ctx, o)
	case binding.SetVolumeBound:
		if _, err := c.volumes.SetPhase(ctx, o.volume, pvwriter.PhaseChange{Phase: v1.VolumeBound}); err != nil {
			return nil, c.Reporter.ReportRefusal(o.claim, "Writing the phase Bound of volume "+o.volume.Name, err)
		}
		c.reportSuccess(ctx, o)
	case binding.ReportCreated:
		c.reportSuccess(ctx, o)
	case binding.ReportNameConflict:
		return nil, c.reportFailure(o.claim, fmt.Errorf("another volume has the name %s; delete that volume or this claim",
			o.volume.Name))
	case binding.WaitForClaim:
	}
	return nil, nil
}

// readVolume reads the PersistentVolume with the name of the claim's volume from the API
// server, nil if there is none.
func (c *Controller) readVolume(ctx context.Context, claim *v1.PersistentVolumeClaim) (*v1.PersistentVolume, error) {
	return controller.ReadLive(ctx, "volume", binding.ProvisionedName(claim), c.Client.CoreV1().PersistentVolumes().Get)
}

// recordVolume creates the PersistentVolume. The scheduler selects a node again only for a request that the plugin
// refuses for its node: otherwise both would change the claim for ever.
func (c *Controller) recordVolume(ctx context.Context, o observation) (*observation, error) {
	provisioned, err := c.describe(o.claim)
	if err != nil {
		var refused *intree.NodeRefused
		if errors.As(err, &refused) {
			err = errors.Join(err, c.removeSelectedNode(ctx, o.claim))
		}
		return nil, c.reportFailure(o.claim, err)
	}
	volume, err := c.volumes.Create(ctx, provisioned)
	if err != nil {
		return nil, c.reportFailure(o.claim, err)
	}
	return &observation{claim: o.claim, volume: volume}, nil
}

// describe returns the PersistentVolume that the plugin describes for the claim.
func (c *Controller) describe(claim *v1.PersistentVolumeClaim) (pvwriter.Provisioned, error) {
	class := c.Caches.Class(storage.ClaimClass(claim))
	if class == nil {
		return pvwriter.Provisioned{}, fmt.Errorf("storageclass.storage.k8s.io %q not found", storage.ClaimClass(claim))
	}
	provisioner, here := c.Plugins.ProvisionerFor(claim.Annotations[storage.AnnStorageProvisioner])
	if !here {
		return pvwriter.Provisioned{}, fmt.Errorf("no volume plugin matched name: %s",
			claim.Annotations[storage.AnnStorageProvisioner])
	}
	volume, err := provisioner.Describe(intree.Request{VolumeName: binding.ProvisionedName(claim), Claim: claim,
		Class: class})
	if err != nil { // counted as a failed call, as in kube-controller-manager
		return pvwriter.Provisioned{}, c.Operations.Call(provisioner.Name(), metrics.Provision, func() error {
			return fmt.Errorf("describe volume: %w", err)
		})
	}
	_, deletes := provisioner.(intree.Deleter)
	policy := storage.PolicyOf(volume.Spec.PersistentVolumeReclaimPolicy)
	return pvwriter.Provisioned{
		Volume: volume, Claim: claim, Plugin: provisioner.Name(), Finalizers: plugin.InitialFinalizers(c.Honor, policy,
			deletes),
	}, nil
}

// createVolume calls the plugin.
func (c *Controller) createVolume(ctx context.Context, o observation) (*observation, error) {
	plugin, here := c.pluginOf(o.volume)
	if !here {
		return nil, fmt.Errorf("no in-tree plugin provisions volume %s", o.volume.Name)
	}
	err := c.Operations.Call(plugin.Name(), metrics.Provision, func() error { return plugin.Create(ctx, o.volume) })
	if err != nil {
		return nil, c.reportFailure(o.claim, fmt.Errorf("create volume %s: %w", o.volume.Name, err))
	}
	return &observation{claim: o.claim, volume: o.volume, created: true}, nil
}

// removeSelectedNode makes the scheduler select a node again for the claim.
func (c *Controller) removeSelectedNode(ctx context.Context, claim *v1.PersistentVolumeClaim) error {
	if _, selected := claim.Annotations[storage.AnnSelectedNode]; !selected {
		return nil
	}
	change := patch.ForVersion(claim).Remove("/metadata/annotations/" + patch.Escape(storage.AnnSelectedNode))
	_, err := c.claims.PatchClaim(ctx, claim, change)
	return err
}
