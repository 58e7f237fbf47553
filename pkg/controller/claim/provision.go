package claim

import (
	"context"
	"errors"
	"fmt"

	v1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/klog/v2"

	"github.com/exeunt-io/exeunt/pkg/binding"
	"github.com/exeunt-io/exeunt/pkg/controller"
	"github.com/exeunt-io/exeunt/pkg/controller/metrics"
	"github.com/exeunt-io/exeunt/pkg/finalizer"
	"github.com/exeunt-io/exeunt/pkg/intree"
	"github.com/exeunt-io/exeunt/pkg/patch"
	"github.com/exeunt-io/exeunt/pkg/reclaim"
)

// Provision makes the volume of one claim with an in-tree plugin, or deletes what
// an earlier try may have left. It runs in a queue of its own, so that a plugin
// that is slow or fails holds up no binding. Both are decided anew from a live
// read of the claim: the cache may not know yet that it is gone or bound.
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
	decision := binding.DecideClaim(o.state(c))
	plugin, _ := c.Plugins.ProvisionerFor(claim.Annotations[binding.StorageProvisioner])
	switch decision.Action {
	case binding.ProvisionVolume:
		return c.provision(ctx, claim, plugin)
	case binding.AbandonVolume:
		return c.abandon(ctx, claim, plugin)
	default:
		return nil
	}
}

// named is the volume that the claim names or that refers to it; none is taken.
func (c *Controller) named(claim *v1.PersistentVolumeClaim) *v1.PersistentVolume {
	if claim.Spec.VolumeName != "" {
		return c.Caches.Volume(claim.Spec.VolumeName)
	}
	return binding.Reserved(c.Caches.VolumesOf(controller.Key(claim)), claim)
}

// provision makes the volume, whose name is the claim's alone, and then records it.
// A crash in between is mended by the next try: the plugin makes the same again.
func (c *Controller) provision(ctx context.Context, claim *v1.PersistentVolumeClaim, plugin intree.Provisioner) error {
	recorded, err := c.recorded(ctx, claim)
	if recorded || err != nil {
		return c.failed(claim, err)
	}
	request := intree.Request{VolumeName: binding.ProvisionedName(claim), Claim: claim, Class: c.Caches.Class(binding.ClaimClass(claim))}
	volume, err := c.make(ctx, plugin, request)
	if err != nil {
		return errors.Join(c.failed(claim, err), c.reschedule(ctx, claim))
	}
	c.complete(volume, claim, plugin)
	_, err = c.Client.CoreV1().PersistentVolumes().Create(ctx, volume, metav1.CreateOptions{})
	switch {
	case apierrors.IsAlreadyExists(err): // since it was looked for, so that it is looked for again
		return controller.ErrLagging
	case refused(err):
		err = fmt.Errorf("create volume %s: %w; what was made for it is deleted again", volume.Name, err)
		return errors.Join(c.failed(claim, err), c.cleanUp(ctx, claim, plugin, volume))
	case err != nil:
		return fmt.Errorf("create volume %s: %w", volume.Name, err)
	}
	klog.FromContext(ctx).V(2).Info("Volume provisioned", "volume", volume.Name, "plugin", plugin.Name())
	c.Reporter.Always(claim, controller.Note(provisioningSucceeded, fmt.Sprintf("Volume %q was provisioned by %s", volume.Name, plugin.Name())))
	return nil
}

