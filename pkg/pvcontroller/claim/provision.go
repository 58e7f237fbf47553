package claim

import (
	"context"
	"errors"
	"fmt"

	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/klog/v2"

	"github.com/exeunt-io/exeunt/pkg/binding"
	"github.com/exeunt-io/exeunt/pkg/controller"
	"github.com/exeunt-io/exeunt/pkg/patch"
	"github.com/exeunt-io/exeunt/pkg/pvcontroller/intree"
	"github.com/exeunt-io/exeunt/pkg/pvcontroller/metrics"
	"github.com/exeunt-io/exeunt/pkg/reclaim"
	"github.com/exeunt-io/exeunt/pkg/storage"
)

// Provision makes the volume of one claim with an in-tree plugin. It runs in a queue
// of its own, so that a plugin that is slow or fails delays no binding. It decides
// from a live read of the claim: the cache may not know yet that the claim is gone
// or bound.
func (c *Controller) Provision(ctx context.Context, key string) error {
	cached := c.Caches.Claim(key)
	if cached == nil {
		return nil
	}
	claim, err := c.Client.CoreV1().PersistentVolumeClaims(cached.Namespace).Get(ctx, cached.Name, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		return nil
	case err != nil:
		return fmt.Errorf("read claim %s: %w", key, err)
	case claim.UID != cached.UID:
		return nil
	}
	o := &observation{claim: claim, volume: c.named(claim)}
	if binding.DecideClaim(o.state(c)).Action != binding.ProvisionVolume {
		return nil
	}
	return c.provision(ctx, claim)
}

// named is the volume that the claim names or that refers to it; none is taken.
func (c *Controller) named(claim *v1.PersistentVolumeClaim) *v1.PersistentVolume {
	if claim.Spec.VolumeName != "" {
		return c.Caches.Volume(claim.Spec.VolumeName)
	}
	return binding.Reserved(c.Caches.VolumesOf(controller.Key(claim)), claim)
}

// provision records the volume, whose name is the claim's alone, has the plugin
// create it and marks it Bound. After a crash the next try goes on, or the volume is
// reclaimed with its claim. The lock keeps the plugin from creating a volume that is
// being deleted.
func (c *Controller) provision(ctx context.Context, claim *v1.PersistentVolumeClaim) error {
	defer c.Locks.Lock(binding.ProvisionedName(claim))()
	volume, err := c.recorded(ctx, claim)
	if err == nil && volume == nil {
		volume, err = c.record(ctx, claim)
	}
	if errors.Is(err, controller.ErrStaleCache) {
		return err
	}
	if err != nil {
		return c.failed(claim, err)
	}
	plugin, unfinished := c.provisionerOfVolume(volume, claim)
	if !unfinished || volume.DeletionTimestamp != nil {
		return nil
	}
	err = c.Operations.Call(plugin.Name(), metrics.Provision, func() error { return plugin.Create(ctx, volume) })
	if err != nil {
		return c.failed(claim, fmt.Errorf("create volume %s: %w", volume.Name, err))
	}
	// A volume that lacks what the claim asks for, as upstream's does, stays Pending.
	if claim.Spec.VolumeName == volume.Name || binding.Reserved([]*v1.PersistentVolume{volume}, claim) != nil {
		if _, err := c.markVolumeBound(ctx, &observation{claim: claim, volume: volume}); err != nil {
			return err
		}
	}
	klog.FromContext(ctx).V(2).Info("Volume provisioned", "volume", volume.Name, "plugin", plugin.Name())
	c.Reporter.Report(claim, controller.NormalEvent(provisioningSucceeded, fmt.Sprintf("Successfully provisioned volume %s using %s", volume.Name, plugin.Name())))
	return nil
}

// provisionerOfVolume returns the in-tree plugin that provisions the volume for the
// claim. It returns false for a volume that is finished, or that no plugin here made
// for this claim.
func (c *Controller) provisionerOfVolume(volume *v1.PersistentVolume, claim *v1.PersistentVolumeClaim) (intree.Provisioner, bool) {
	pending := volume.Status.Phase == "" || volume.Status.Phase == v1.VolumePending
	plugin, here := c.Plugins.ProvisionerFor(volume.Annotations[storage.AnnDynamicallyProvisioned])
	return plugin, here && pending && volume.Name == binding.ProvisionedName(claim)
}

