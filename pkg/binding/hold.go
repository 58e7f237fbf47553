package binding

import (
	"sync"
	"time"

	v1 "k8s.io/api/core/v1"
)

// HoldsClaims on a volume: the provisioner that made it holds claims by the
// finalizer Provisioning, and lets go of those that are deleted without a volume. Its
// value is the UID of the claim that the volume was made for.
const HoldsClaims = "exeunt.io/holds-claims"

// MadeFor says whether the volume was provisioned for this very claim. One that was
// made for another claim can have been given to this one since, by hand. A volume
// without the mark tells by its name, or by being no older than the claim.
func MadeFor(volume *v1.PersistentVolume, claim *v1.PersistentVolumeClaim) bool {
	ref := volume.Spec.ClaimRef
	if ref == nil || ref.UID != claim.UID || volume.Annotations[ProvisionedBy] == "" {
		return false
	}
	if first, marked := volume.Annotations[HoldsClaims]; marked {
		return first == string(claim.UID)
	}
	_, chosen := volume.Annotations[BoundByController]
	return volume.Name == ProvisionedName(claim) || !chosen && !volume.CreationTimestamp.Before(&claim.CreationTimestamp)
}

// ProvisionedName is the name of the volume that an in-tree plugin makes for a claim.
func ProvisionedName(claim *v1.PersistentVolumeClaim) string {
	return "pvc-" + string(claim.UID)
}

// Holders knows which provisioners hold claims, so that the hold can ride on the
// write that asks for a volume. The newest volume of a provisioner tells: nobody
// needs to announce himself, and one that was replaced by another program is found
// out by that program's first volume. It is safe for concurrent use.
type Holders struct {
	mu     sync.Mutex
	newest map[string]evidence
}

type evidence struct {
	created time.Time
	holds   bool
}

// NewHolders knows of none.
func NewHolders() *Holders {
	return &Holders{newest: map[string]evidence{}}
}

// Saw takes note of a volume. Of several that are equally old, one without the mark
// decides: a hold that nobody takes off is worse than a write more.
func (h *Holders) Saw(volume *v1.PersistentVolume) {
	name := volume.Annotations[ProvisionedBy]
	if driver := volume.Annotations[MigratedTo]; driver != "" {
		name = driver
	}
	if name == "" {
		return
	}
	_, marked := volume.Annotations[HoldsClaims]
	created := volume.CreationTimestamp.Time
	h.mu.Lock()
	defer h.mu.Unlock()
	known, before := h.newest[name]
	switch {
	case !before, created.After(known.created):
		h.newest[name] = evidence{created: created, holds: marked}
	case created.Equal(known.created) && !marked:
		h.newest[name] = evidence{created: created}
	}
}

// Holds says whether the provisioner is known to hold claims.
func (h *Holders) Holds(provisioner string) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.newest[provisioner].holds
}
