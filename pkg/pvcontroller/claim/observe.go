package claim

import (
	"slices"

	v1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"

	"github.com/exeunt-io/exeunt/pkg/binding"
	"github.com/exeunt-io/exeunt/pkg/controller"
	"github.com/exeunt-io/exeunt/pkg/finalizer"
	"github.com/exeunt-io/exeunt/pkg/storage"
)

// observation is a claim and the volume that it names, that refers to it or that was
// found for it. The objects are never changed.
type observation struct {
	claim     *v1.PersistentVolumeClaim
	volume    *v1.PersistentVolume
	confirmed bool
}

func (o *observation) volumeName() string {
	if o.volume == nil {
		return ""
	}
	return o.volume.Name
}

// observe returns nil if the claim is gone, or if its cache lags behind an own
// write: the event of that write has the claim looked at again. The event of a
// volume may not, so that a volume that lags is an error.
func (c *Controller) observe(key string) (*observation, error) {
	claim := c.Caches.Claim(key)
	if claim == nil {
		c.index.Leave(key)
		return nil, nil
	}
	if !c.Versions.IsFresh(claim) {
		return nil, nil
	}
	volume, err := c.volumeFor(claim)
	if err != nil {
		c.Reporter.Report(claim, controller.WarningEvent(failedBinding, "Cannot look for a volume: "+err.Error()))
		return nil, nil
	}
	if volume != nil && !c.Versions.IsFresh(volume) {
		return nil, controller.ErrStaleCache
	}
	return &observation{claim: claim, volume: volume}, nil
}

// volumeFor returns the volume that the claim names or that refers to it, or
// else takes one from the index.
func (c *Controller) volumeFor(claim *v1.PersistentVolumeClaim) (*v1.PersistentVolume, error) {
	key := controller.Key(claim)
	if claim.Spec.VolumeName != "" {
		c.index.Leave(key)
		return c.Caches.Volume(claim.Spec.VolumeName), nil
	}
	if reserved := binding.Reserved(c.Caches.VolumesOf(key), claim); reserved != nil || completed(claim) || claim.DeletionTimestamp != nil {
		c.index.Leave(key)
		return reserved, nil
	}
	if c.delaysBinding(claim) {
		c.index.Leave(key)
		return nil, nil
	}
	return c.take(claim)
}

// take reserves a volume for the claim. The index may lag behind the cache: what
// it hands out counts only if the cache knows the very same.
func (c *Controller) take(claim *v1.PersistentVolumeClaim) (*v1.PersistentVolume, error) {
	for {
		name, err := c.index.Take(claim)
		if name == "" || err != nil {
			return nil, err
		}
		switch volume := c.Caches.Volume(name); {
		case volume == nil:
			c.index.Drop(name)
		case !c.Versions.IsFresh(volume), c.index.Put(volume):
			return volume, nil
		}
	}
}

func (o *observation) state(c *Controller) binding.ClaimState {
	s := binding.ClaimState{
		Completed: completed(o.claim),
		Named:     o.claim.Spec.VolumeName != "",
		Deleting:  o.claim.DeletionTimestamp != nil,
		Volume:    binding.RelationOf(o.volume, o.claim),
		Dynamic:   c.Dynamic,
		Status:    statusOf(o.claim, o.volume),
		Confirmed: o.confirmed,
		Mismarked: c.mismarked(o.claim),
	}
	if o.volume != nil {
		s.VolumeBound = o.volume.Status.Phase == v1.VolumeBound
		_, s.Provisioning = c.provisionerOfVolume(o.volume, o.claim)
		if s.Volume == binding.Free && s.Named && !s.Completed && binding.Mismatch(o.volume, o.claim) != "" {
			s.Volume = binding.Unfit
		}
	}
	s.Class = c.classOf(o.claim)
	s.Requested = (s.Class == binding.Provisionable || s.Class == binding.ProvisionableHere) && c.requested(o.claim)
	_, askedHere := c.Plugins.ProvisionerFor(o.claim.Annotations[storage.AnnStorageProvisioner])
	s.OldFinalizer = askedHere && finalizer.Has(o.claim.Finalizers, finalizer.Provisioning)
	return s
}

