package controller

import (
	"context"
	"fmt"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/validate/content"
	"k8s.io/client-go/kubernetes"
)

// LivePair reads the claim that the volume refers to from the API server, and then the volume: what is
// not to be deleted any more counts until the last moment, and a claim that is gone stays gone. If
// the volume refers to another claim by then, both are read again. The volume is nil if it is gone,
// or if another volume has its name. The time, for [CheckRead], is that before the read of the volume.
func LivePair(ctx context.Context, client kubernetes.Interface,
	volume *v1.PersistentVolume) (*v1.PersistentVolume, *v1.PersistentVolumeClaim, time.Time, error) {
	for {
		claim, err := LiveClaim(ctx, client, volume)
		if err != nil {
			return nil, nil, time.Time{}, err
		}
		read := time.Now()
		live, err := LiveVolume(ctx, client, volume)
		if live == nil || err != nil {
			return nil, nil, time.Time{}, err
		}
		if equality.Semantic.DeepEqual(live.Spec.ClaimRef, volume.Spec.ClaimRef) {
			return live, claim, read, nil
		}
		volume = live
	}
}

// LiveVolume reads the volume from the API server. It returns nil if the volume is gone,
// or if another volume has its name.
func LiveVolume(ctx context.Context, client kubernetes.Interface,
	cached *v1.PersistentVolume) (*v1.PersistentVolume, error) {
	volume, err := ReadLive(ctx, "volume", cached.Name, client.CoreV1().PersistentVolumes().Get)
	if err != nil || volume == nil || volume.UID != cached.UID {
		return nil, err
	}
	return volume, nil
}

// isName reports whether an object can have the text as name or namespace.
func isName(text string) bool { return text != "" && len(content.IsPathSegmentName(text)) == 0 }

// LiveClaim reads the claim that the volume's claimRef names from the API server, nil if
// there is none. The caller compares its UID with that of the claimRef.
func LiveClaim(ctx context.Context, client kubernetes.Interface,
	volume *v1.PersistentVolume) (*v1.PersistentVolumeClaim, error) {
	ref := volume.Spec.ClaimRef
	if ref == nil || !isName(ref.Namespace) || !isName(ref.Name) { // the API server stores any text in a claimRef
		return nil, nil
	}
	claim, err := ReadLive(ctx, "claim", ref.Name, client.CoreV1().PersistentVolumeClaims(ref.Namespace).Get)
	if err != nil {
		return nil, fmt.Errorf("volume %s in namespace %s: %w", volume.Name, ref.Namespace, err)
	}
	return claim, nil
}
