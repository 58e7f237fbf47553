package deletion

import (
	"errors"

	v1 "k8s.io/api/core/v1"

	"github.com/exeunt-io/exeunt/pkg/blocker"
	"github.com/exeunt-io/exeunt/pkg/controller/waiting"
	"github.com/exeunt-io/exeunt/pkg/finalizer"
	"github.com/exeunt-io/exeunt/pkg/provisioner/backend"
	"github.com/exeunt-io/exeunt/pkg/reclaim/external"
)

// trackWait tracks a released volume that cannot be deleted yet. The pv-controller tells of
// volumes whose claim exists.
func (c *Controller) trackWait(o observation, reason external.Reason) {
	switch {
	case reason == external.HandleShared:
		c.track(o.volume, blocker.HandleShared, "", true)
	case reason == external.StillAttached:
		c.track(o.volume, blocker.VolumeAttached, "", true)
	case reason == external.StillClaimed && o.state.Phase.Released():
		c.track(o.volume, blocker.ClaimExists, claimOf(o.volume), false)
	default:
		c.Waiting.Clear(o.volume.UID, finalizer.External)
	}
}

// claimOf returns the claim of the volume as the holder of a blocker.
func claimOf(volume *v1.PersistentVolume) string {
	if ref := volume.Spec.ClaimRef; ref != nil {
		return "PersistentVolumeClaim " + ref.Namespace + "/" + ref.Name
	}
	return ""
}

// trackFailure tracks a volume whose deletion failed. The event VolumeFailedDelete has the
// error.
func (c *Controller) trackFailure(volume *v1.PersistentVolume, err error) {
	var missing *backend.SecretMissing
	if errors.As(err, &missing) {
		c.track(volume, blocker.SecretMissing, "Secret "+missing.Secret, true)
		return
	}
	c.track(volume, blocker.DriverRefuses, "", true)
}

// track has users told that the deletion of the volume waits for the holder, "" for the
// driver. Reported: a more exact event was just sent.
func (c *Controller) track(volume *v1.PersistentVolume, reason blocker.Reason, holder string, reported bool) {
	if holder == "" {
		holder = "the driver " + c.Deleter.Name()
	}
	c.Waiting.Wait(waiting.Deletion{
		Object: waiting.VolumeReference(volume), Finalizer: finalizer.External,
		Since: waiting.VolumeSince(volume), Reason: reason, Reported: reported,
		Blocker: func() (blocker.Blocker, bool) { return blockerOf(volume, reason, holder), true },
		Exists:  func() bool { return c.exists(volume) },
	})
}

// blockerOf returns why the deletion of the volume waits.
func blockerOf(volume *v1.PersistentVolume, reason blocker.Reason, holder string) blocker.Blocker {
	found := blocker.Blocker{
		Object:    blocker.Object{Kind: "PersistentVolume", Name: volume.Name, UID: string(volume.UID)},
		Finalizer: string(finalizer.External), Reason: reason, Holder: holder, Verdict: blocker.Waiting,
		Next: "kubectl exeunt why pv/" + volume.Name,
	}
	switch reason {
	case blocker.DriverDeletes:
		found.Next = "wait, and read the log of the driver if it takes longer than usual: " + found.Next
	case blocker.DriverRefuses, blocker.HandleShared, blocker.SecretMissing:
		found.Verdict = blocker.Stuck
	default:
	}
	return found
}
