package runner

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"github.com/exeunt-io/exeunt/internal/answer"
	"github.com/exeunt-io/exeunt/pkg/alive"
	"github.com/exeunt-io/exeunt/pkg/patch"
)

// Aborted is what an abort has done, and what it could not undo.
type Aborted struct {
	// Started: the teardown had started. What is gone stays gone, and so does what participants did.
	Started bool
	// Undone are sentences about what came back or was saved.
	Undone []string
	// Left are sentences about what could not be undone.
	Left []string
	// Next are commands.
	Next []string
}

// Abort stops a teardown (#71). Before the start all is undone. After it nothing new is deleted, and the disks of claims
// that are deleted already are saved; the freeze stays, or the owners of deleted volumes would fill new, empty ones.
func (r *Runner) Abort(ctx context.Context) (*Aborted, error) {
	object, err := r.readAlive(ctx)
	if err != nil {
		return nil, err
	}
	if object == nil {
		return &Aborted{Left: []string{"there is no Alive: no teardown is in progress"}}, nil
	}
	if err := r.protect(ctx, object); err != nil {
		return nil, err
	}
	// Whether it has started counts after the protection: from then on nobody starts it.
	if object, err = r.readAlive(ctx); err != nil {
		return nil, err
	}
	done := &Aborted{Undone: []string{"the cluster is protected again"}}
	switch {
	case object == nil:
		return nil, ErrNotCompleted
	case !object.IsDeleted():
		return done, nil
	case object.IsStarted():
		done.Started = true
		return done, r.saveDisks(ctx, done)
	}
	return done, r.revive(ctx, object, done)
}

// protect sets spec.protected, which stops every runner.
func (r *Runner) protect(ctx context.Context, object *alive.Alive) error {
	if object.IsProtected() {
		return nil
	}
	_, err := r.patchAlive(ctx, patch.For(object).Set("/spec/protected", true))
	return err
}

// revive replaces an Alive that never started: without a start no participant has acted, so that their finalizers hold
// nothing.
func (r *Runner) revive(ctx context.Context, object *alive.Alive, done *Aborted) error {
	if err := r.removeFreeze(ctx); err != nil {
		return err
	}
	if len(object.Finalizers) > 0 {
		change := patch.ForVersion(object).TestDeletion(object).Test("/spec/protected", true)
		if _, err := r.patchAlive(ctx, change.Set("/metadata/finalizers", []string{})); err != nil {
			return err
		}
	}
	for began := time.Now(); ; {
		live, err := r.ensure(ctx)
		if err != nil {
			return err
		}
		if live != nil && live.UID != object.UID {
			break
		}
		if live == nil { // a runner that was stopped amid its write has written the freeze again
			if err := r.removeFreeze(ctx); err != nil {
				return err
			}
		}
		if time.Since(began) > r.Waits.Freeze {
			return errors.New("the deleted Alive is still there")
		}
		if !sleep(ctx, r.Waits.Probe) {
			return context.Cause(ctx)
		}
	}
	done.Undone = append(done.Undone, "nothing was deleted; the freeze is off, and a new Alive protects the cluster",
		"participants register again by themselves")
	return r.nameMarked(ctx, done)
}

// nameMarked names the volumes that the runner has marked: what their policy was before is in the plan only.
func (r *Runner) nameMarked(ctx context.Context, done *Aborted) error {
	volumes, err := answer.CheckedList(r.Objects.CoreV1().PersistentVolumes().List(ctx,
		metav1.ListOptions{LabelSelector: alive.PreserveLabel + "=" + keptBy}))
	if err != nil {
		return fmt.Errorf("list kept volumes: %w", err)
	}
	for i := range volumes.Items {
		done.Left = append(done.Left, fmt.Sprintf("PersistentVolume %s has the policy Retain and label %s",
			volumes.Items[i].Name, alive.PreserveLabel))
	}
	return nil
}

// disks is what an abort has found out about volumes, by their UID: sentences.
type disks struct {
	// seen are the volumes whose disks were to be deleted with their claims.
	seen        map[types.UID]string
	saved, left map[types.UID]string
}

// saveDisks sets the policy Retain on the volumes of claims that are deleted or gone. A runner amid a batch goes on for
// a moment after the protection: the lists are read again until it has stopped and they bring nothing new.
func (r *Runner) saveDisks(ctx context.Context, done *Aborted) error {
	found := disks{map[types.UID]string{}, map[types.UID]string{}, map[types.UID]string{}}
	var last holding
	for began, clean := time.Now(), 0; ; {
		idle, err := r.isIdle(ctx, &last) // before the lists: what was deleted by then is in them
		if err != nil {
			return err
		}
		isNew, err := r.saveOnce(ctx, &found)
		if err != nil {
			return err
		}
		if clean++; !idle || isNew {
			clean = 0
		}
		if clean >= 2 {
			break
		}
		if time.Since(began) > 4*r.Waits.Lease {
			done.Left = append(done.Left,
				"a runner does not say that it has stopped, and may delete more: give this command again")
			break
		}
		if !sleep(ctx, r.Waits.Probe) {
			return context.Cause(ctx)
		}
	}
	done.Undone = append(done.Undone, slices.Sorted(maps.Values(found.saved))...)
	done.Left = append(done.Left, slices.Sorted(maps.Values(found.left))...)
	done.Left = append(done.Left, "what is gone stays gone, and so does what participants did",
		"the freeze stays: without it the owners of deleted volumes would fill new, empty ones")
	done.Next = append(done.Next, r.Commands.Kubectl("", "delete", "validatingadmissionpolicybinding", FreezeName))
	return nil
}