// make asks the plugin for the volume and measures it.
func (c *Controller) make(ctx context.Context, plugin intree.Provisioner, request intree.Request) (*v1.PersistentVolume, error) {
	if request.Class == nil {
		return nil, fmt.Errorf("the storage class %q does not exist", binding.ClaimClass(request.Claim))
	}
	var volume *v1.PersistentVolume
	err := c.Operations.Call(plugin.Name(), metrics.Provision, func() (err error) {
		volume, err = plugin.Provision(ctx, request)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("provision volume for class %q: %w", request.Class.Name, err)
	}
	return volume, nil
}

// complete adds to the plugin's volume what binds it to the claim and, from its
// first write on, what keeps it until the plugin has deleted it.
func (c *Controller) complete(volume *v1.PersistentVolume, claim *v1.PersistentVolumeClaim, plugin intree.Provisioner) {
	_, deletes := plugin.(intree.Deleter)
	metav1.SetMetaDataAnnotation(&volume.ObjectMeta, binding.BoundByController, yes)
	metav1.SetMetaDataAnnotation(&volume.ObjectMeta, binding.ProvisionedBy, plugin.Name())
	policy := reclaim.PolicyOf(string(volume.Spec.PersistentVolumeReclaimPolicy))
	volume.Finalizers = reclaim.FirstFinalizers(c.Honor, policy, deletes)
	volume.Spec.StorageClassName = binding.ClaimClass(claim)
	volume.Spec.ClaimRef = referenceTo(claim)
}

// recorded says whether a volume has the name that the claim's will have. One that
// is not the claim's is an error.
func (c *Controller) recorded(ctx context.Context, claim *v1.PersistentVolumeClaim) (bool, error) {
	name := binding.ProvisionedName(claim)
	volume, err := c.Client.CoreV1().PersistentVolumes().Get(ctx, name, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		return false, nil
	case err != nil:
		return false, fmt.Errorf("read volume %s: %w", name, err)
	case !binding.MadeFor(volume, claim):
		return true, fmt.Errorf("provision volume: another volume has the name %s; delete that one, or this claim", name)
	}
	return true, nil
}

// abandon deletes what a try to provision may have left, unless a volume records
// it, and lets go of the claim. The plugin finds it by making it again.
func (c *Controller) abandon(ctx context.Context, claim *v1.PersistentVolumeClaim, plugin intree.Provisioner) error {
	recorded, err := c.recorded(ctx, claim)
	if err != nil && !recorded {
		return err
	}
	if !recorded {
		// No class matters for what is deleted at once. What cannot be made was not made.
		request := intree.Request{VolumeName: binding.ProvisionedName(claim), Claim: claim, Class: &storagev1.StorageClass{}}
		if volume, err := c.make(ctx, plugin, request); err == nil {
			if err := c.cleanUp(ctx, claim, plugin, volume); err != nil {
				return err
			}
		}
	}
	change := finalizer.Edit(patch.For(claim), claim, finalizer.Change{Remove: []finalizer.Name{finalizer.Provisioning}})
	_, err = c.writer.Claim(ctx, claim, change)
	return err
}

// cleanUp deletes what was made and is not recorded by any volume.
func (c *Controller) cleanUp(ctx context.Context, claim *v1.PersistentVolumeClaim, plugin intree.Provisioner, volume *v1.PersistentVolume) error {
	deleter, able := plugin.(intree.Deleter)
	if !able {
		return nil
	}
	if err := deleter.Delete(ctx, volume); err != nil {
		c.Reporter.Report(claim, controller.Warn(provisioningCleanupFailed, fmt.Sprintf("What was made for the claim cannot be deleted: %v; this is tried again", err)))
		return fmt.Errorf("delete volume %s that was made in vain: %w", volume.Name, err)
	}
	return nil
}

// failed tells the user why there is no volume yet.
func (c *Controller) failed(claim *v1.PersistentVolumeClaim, err error) error {
	if err != nil {
		c.Operations.Failed(claim.UID)
		c.Reporter.Report(claim, controller.Warn(provisioningFailed, err.Error()))
	}
	return err
}

// reschedule hands a claim whose volume cannot be made back to the scheduler, which
// may find another node.
func (c *Controller) reschedule(ctx context.Context, claim *v1.PersistentVolumeClaim) error {
	if _, selected := claim.Annotations[binding.SelectedNode]; !selected {
		return nil
	}
	change := patch.ForVersion(claim).Remove("/metadata/annotations/" + patch.Escape(binding.SelectedNode))
	_, err := c.writer.Claim(ctx, claim, change)
	return err
}

// refused says whether the server has said that the object will never exist: only
// then may what it would have recorded be deleted.
func refused(err error) bool {
	return apierrors.IsInvalid(err) || apierrors.IsForbidden(err) || apierrors.IsBadRequest(err)
}

func referenceTo(claim *v1.PersistentVolumeClaim) *v1.ObjectReference {
	return &v1.ObjectReference{
		Kind: "PersistentVolumeClaim", APIVersion: "v1",
		Namespace: claim.Namespace, Name: claim.Name, UID: claim.UID, ResourceVersion: claim.ResourceVersion,
	}
}