// record writes the PersistentVolume of a volume that is not created yet.
func (c *Controller) record(ctx context.Context, claim *v1.PersistentVolumeClaim) (*v1.PersistentVolume, error) {
	volume, err := c.describe(claim)
	if err != nil {
		return nil, errors.Join(err, c.reschedule(ctx, claim))
	}
	volume, err = c.Client.CoreV1().PersistentVolumes().Create(ctx, volume, metav1.CreateOptions{})
	switch {
	case apierrors.IsAlreadyExists(err): // since it was looked for, so that it is looked for again
		return nil, controller.ErrStaleCache
	case err != nil:
		return nil, fmt.Errorf("error creating provisioned PV object for claim %s: %w", controller.Key(claim), err)
	}
	return volume, nil
}

// describe returns the PersistentVolume that the plugin makes for the claim.
func (c *Controller) describe(claim *v1.PersistentVolumeClaim) (*v1.PersistentVolume, error) {
	class := c.Caches.Class(storage.ClaimClass(claim))
	if class == nil {
		return nil, errors.New(classNotFound(storage.ClaimClass(claim)))
	}
	plugin, here := c.Plugins.ProvisionerFor(claim.Annotations[storage.AnnStorageProvisioner])
	if !here {
		return nil, fmt.Errorf("no volume plugin matched name: %s", claim.Annotations[storage.AnnStorageProvisioner])
	}
	volume, err := plugin.Describe(intree.Request{VolumeName: binding.ProvisionedName(claim), Claim: claim, Class: class})
	if err != nil { // which the metrics count as a failed call
		return nil, c.Operations.Call(plugin.Name(), metrics.Provision, func() error {
			return fmt.Errorf("describe volume: %w", err)
		})
	}
	c.complete(volume, claim, plugin)
	return volume, nil
}

// complete adds to the plugin's volume what binds it to the claim and, from its
// first write on, what protects it until the plugin has deleted it.
func (c *Controller) complete(volume *v1.PersistentVolume, claim *v1.PersistentVolumeClaim, plugin intree.Provisioner) {
	_, deletes := plugin.(intree.Deleter)
	metav1.SetMetaDataAnnotation(&volume.ObjectMeta, storage.AnnBoundByController, yes)
	metav1.SetMetaDataAnnotation(&volume.ObjectMeta, storage.AnnDynamicallyProvisioned, plugin.Name())
	policy := storage.PolicyOf(volume.Spec.PersistentVolumeReclaimPolicy)
	volume.Finalizers = reclaim.FirstFinalizers(c.Honor, policy, deletes)
	volume.Spec.StorageClassName = storage.ClaimClass(claim)
	volume.Spec.ClaimRef = referenceTo(claim)
}

// recorded returns the volume that has the name of the claim's, nil if there is none.
// A volume that was not provisioned for the claim is an error.
func (c *Controller) recorded(ctx context.Context, claim *v1.PersistentVolumeClaim) (*v1.PersistentVolume, error) {
	name := binding.ProvisionedName(claim)
	volume, err := c.Client.CoreV1().PersistentVolumes().Get(ctx, name, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		return nil, nil
	case err != nil:
		return nil, fmt.Errorf("read volume %s: %w", name, err)
	case binding.RelationOf(volume, claim) != binding.Ours || volume.Annotations[storage.AnnDynamicallyProvisioned] == "":
		return nil, fmt.Errorf("another volume has the name %s; delete that one, or this claim", name)
	}
	return volume, nil
}

// failed tells the user why there is no volume yet.
func (c *Controller) failed(claim *v1.PersistentVolumeClaim, err error) error {
	if err != nil {
		c.Operations.Failed(claim.UID)
		c.Reporter.Report(claim, controller.WarningEvent(provisioningFailed, fmt.Sprintf("Failed to provision volume with StorageClass %q: %v", storage.ClaimClass(claim), err)))
	}
	return err
}

// reschedule hands a claim whose volume cannot be made back to the scheduler, which
// may find another node.
func (c *Controller) reschedule(ctx context.Context, claim *v1.PersistentVolumeClaim) error {
	if _, selected := claim.Annotations[storage.AnnSelectedNode]; !selected {
		return nil
	}
	change := patch.ForVersion(claim).Remove("/metadata/annotations/" + patch.Escape(storage.AnnSelectedNode))
	_, err := c.writer.PatchClaim(ctx, claim, change)
	return err
}

func referenceTo(claim *v1.PersistentVolumeClaim) *v1.ObjectReference {
	return &v1.ObjectReference{
		Kind: "PersistentVolumeClaim", APIVersion: "v1",
		Namespace: claim.Namespace, Name: claim.Name, UID: claim.UID, ResourceVersion: claim.ResourceVersion,
	}
}
