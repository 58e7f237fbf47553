package volume

import (
	"fmt"

	v1 "k8s.io/api/core/v1"

	"github.com/exeunt-io/exeunt/pkg/blocker"
	"github.com/exeunt-io/exeunt/pkg/controller"
	"github.com/exeunt-io/exeunt/pkg/controller/waiting"
	"github.com/exeunt-io/exeunt/pkg/finalizer"
	"github.com/exeunt-io/exeunt/pkg/protection"
	"github.com/exeunt-io/exeunt/pkg/reclaim"
	"github.com/exeunt-io/exeunt/pkg/reclaim/external"
	"github.com/exeunt-io/exeunt/pkg/storage"
)

// trackWait has users told if the deletion of the volume waits for its claim, or for a provisioner that has to honor the
// annotation first.
func (c *Controller) trackWait(volume *v1.PersistentVolume, state protection.VolumeState) {
	deletion := waiting.Deletion{
		Object: waiting.VolumeReference(volume), Finalizer: finalizer.VolumeProtection, Since: waiting.VolumeSince(volume),
		Exists: func() bool { return c.Caches.HasVolume(volume) },
	}
	switch isKept := state.Deleting && state.Protected; {
	case isKept && state.Bound:
		deletion.Reason = blocker.ClaimExists
		deletion.Blocker = func() (blocker.Blocker, bool) {
			key := controller.ClaimKey(volume)
			return claimExists(volume, c.Caches.Claim(key), c.Caches.PodsOf(key))
		}
	case isKept && state.AwaitsReclaim && reclaim.StatusOf(volume) == reclaim.StatusPending:
		deletion.Reason = blocker.TooLateToProtect
		deletion.Blocker = func() (blocker.Blocker, bool) { return provisionerDeletes(volume), true }
	default:
		c.Waiting.Clear(volume.UID, finalizer.VolumeProtection)
		return
	}
	c.Waiting.Wait(deletion)
}

// provisionerDeletes returns the provisioner that the volume waits for. Upstream's never deletes the disk of a volume that
// was deleted before it had the finalizer.
func provisionerDeletes(volume *v1.PersistentVolume) blocker.Blocker {
	return blocker.Blocker{
		Object:    blocker.Object{Kind: "PersistentVolume", Name: volume.Name, UID: string(volume.UID)},
		Finalizer: string(finalizer.VolumeProtection), Reason: blocker.TooLateToProtect, Verdict: blocker.Waiting,
		Holder: "the provisioner of driver " + external.DriverOf(volume) + ", if it is that of Exeunt",
		Next:   "kubectl exeunt why pv/" + volume.Name,
	}
}

// claimExists returns the claim that the deletion of the volume waits for. It returns false
// if the claim is gone, or is being deleted and waits for this program only.
func claimExists(volume *v1.PersistentVolume, claim *v1.PersistentVolumeClaim, pods []*v1.Pod) (blocker.Blocker, bool) {
	if storage.ClaimOf(volume, claim) == storage.ClaimGone || claim == nil {
		return blocker.Blocker{}, false
	}
	found := blocker.Blocker{
		Object: blocker.Object{Kind: "PersistentVolumeClaim", Namespace: claim.Namespace, Name: claim.Name,
			UID: string(claim.UID)},
		Finalizer: string(finalizer.VolumeProtection), Reason: blocker.ClaimExists,
		Holder: "PersistentVolumeClaim " + controller.Key(claim), Verdict: blocker.Waiting,
		Next: fmt.Sprintf("once the claim is no longer needed: kubectl delete pvc %s -n %s", claim.Name, claim.Namespace),
	}
	if claim.DeletionTimestamp == nil {
		return found, true
	}
	found.Holder += ", which is being deleted"
	found.Next = fmt.Sprintf("kubectl exeunt why pvc/%s -n %s", claim.Name, claim.Namespace)
	return found, isUsed(claim, pods) || len(finalizer.Without(claim.Finalizers, finalizer.ClaimProtection)) > 0
}

// isUsed reports whether a pod uses the claim.
func isUsed(claim *v1.PersistentVolumeClaim, pods []*v1.Pod) bool {
	for _, pod := range pods {
		if protection.Uses(pod, claim) {
			return true
		}
	}
	return false
}
