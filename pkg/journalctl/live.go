package journalctl

import (
	"context"
	"fmt"

	v1 "k8s.io/api/core/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/exeunt-io/exeunt/pkg/controller"
	"github.com/exeunt-io/exeunt/pkg/storage"
)

// liveObjects is the state of an entry's claim and PersistentVolume after a live read.
type liveObjects struct {
	claim storage.ClaimRelation
	// bound: the claim is Bound or Lost and names the volume. deleting: the claim is being deleted.
	bound, deleting bool

	volume storage.Record
	// handle is that of the PersistentVolume, if the entry has another: its volume is not recorded.
	handle string
}

// readLive reads the claim and the PersistentVolume of an entry from the API server.
func readLive(ctx context.Context, client kubernetes.Interface, item entryItem) (liveObjects, error) {
	claim, err := controller.ReadLive(ctx, "claim", item.Claim.Name,
		client.CoreV1().PersistentVolumeClaims(item.Claim.Namespace).Get)
	if err != nil {
		return liveObjects{}, fmt.Errorf("claim %s, nothing was changed: %w", item.Claim, err)
	}
	live := liveObjects{claim: storage.ClaimWithUID(claim, item.ClaimUID, item.Volume)}
	live.bound = live.claim == storage.ClaimBound && (claim.Status.Phase == v1.ClaimBound ||
		claim.Status.Phase == v1.ClaimLost)
	live.deleting = live.claim != storage.ClaimGone && claim.DeletionTimestamp != nil
	volume, err := controller.ReadLive(ctx, "PersistentVolume", item.Volume, client.CoreV1().PersistentVolumes().Get)
	if err != nil {
		return liveObjects{}, fmt.Errorf("nothing was changed: %w", err)
	}
	live.volume = storage.RecordOf(volume, item.ClaimUID)
	if live.volume == storage.RecordPresent && isOther(volume, item) {
		live.volume, live.handle = storage.RecordConflict, volume.Spec.CSI.VolumeHandle
	}
	return live, nil
}

// isOther reports whether the PersistentVolume has another handle than the entry.
func isOther(volume *v1.PersistentVolume, item entryItem) bool {
	return volume.Spec.CSI != nil && item.Entry.Handle != "" && volume.Spec.CSI.VolumeHandle != item.Entry.Handle
}

// claimStatus returns the state of the claim as the predicate of a sentence.
func (l liveObjects) claimStatus() string {
	switch {
	case l.claim == storage.ClaimGone:
		return "is gone"
	case l.claim == storage.ClaimElsewhere:
		return "exists and names another volume"
	case l.bound:
		return "is bound to the volume"
	case l.deleting:
		return "is being deleted"
	}
	return "exists and wants the volume"
}

// describe returns the state of both objects as a sentence.
func (l liveObjects) describe(item entryItem) string {
	claim := "claim %s with UID %s " + l.claimStatus()
	volume := map[storage.Record]string{
		storage.RecordAbsent:   "PersistentVolume %s does not exist",
		storage.RecordPresent:  "PersistentVolume %s records the volume",
		storage.RecordConflict: "PersistentVolume %s exists but does not refer to the claim",
	}[l.volume]
	text := fmt.Sprintf(claim+", and "+volume, item.Claim, item.ClaimUID, item.Volume)
	if l.handle != "" {
		text = fmt.Sprintf(claim+", and PersistentVolume %s records handle %s, not %s", item.Claim, item.ClaimUID,
			item.Volume, l.handle, item.Entry.Handle)
	}
	return text
}
