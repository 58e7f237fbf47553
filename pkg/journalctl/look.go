package journalctl

import (
	"context"
	"fmt"

	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/exeunt-io/exeunt/pkg/storage"
)

// sight is what was read live of an entry's claim and volume.
type sight struct {
	claim storage.ClaimRelation
	// bound: the claim is Bound or Lost and names the volume.
	bound  bool
	volume storage.Record
}

// look reads the claim and the PersistentVolume of an entry.
func look(ctx context.Context, client kubernetes.Interface, item Item) (sight, error) {
	claim, err := client.CoreV1().PersistentVolumeClaims(item.Claim.Namespace).Get(ctx, item.Claim.Name, metav1.GetOptions{})
	if err != nil && !apierrors.IsNotFound(err) {
		return sight{}, fmt.Errorf("read claim %s, nothing was changed: %w", item.Claim, err)
	}
	if err != nil {
		claim = nil
	}
	seen := sight{claim: storage.ClaimWithUID(claim, item.ClaimUID, item.Volume)}
	seen.bound = seen.claim == storage.ClaimBound && (claim.Status.Phase == v1.ClaimBound || claim.Status.Phase == v1.ClaimLost)
	volume, err := client.CoreV1().PersistentVolumes().Get(ctx, item.Volume, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		volume = nil
	case err != nil:
		return sight{}, fmt.Errorf("read PersistentVolume %s, nothing was changed: %w", item.Volume, err)
	}
	seen.volume = storage.RecordOf(volume, item.ClaimUID)
	return seen, nil
}

// describe returns what was read, as a sentence.
func (s sight) describe(item Item) string {
	claim := "claim %s with UID %s exists and wants the volume"
	switch {
	case s.claim == storage.ClaimGone:
		claim = "claim %s with UID %s is gone"
	case s.claim == storage.ClaimElsewhere:
		claim = "claim %s with UID %s exists and names another volume"
	case s.bound:
		claim = "claim %s with UID %s is bound to the volume"
	}
	volume := map[storage.Record]string{
		storage.RecordAbsent:   "PersistentVolume %s does not exist",
		storage.RecordPresent:  "PersistentVolume %s records the volume",
		storage.RecordConflict: "PersistentVolume %s exists but does not refer to the claim",
	}[s.volume]
	return fmt.Sprintf(claim+", and "+volume, item.Claim, item.ClaimUID, item.Volume)
}
