package claim

import (
	"context"
	"fmt"

	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/exeunt-io/exeunt/pkg/binding"
	"github.com/exeunt-io/exeunt/pkg/patch"
)

const yes = "yes"

// execute carries out one action and returns the pair as it is afterwards, or
// nil if the claim should be looked at anew by the event of the write.
func (c *Controller) execute(ctx context.Context, p *pair, decision binding.ClaimDecision) (*pair, error) {
	switch decision.Action {
	case binding.BindVolume:
		return c.bindVolume(ctx, p)
	case binding.MarkVolumeBound:
		return c.markVolumeBound(ctx, p)
	case binding.BindClaim:
		return c.bindClaim(ctx, p)
	case binding.MarkBound:
		return c.writeClaim(ctx, p, boundStatus(p.claim, p.volume), "status")
	case binding.MarkPending:
		return c.writeClaim(ctx, p, bareStatus(p.claim, v1.ClaimPending), "status")
	case binding.MarkLost:
		return c.writeClaim(ctx, p, bareStatus(p.claim, v1.ClaimLost), "status")
	case binding.ConfirmVolume:
		return c.confirmVolume(ctx, p)
	case binding.AssignClass:
		_, err := c.writeClaim(ctx, p, c.assignClass(p.claim))
		return nil, err
	case binding.RequestVolume:
		return c.writeClaim(ctx, p, c.requestVolume(p.claim))
	case binding.Wait:
	}
	return nil, nil
}

func (c *Controller) writeClaim(ctx context.Context, p *pair, change *patch.Patch, subresource ...string) (*pair, error) {
	claim, err := c.writer.Claim(ctx, p.claim, change, subresource...)
	if err != nil {
		return nil, err
	}
	return &pair{claim: claim, volume: p.volume, confirmed: p.confirmed}, nil
}

func (c *Controller) writeVolume(ctx context.Context, p *pair, change *patch.Patch, subresource ...string) (*pair, error) {
	volume, err := c.writer.Volume(ctx, p.volume, change, subresource...)
	if err != nil {
		return nil, err
	}
	return &pair{claim: p.claim, volume: volume, confirmed: p.confirmed}, nil
}

// bindVolume lets the volume refer to the claim by UID. Whoever chose the pair
// before stays on record: the annotation is set only where a controller chose.
func (c *Controller) bindVolume(ctx context.Context, p *pair) (*pair, error) {
	change := patch.ForVersion(p.volume)
	change.Set("/spec/claimRef", v1.ObjectReference{
		Kind: "PersistentVolumeClaim", APIVersion: "v1",
		Namespace: p.claim.Namespace, Name: p.claim.Name, UID: p.claim.UID, ResourceVersion: p.claim.ResourceVersion,
	})
	if binding.RelationOf(p.volume, p.claim) == binding.Free {
		change.Annotate(p.volume, map[string]string{binding.BoundByController: yes})
	}
	bound, err := c.writeVolume(ctx, p, change)
	if err == nil {
		c.index.Drop(p.volume.Name)
	}
	return bound, err
}

func (c *Controller) markVolumeBound(ctx context.Context, p *pair) (*pair, error) {
	change := patch.For(p.volume).Test("/spec/claimRef/uid", string(p.claim.UID)).
		Test("/status/phase", string(p.volume.Status.Phase)).Set("/status/phase", string(v1.VolumeBound))
	if p.volume.Status.Message != "" {
		change.Set("/status/message", "")
	}
	return c.writeVolume(ctx, p, change, "status")
}

func (c *Controller) bindClaim(ctx context.Context, p *pair) (*pair, error) {
	change := patch.ForVersion(p.claim)
	annotations := map[string]string{binding.BindCompleted: yes}
	if p.claim.Spec.VolumeName == "" {
		change.Set("/spec/volumeName", p.volume.Name)
		annotations[binding.BoundByController] = yes
	}
	return c.writeClaim(ctx, p, change.Annotate(p.claim, annotations))
}

// confirmVolume reads the named volume live, before a user is told that it is lost.
func (c *Controller) confirmVolume(ctx context.Context, p *pair) (*pair, error) {
	volume, err := c.Client.CoreV1().PersistentVolumes().Get(ctx, p.claim.Spec.VolumeName, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		volume = nil
	case err != nil:
		return nil, fmt.Errorf("read volume %s: %w", p.claim.Spec.VolumeName, err)
	}
	return &pair{claim: p.claim, volume: volume, confirmed: true}, nil
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
		binding.StorageProvisioner: name, binding.BetaStorageProvisioner: name,
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
	before, err := resource.ParseQuantity(volume.Annotations[binding.PreResizeCapacity])
	if err != nil {
		return volume.Spec.Capacity
	}
	return v1.ResourceList{v1.ResourceStorage: before}
}

// report tells the user on whom or what a claim waits.
func (c *Controller) report(p *pair, reason binding.Reason) {
	if event, told := c.eventFor(p, reason); told {
		c.Reporter.Report(p.claim, event)
		return
	}
	c.Reporter.Forget(p.claim.UID)
}
