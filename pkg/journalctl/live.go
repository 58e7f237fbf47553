package journalctl

import (
	"context"
	"fmt"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/exeunt-io/exeunt/internal/absent"
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
	claim, err := client.CoreV1().PersistentVolumeClaims(item.Claim.Namespace).Get(ctx, item.Claim.Name, metav1.GetOptions{})
	if err != nil && !absent.Is(err, item.Claim.Name) {
		return liveObjects{}, fmt.Errorf("read claim %s, nothing was changed: %w", item.Claim, err)
	}
	if err != nil {
		claim = nil
	}
	live := liveObjects{claim: storage.ClaimWithUID(claim, item.ClaimUID, item.Volume)}
	live.bound = live.claim == storage.ClaimBound && (claim.Status.Phase == v1.ClaimBound || claim.Status.Phase == v1.ClaimLost)
	live.deleting = live.claim != storage.ClaimGone && claim.DeletionTimestamp != nil
	volume, err := client.CoreV1().PersistentVolumes().Get(ctx, item.Volume, metav1.GetOptions{})
	switch {
	case absent.Is(err, item.Volume):
		volume = nil
	case err != nil:
		return liveObjects{}, fmt.Errorf("read PersistentVolume %s, nothing was changed: %w", item.Volume, err)
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
		text = fmt.Sprintf(claim+", and PersistentVolume %s records handle %s, not %s", item.Claim, item.ClaimUID, item.Volume, l.handle, item.Entry.Handle)
	}
	return text
}
