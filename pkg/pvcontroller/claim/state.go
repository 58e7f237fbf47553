package claim

import (
	v1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"

	"github.com/exeunt-io/exeunt/pkg/binding"
	"github.com/exeunt-io/exeunt/pkg/controller"
	"github.com/exeunt-io/exeunt/pkg/pvcontroller/pvcache"
	"github.com/exeunt-io/exeunt/pkg/storage"
)

// Provisioners tells which program provisions for a storage class. intree.Set
// implements it.
type Provisioners interface {
	// Provisions reports whether an in-tree plugin of this program has the name and can
	// provision.
	Provisions(name string) bool
	// ExternalProvisioner returns the provisioner outside of this program that serves
	// classes with the name: the CSI driver that replaced an in-tree plugin, or the name
	// itself. It returns false for in-tree names without a CSI driver.
	ExternalProvisioner(name string) (string, bool)
}

// Observer derives the state of claims from the caches.
type Observer struct {
	Caches       *pvcache.Caches
	Provisioners Provisioners
	// Scrubbing tells what may be removing data of volumes; nil without in-tree plugins.
	Scrubbing Scrubbing
	// Dynamic enables dynamic provisioning.
	Dynamic bool
}

// observation is one claim with its volume, and what the caches say about its class. The
// objects are never changed.
type observation struct {
	claim *v1.PersistentVolumeClaim
	// volume is the volume that the claim names, that refers to the claim or that was
	// found for the claim; nil if there is none.
	volume *v1.PersistentVolume
	// owner is the claim that was bound to the volume, if the volume has no claimRef; nil for none.
	owner *v1.PersistentVolumeClaim
	state binding.ClaimState
	// defaultClass is the class that a claim without class gets, "" if there is none.
	defaultClass string
	// provisioner is the name that serves the claim's class, "" if there is none.
	provisioner string
	// driver is the CSI driver that replaced the requested in-tree plugin, "" if none did.
	driver string
}

func (o *observation) volumeName() string {
	if o.volume == nil {
		return ""
	}
	return o.volume.Name
}

// AwaitsPlugin reports whether the next step for the claim is to provision a volume with
// an in-tree plugin. The claim was read from the API server.
func (b *Observer) AwaitsPlugin(claim *v1.PersistentVolumeClaim) bool {
	o := b.observe(claim, b.volumeOf(claim), false)
	return binding.DecideClaim(o.state).Action == binding.ProvisionVolume
}

// volumeOf returns the volume that the claim names or that refers to the claim.
func (b *Observer) volumeOf(claim *v1.PersistentVolumeClaim) *v1.PersistentVolume {
	if claim.Spec.VolumeName != "" {
		return b.Caches.Volume(claim.Spec.VolumeName)
	}
	return binding.ReservedVolume(b.Caches.VolumesOf(controller.Key(claim)), claim)
}

// observe returns the observation of the claim and its volume, nil for none. Confirmed
// tells whether the volume was read from the API server.
func (b *Observer) observe(claim *v1.PersistentVolumeClaim, volume *v1.PersistentVolume, confirmed bool) *observation {
	requested := claim.Annotations[storage.AnnStorageProvisioner]
	owner := b.Caches.OwnerOf(volume)
	o := &observation{claim: claim, volume: volume, owner: owner, state: binding.ClaimState{
		Completed: bindCompleted(claim),
		Named:     claim.Spec.VolumeName != "",
		Deleting:  claim.DeletionTimestamp != nil,
		Volume:    relationOf(volume, claim, owner),
		Dynamic:   b.Dynamic,
		Status:    binding.StatusOf(claim, volume),
		Confirmed: confirmed,
	}}
	if volume != nil {
		o.state.VolumeBound = volume.Status.Phase == v1.VolumeBound
		o.state.VolumeScrubbed = b.isScrubbed(volume)
		o.state.Provisioning = binding.IsUnfinished(volume, claim) &&
			b.Provisioners.Provisions(volume.Annotations[storage.AnnDynamicallyProvisioned])
	}
	b.observeClass(o)
	provisionable := o.state.Class == binding.Provisionable || o.state.Class == binding.ProvisionableHere
	o.state.Requested = provisionable && requested == o.provisioner
	b.observeMigration(o)
	return o
}

func (b *Observer) isScrubbed(volume *v1.PersistentVolume) bool {
	return b.Scrubbing != nil && b.Scrubbing.IsScrubbed(volume)
}

