package claim

import (
	"context"
	"fmt"

	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/exeunt-io/exeunt/pkg/binding"
	"github.com/exeunt-io/exeunt/pkg/controller"
	"github.com/exeunt-io/exeunt/pkg/finalizer"
	"github.com/exeunt-io/exeunt/pkg/patch"
	"github.com/exeunt-io/exeunt/pkg/storage"
)

const yes = "yes"

// execute carries out one action and returns what is known afterwards, or
// nil if the claim should be looked at anew by the event of the write.
func (c *Controller) execute(ctx context.Context, o *observation, decision binding.ClaimDecision) (*observation, error) {
	switch decision.Action {
	case binding.BindVolume:
		return c.bindVolume(ctx, o)
	case binding.MarkVolumeBound:
		return c.markVolumeBound(ctx, o)
	case binding.BindClaim:
		return c.bindClaim(ctx, o)
	case binding.MarkBound:
		return c.writeClaim(ctx, o, boundStatus(o.claim, o.volume), "status")
	case binding.MarkPending:
		return c.writeClaim(ctx, o, bareStatus(o.claim, v1.ClaimPending), "status")
	case binding.MarkLost:
		return c.writeClaim(ctx, o, bareStatus(o.claim, v1.ClaimLost), "status")
	case binding.ConfirmVolume:
		return c.confirmVolume(ctx, o)
	case binding.AssignClass:
		_, err := c.writeClaim(ctx, o, c.assignClass(o.claim))
		countAssignment(err)
		return nil, err
	case binding.RequestVolume:
		return c.writeClaim(ctx, o, c.requestVolume(o.claim))
	case binding.MarkMigrated:
		return c.writeClaim(ctx, o, c.markMigrated(o.claim))
	case binding.RemoveFinalizer:
		return c.writeClaim(ctx, o, finalizer.Edit(patch.For(o.claim), o.claim, finalizer.Change{Remove: []finalizer.Name{finalizer.Provisioning}}))
	case binding.ProvisionVolume:
		c.provisioning.Enqueue(controller.Key(o.claim))
	case binding.Wait:
	}
	return nil, nil
}

func (c *Controller) writeClaim(ctx context.Context, o *observation, change *patch.Patch, subresource ...string) (*observation, error) {
	claim, err := c.writer.PatchClaim(ctx, o.claim, change, subresource...)
	if err != nil {
		return nil, err
	}
	return &observation{claim: claim, volume: o.volume, confirmed: o.confirmed}, nil
}

func (c *Controller) writeVolume(ctx context.Context, o *observation, change *patch.Patch, subresource ...string) (*observation, error) {
	volume, err := c.writer.PatchVolume(ctx, o.volume, change, subresource...)
	if err != nil {
		return nil, err
	}
	return &observation{claim: o.claim, volume: volume, confirmed: o.confirmed}, nil
}

// bindVolume lets the volume refer to the claim by UID. Whoever chose the pair
// before stays on record: the annotation is set only where a controller chose.
func (c *Controller) bindVolume(ctx context.Context, o *observation) (*observation, error) {
	change := patch.ForVersion(o.volume)
	change.Set("/spec/claimRef", referenceTo(o.claim))
	if binding.RelationOf(o.volume, o.claim) == binding.Free {
		change.Annotate(o.volume, map[string]string{storage.AnnBoundByController: yes})
	}
	bound, err := c.writeVolume(ctx, o, change)
	if err == nil {
		c.index.Drop(o.volume.Name)
	}
	return bound, err
}

func (c *Controller) markVolumeBound(ctx context.Context, o *observation) (*observation, error) {
	change := controller.RequirePhase(patch.For(o.volume), o.volume).Test("/spec/claimRef/uid", string(o.claim.UID)).
		Set("/status/phase", string(v1.VolumeBound))
	if o.volume.Status.Message != "" {
		change.Set("/status/message", "")
	}
	return c.writeVolume(ctx, o, change, "status")
}

func (c *Controller) bindClaim(ctx context.Context, o *observation) (*observation, error) {
	change := patch.ForVersion(o.claim)
	annotations := map[string]string{storage.AnnBindCompleted: yes}
	if o.claim.Spec.VolumeName == "" {
		change.Set("/spec/volumeName", o.volume.Name)
		annotations[storage.AnnBoundByController] = yes
	}
	change.Annotate(o.claim, annotations)
	return c.writeClaim(ctx, o, change)
}

// confirmVolume reads the named volume live, before a user is told that it is lost.
func (c *Controller) confirmVolume(ctx context.Context, o *observation) (*observation, error) {
	volume, err := c.Client.CoreV1().PersistentVolumes().Get(ctx, o.claim.Spec.VolumeName, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		volume = nil
	case err != nil:
		return nil, fmt.Errorf("read volume %s: %w", o.claim.Spec.VolumeName, err)
	}
	return &observation{claim: o.claim, volume: volume, confirmed: true}, nil
}

func (c *Controller) assignClass(claim *v1.PersistentVolumeClaim) *patch.Patch {
	change := patch.ForVersion(claim)
	if class := defaultClass(c.Caches.AllClasses()); class != nil {
		change.Set("/spec/storageClassName", class.Name)
	}
	return change
}

func (c *Controller) requestVolume(claim *v1.PersistentVolumeClaim) *patch.Patch {
	name := c.provisionerOf(claim)
	return patch.ForVersion(claim).Annotate(claim, map[string]string{
		storage.AnnStorageProvisioner: name, storage.AnnBetaStorageProvisioner: name,
	})
}

// bareStatus is the status of a claim that has no volume.
func bareStatus(claim *v1.PersistentVolumeClaim, phase v1.PersistentVolumeClaimPhase) *patch.Patch {
	status := claim.Status.DeepCopy()
	status.Phase, status.AccessModes, status.Capacity, status.CurrentVolumeAttributesClassName = phase, nil, nil, nil
	return patch.ForVersion(claim).Set("/status", status)
}

// boundStatus is the status of a claim that is bound to the volume. Capacity and
// attributes class are set only when the claim becomes Bound: later they belong
// to the resizer.
func boundStatus(claim *v1.PersistentVolumeClaim, volume *v1.PersistentVolume) *patch.Patch {
	status := claim.Status.DeepCopy()
	status.AccessModes = volume.Spec.AccessModes
	if status.Phase != v1.ClaimBound {
		status.Capacity = shownCapacity(volume)
	}
	if status.Phase == v1.ClaimPending {
		status.CurrentVolumeAttributesClassName = volume.Spec.VolumeAttributesClassName
	}
	status.Phase = v1.ClaimBound
	return patch.ForVersion(claim).Set("/status", status)
}

func shownCapacity(volume *v1.PersistentVolume) v1.ResourceList {
	before, err := resource.ParseQuantity(volume.Annotations[storage.AnnPreResizeCapacity])
	if err != nil {
		return volume.Spec.Capacity
	}
	return v1.ResourceList{v1.ResourceStorage: before}
}

// report tells the user on whom or what a claim waits.
func (c *Controller) report(o *observation, reason binding.Reason) {
	if event, told := c.eventFor(o, reason); told {
		c.Reporter.Report(o.claim, event)
		return
	}
	c.Reporter.Forget(o.claim.UID)
}
