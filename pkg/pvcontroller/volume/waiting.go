package volume

import (
	"fmt"

	v1 "k8s.io/api/core/v1"

	"github.com/exeunt-io/exeunt/pkg/blocker"
	"github.com/exeunt-io/exeunt/pkg/controller"
	"github.com/exeunt-io/exeunt/pkg/controller/waiting"
	"github.com/exeunt-io/exeunt/pkg/finalizer"
	"github.com/exeunt-io/exeunt/pkg/protection"
	"github.com/exeunt-io/exeunt/pkg/storage"
)

// trackWait has users told if the deletion of the volume waits for its claim.
func (c *Controller) trackWait(volume *v1.PersistentVolume, state protection.VolumeState) {
	if !state.Deleting || !state.Protected || !state.Bound {
		c.Waiting.Clear(volume.UID, finalizer.VolumeProtection)
		return
	}
	c.Waiting.Wait(waiting.Deletion{
		Object: waiting.VolumeReference(volume), Finalizer: finalizer.VolumeProtection,
		Since: waiting.VolumeSince(volume), Reason: blocker.ClaimExists,
		Blocker: func() (blocker.Blocker, bool) {
			key := controller.ClaimKey(volume)
			return claimExists(volume, c.Caches.Claim(key), c.Caches.PodsOf(key))
		},
		Exists: func() bool { return c.Caches.HasVolume(volume) },
	})
}

// claimExists returns the claim that the deletion of the volume waits for. It returns false
// if the claim is gone, or is being deleted and waits for this program only.
func claimExists(volume *v1.PersistentVolume, claim *v1.PersistentVolumeClaim, pods []*v1.Pod) (blocker.Blocker, bool) {
	if storage.ClaimOf(volume, claim) == storage.ClaimGone || claim == nil {
		return blocker.Blocker{}, false
	}
	found := blocker.Blocker{
		Object:    blocker.Object{Kind: "PersistentVolumeClaim", Namespace: claim.Namespace, Name: claim.Name, UID: string(claim.UID)},
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
