package protection

import (
	"cmp"
	"fmt"
	"slices"

	v1 "k8s.io/api/core/v1"

	"github.com/exeunt-io/exeunt/pkg/blocker"
	"github.com/exeunt-io/exeunt/pkg/controller"
	"github.com/exeunt-io/exeunt/pkg/controller/waiting"
	"github.com/exeunt-io/exeunt/pkg/finalizer"
	"github.com/exeunt-io/exeunt/pkg/protection"
)

// trackWait has users told if the deletion of the claim waits for pods.
func (c *Controller) trackWait(claim *v1.PersistentVolumeClaim, state protection.ClaimState) {
	if !state.Deleting || !state.Protected || !state.Used {
		c.waiting.Clear(claim.UID, finalizer.ClaimProtection)
		return
	}
	c.waiting.Wait(waiting.Deletion{
		Object: waiting.ClaimReference(claim), Finalizer: finalizer.ClaimProtection,
		Since: waiting.ClaimSince(claim), Reason: blocker.PodUsesClaim,
		Blocker: func() (blocker.Blocker, bool) {
			return podUsesClaim(c.caches.PodsOf(controller.Key(claim)), claim)
		},
		Exists: func() bool { return c.caches.HasClaim(claim) },
	})
}

// podUsesClaim returns the pods that the deletion of the claim waits for, or false if no pod
// uses the claim.
func podUsesClaim(pods []*v1.Pod, claim *v1.PersistentVolumeClaim) (blocker.Blocker, bool) {
	users := slices.DeleteFunc(slices.Clone(pods), func(pod *v1.Pod) bool { return !protection.Uses(pod, claim) })
	if len(users) == 0 {
		return blocker.Blocker{}, false
	}
	first := slices.MinFunc(users, func(a, b *v1.Pod) int { return cmp.Compare(a.Name, b.Name) })
	holder := "Pod " + controller.Key(first)
	next := fmt.Sprintf("kubectl delete pod %s -n %s", first.Name, first.Namespace)
	switch {
	case first.DeletionTimestamp != nil:
		holder += ", which is being deleted"
		next = fmt.Sprintf("kubectl exeunt why pod/%s -n %s", first.Name, first.Namespace)
	case first.Status.Phase == v1.PodSucceeded || first.Status.Phase == v1.PodFailed:
		holder += ", which has finished and still exists"
	default:
		next = "once the pod is no longer needed: " + next
	}
	if others := len(users) - 1; others > 0 {
		holder += fmt.Sprintf(", and %d more", others)
	}
	return blocker.Blocker{
		Object:    blocker.Object{Kind: "Pod", Namespace: first.Namespace, Name: first.Name, UID: string(first.UID)},
		Finalizer: string(finalizer.ClaimProtection), Reason: blocker.PodUsesClaim, Holder: holder, Verdict: blocker.Waiting, Next: next,
	}, true
}