// holding is a version of the Lease, and since when it is the current one by the clock of this process.
type holding struct {
	version string
	since   time.Time
}

// isIdle reports whether no runner deletes: the leader has written that it has stopped, or there is no leader.
func (r *Runner) isIdle(ctx context.Context, last *holding) (bool, error) {
	object, err := r.readAlive(ctx)
	if err != nil || object == nil || isStopped(object) {
		return err == nil, err
	}
	lease, exists, err := answer.Get(ctx, LeaseName, r.Objects.CoordinationV1().Leases(Namespace).Get)
	switch {
	case err != nil:
		return false, fmt.Errorf("read the Lease: %w", err)
	case !exists || ptr.Deref(lease.Spec.HolderIdentity, "") == "":
		return true, nil
	case lease.ResourceVersion != last.version: // renewed: times in the Lease may be those of a wrong clock
		*last = holding{lease.ResourceVersion, time.Now()}
	}
	lasts := time.Duration(ptr.Deref(lease.Spec.LeaseDurationSeconds, 0)) * time.Second
	return time.Since(last.since) > max(lasts, r.Waits.Lease), nil
}

// saveOnce saves what the lists show now. It reports whether there was anything new.
func (r *Runner) saveOnce(ctx context.Context, found *disks) (bool, error) {
	volumes, err := answer.CheckedList(r.Objects.CoreV1().PersistentVolumes().List(ctx, metav1.ListOptions{}))
	if err != nil {
		return false, fmt.Errorf("list volumes: %w", err)
	}
	stays, err := r.stayingClaims(ctx)
	if err != nil {
		return false, err
	}
	known, isStale := len(found.saved)+len(found.left), false
	here := map[types.UID]bool{}
	for i := range volumes.Items {
		volume := &volumes.Items[i]
		here[volume.UID] = true
		ref := volume.Spec.ClaimRef
		if ref == nil || ref.UID == "" || volume.Spec.PersistentVolumeReclaimPolicy != v1.PersistentVolumeReclaimDelete {
			continue
		}
		found.seen[volume.UID] = fmt.Sprintf("PersistentVolume %s of claim %s/%s", volume.Name, ref.Namespace, ref.Name)
		if !stays[ref.UID] {
			isStale = patch.IsStale(r.saveDisk(ctx, volume, found)) || isStale
		}
	}
	for uid, name := range found.seen {
		if !here[uid] && found.saved[uid] == "" {
			found.left[uid] = name + " is gone: its disk was deleted"
		}
	}
	return isStale || len(found.saved)+len(found.left) > known, nil
}

// saveDisk keeps the disk of a volume whose claim goes or is gone. Once the volume is released, its driver deletes the
// disk: the policy would come too late, and the claim that it is saved would be wrong.
func (r *Runner) saveDisk(ctx context.Context, volume *v1.PersistentVolume, found *disks) error {
	name := found.seen[volume.UID]
	if phase := volume.Status.Phase; phase == v1.VolumeReleased || phase == v1.VolumeFailed {
		found.left[volume.UID] = name + ": its disk is being deleted"
		return nil
	}
	err := r.retain(ctx, volume)
	if err != nil {
		found.left[volume.UID] = fmt.Sprintf("%s could not be saved: %v", name, err)
		return err
	}
	delete(found.left, volume.UID)
	found.saved[volume.UID] = name + " keeps its disk: the policy is Retain"
	return nil
}

// stayingClaims returns the UIDs of claims that are neither deleted nor go with a pod that is deleted: the garbage
// collector deletes an ephemeral claim once its pod is gone. It is called after the volumes were listed: a claim of one
// of them that it does not return goes, or is gone.
func (r *Runner) stayingClaims(ctx context.Context) (map[types.UID]bool, error) {
	claims, err := answer.CheckedList(r.Objects.CoreV1().PersistentVolumeClaims("").List(ctx, metav1.ListOptions{}))
	if err != nil {
		return nil, fmt.Errorf("list claims: %w", err)
	}
	// After the claims: a pod that is not in this list, and owns one of them, is gone.
	pods, err := answer.CheckedList(r.Objects.CoreV1().Pods("").List(ctx, metav1.ListOptions{}))
	if err != nil {
		return nil, fmt.Errorf("list pods: %w", err)
	}
	runs := map[types.UID]bool{}
	for i := range pods.Items {
		runs[pods.Items[i].UID] = pods.Items[i].DeletionTimestamp == nil
	}
	stays := map[types.UID]bool{}
	for i := range claims.Items {
		ofPod := slices.ContainsFunc(claims.Items[i].OwnerReferences, func(owner metav1.OwnerReference) bool {
			return owner.Kind == "Pod" && !runs[owner.UID]
		})
		stays[claims.Items[i].UID] = !ofPod && claims.Items[i].DeletionTimestamp == nil
	}
	return stays, nil
}

// retain keeps the disk of the version of a volume that was judged: it is of its claim, and not released.
func (r *Runner) retain(ctx context.Context, volume *v1.PersistentVolume) error {
	body, err := patch.ForVersion(volume).Set("/spec/persistentVolumeReclaimPolicy", "Retain").Bytes()
	if err != nil {
		return err
	}
	_, err = r.Objects.CoreV1().PersistentVolumes().Patch(ctx, volume.Name, types.JSONPatchType, body,
		metav1.PatchOptions{FieldManager: r.Agent})
	return err
}
