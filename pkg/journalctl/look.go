package journalctl

import (
	"context"
	"fmt"

	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
)

// sight is what the API server says of an entry's claim and volume.
type sight struct {
	claim  ClaimState
	volume VolumeState
}

// look reads the claim and the PersistentVolume of an entry.
func look(ctx context.Context, client kubernetes.Interface, item Item) (sight, error) {
	claim, err := client.CoreV1().PersistentVolumeClaims(item.Claim.Namespace).Get(ctx, item.Claim.Name, metav1.GetOptions{})
	if err != nil && !apierrors.IsNotFound(err) {
		return sight{}, fmt.Errorf("read claim %s, nothing was changed: %w", item.Claim, err)
	}
	seen := sight{}
	if err == nil && claim.UID == item.ClaimUID {
		seen.claim = claimState(claim, item.Volume)
	}
	volume, err := client.CoreV1().PersistentVolumes().Get(ctx, item.Volume, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
	case err != nil:
		return sight{}, fmt.Errorf("read PersistentVolume %s, nothing was changed: %w", item.Volume, err)
	case volume.Spec.ClaimRef != nil && volume.Spec.ClaimRef.UID == item.ClaimUID:
		seen.volume = VolumeRecorded
	default:
		seen.volume = VolumeOfAnother
	}
	return seen, nil
}

func claimState(claim *v1.PersistentVolumeClaim, volume string) ClaimState {
	bound := claim.Status.Phase == v1.ClaimBound || claim.Status.Phase == v1.ClaimLost
	switch {
	case claim.Spec.VolumeName != "" && claim.Spec.VolumeName != volume:
		return ClaimElsewhere
	case bound && claim.Spec.VolumeName == volume:
		return ClaimBound
	}
	return ClaimWants
}

// describe says what was seen, as a sentence.
func (s sight) describe(item Item) string {
	claim := map[ClaimState]string{
		ClaimGone:      "claim %s with UID %s is gone",
		ClaimWants:     "claim %s with UID %s exists and wants the volume",
		ClaimElsewhere: "claim %s with UID %s exists and names another volume",
		ClaimBound:     "claim %s with UID %s is bound to the volume",
	}[s.claim]
	volume := map[VolumeState]string{
		VolumeMissing:   "PersistentVolume %s does not exist",
		VolumeRecorded:  "PersistentVolume %s records the volume",
		VolumeOfAnother: "PersistentVolume %s exists but does not refer to the claim",
	}[s.volume]
	return fmt.Sprintf(claim+", and "+volume, item.Claim, item.ClaimUID, item.Volume)
}