// Scrubbing tells what may be removing data of a volume: the key of its recycler pod, or "" if its plugin does.
type Scrubbing interface {
	IsScrubbed(volume *v1.PersistentVolume) bool
	ScrubbingPod(volume *v1.PersistentVolume) string
}

// relationOf returns how the volume refers to the claim. A free volume must fit the claim: the
// claim may name any volume, and may have changed since a volume was found for it. A volume that lost its claimRef
// belongs to its owner.
func relationOf(volume *v1.PersistentVolume, claim, owner *v1.PersistentVolumeClaim) binding.Relation {
	relation := binding.RelationOf(volume, claim)
	switch {
	case relation == binding.Free && owner != nil && owner.UID != claim.UID:
		return binding.BoundToOther
	case relation == binding.Free && binding.Mismatch(volume, claim) != "":
		return binding.Mismatched
	}
	return relation
}

func bindCompleted(claim *v1.PersistentVolumeClaim) bool {
	_, completed := claim.Annotations[storage.AnnBindCompleted]
	return completed
}

// lacksVolume reports whether the claim may need a class: it was never bound, and cannot have the volume.
func (o *observation) lacksVolume() bool {
	switch o.state.Volume {
	case binding.Free, binding.Prebound, binding.BoundToClaim:
		return false
	case binding.Missing, binding.Mismatched, binding.BoundToOther:
	}
	return !o.state.Completed
}

// observeClass adds what the caches say about the class of the claim.
func (b *Observer) observeClass(o *observation) {
	if storage.ClaimClass(o.claim) == "" {
		if !storage.ClassChosen(o.claim) && o.lacksVolume() {
			o.defaultClass = b.defaultClass()
		}
		o.state.Class = binding.NoClass
		if o.defaultClass != "" {
			o.state.Class = binding.DefaultExists
		}
		return
	}
	class := b.Caches.Class(storage.ClaimClass(o.claim))
	if class == nil {
		o.state.Class = binding.NoSuchClass
		return
	}
	name, external := b.Provisioners.ExternalProvisioner(class.Provisioner)
	o.provisioner = name
	_, selected := o.claim.Annotations[storage.AnnSelectedNode]
	switch {
	case waitsForConsumer(class) && !selected:
		o.state.Class = binding.Delayed
	case b.Provisioners.Provisions(class.Provisioner):
		o.state.Class = binding.ProvisionableHere
	case external:
		o.state.Class = binding.Provisionable
	default:
		o.state.Class = binding.NoProvisioner
	}
}

// observeMigration compares the annotation migrated-to with the CSI driver that replaced
// the requested in-tree plugin. A claim without requested provisioner is left as it is.
func (b *Observer) observeMigration(o *observation) {
	name, requested := o.claim.Annotations[storage.AnnStorageProvisioner]
	if !requested {
		name, requested = o.claim.Annotations[storage.AnnBetaStorageProvisioner]
	}
	if external, _ := b.Provisioners.ExternalProvisioner(name); external != name {
		o.driver = external
	}
	o.state.MigratedToWrong = requested && o.claim.Annotations[storage.AnnMigratedTo] != o.driver
}

// delaysBinding reports whether the scheduler, not this controller, selects the volume.
func (b *Observer) delaysBinding(claim *v1.PersistentVolumeClaim) bool {
	class := b.Caches.Class(storage.ClaimClass(claim))
	return class != nil && waitsForConsumer(class)
}

func waitsForConsumer(class *storagev1.StorageClass) bool {
	return storage.WaitsForFirstConsumer(class)
}

// defaultClass returns the name of the newest default class, of equal age the first by
// name; "" if there is none.
func (b *Observer) defaultClass() string {
	var best *storagev1.StorageClass
	for _, class := range b.Caches.AllClasses() {
		switch {
		case !isDefault(class):
		case best == nil, best.CreationTimestamp.Before(&class.CreationTimestamp),
			best.CreationTimestamp.Equal(&class.CreationTimestamp) && class.Name < best.Name:
			best = class
		}
	}
	if best == nil {
		return ""
	}
	return best.Name
}

func isDefault(class *storagev1.StorageClass) bool {
	return class.Annotations["storageclass.kubernetes.io/is-default-class"] == "true" ||
		class.Annotations["storageclass.beta.kubernetes.io/is-default-class"] == "true"
}