func completed(claim *v1.PersistentVolumeClaim) bool {
	_, done := claim.Annotations[storage.AnnBindCompleted]
	return done
}

// statusOf compares the status with what it should be for its phase.
func statusOf(claim *v1.PersistentVolumeClaim, volume *v1.PersistentVolume) binding.Status {
	status := &claim.Status
	bare := status.AccessModes == nil && status.Capacity == nil && status.CurrentVolumeAttributesClassName == nil
	switch {
	case status.Phase == v1.ClaimPending && bare:
		return binding.StatusPending
	case status.Phase == v1.ClaimLost && bare:
		return binding.StatusLost
	case status.Phase == v1.ClaimBound && volume != nil && slices.Equal(status.AccessModes, volume.Spec.AccessModes):
		return binding.StatusBound
	}
	return binding.OtherStatus
}

func (c *Controller) classOf(claim *v1.PersistentVolumeClaim) binding.Class {
	name := storage.ClaimClass(claim)
	if name == "" {
		if !storage.ClassChosen(claim) && defaultClass(c.Caches.AllClasses()) != nil {
			return binding.DefaultExists
		}
		return binding.NoClass
	}
	class := c.Caches.Class(name)
	if class == nil {
		return binding.NoSuchClass
	}
	if _, selected := claim.Annotations[storage.AnnSelectedNode]; delays(class) && !selected {
		return binding.Delayed
	}
	if _, here := c.Plugins.ProvisionerFor(class.Provisioner); here {
		return binding.ProvisionableHere
	}
	if _, known := c.Plugins.ExternalProvisioner(class.Provisioner); known {
		return binding.Provisionable
	}
	return binding.NoProvisioner
}

// delaysBinding says whether the scheduler, not this controller, picks the volume.
func (c *Controller) delaysBinding(claim *v1.PersistentVolumeClaim) bool {
	class := c.Caches.Class(storage.ClaimClass(claim))
	return class != nil && delays(class)
}

func delays(class *storagev1.StorageClass) bool {
	return class.VolumeBindingMode != nil && *class.VolumeBindingMode == storagev1.VolumeBindingWaitForFirstConsumer
}

func (c *Controller) requested(claim *v1.PersistentVolumeClaim) bool {
	name := c.provisionerOf(claim)
	return claim.Annotations[storage.AnnStorageProvisioner] == name
}

// provisionerOf is the name that is asked for a volume; the class is known to exist.
func (c *Controller) provisionerOf(claim *v1.PersistentVolumeClaim) string {
	class := c.Caches.Class(storage.ClaimClass(claim))
	if class == nil {
		return ""
	}
	if _, here := c.Plugins.ProvisionerFor(class.Provisioner); here {
		return class.Provisioner
	}
	name, _ := c.Plugins.ExternalProvisioner(class.Provisioner)
	return name
}

// defaultClass is the newest of those marked as default, of equal age the first
// by name; nil if none is.
func defaultClass(classes []*storagev1.StorageClass) *storagev1.StorageClass {
	var best *storagev1.StorageClass
	for _, class := range classes {
		switch {
		case !isDefault(class):
		case best == nil, best.CreationTimestamp.Before(&class.CreationTimestamp),
			best.CreationTimestamp.Equal(&class.CreationTimestamp) && class.Name < best.Name:
			best = class
		}
	}
	return best
}

func isDefault(class *storagev1.StorageClass) bool {
	return class.Annotations["storageclass.kubernetes.io/is-default-class"] == "true" ||
		class.Annotations["storageclass.beta.kubernetes.io/is-default-class"] == "true"
}
