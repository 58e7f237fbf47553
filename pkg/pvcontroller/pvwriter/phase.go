package pvwriter

import (
	"context"

	v1 "k8s.io/api/core/v1"

	"github.com/exeunt-io/exeunt/pkg/controller"
	"github.com/exeunt-io/exeunt/pkg/patch"
)

// PhaseChange is the content of one write of a volume's phase.
type PhaseChange struct {
	Phase v1.PersistentVolumePhase
	// Message explains the phase Failed; "" for other phases.
	Message string
	// RemoveProtection: the same write removes the finalizer pv-protection.
	RemoveProtection bool
}

// SetPhase writes status.phase and status.message. The write fails as stale if phase,
// claim or finalizers changed meanwhile. It fails if anything changed if the volume refers to no
// claim of a UID, so that a claim that it gets meanwhile is seen, for the phase Bound, and for
// Released of a volume that was never Bound: a volume that a user deletes meanwhile could get no
// finalizer any more, and its data would leak. A volume that becomes Bound again gets back
// pv-protection in the same write.
func (w *Writer) SetPhase(ctx context.Context, volume *v1.PersistentVolume, phase PhaseChange) (*v1.PersistentVolume, error) {
	change := controller.RequirePhase(patch.For(volume), volume)
	switch ref := volume.Spec.ClaimRef; {
	case ref == nil, ref.UID == "", phase.Phase == v1.VolumeBound, phase.Phase == v1.VolumeReleased && volume.Status.Phase != v1.VolumeBound:
		change.Test("/metadata/resourceVersion", volume.ResourceVersion)
	default:
		change.Test("/spec/claimRef/uid", string(ref.UID))
	}
	change.Set("/status/phase", string(phase.Phase))
	if volume.Status.Message != phase.Message {
		change.Set("/status/message", phase.Message)
	}
	switch {
	case phase.RemoveProtection:
		removeProtection(change, volume)
	case phase.Phase == v1.VolumeBound && volume.DeletionTimestamp == nil:
		addProtection(change, volume)
	}
	return w.writer.PatchVolume(ctx, volume, change, "status")
}
