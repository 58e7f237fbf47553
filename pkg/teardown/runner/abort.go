package runner

import (
	"context"
	"errors"
	"fmt"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

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

// saveDisks sets the policy Retain on the volumes of claims that are being deleted.
func (r *Runner) saveDisks(ctx context.Context, done *Aborted) error {
	deleted, err := r.goingClaims(ctx)
	if err != nil {
		return err
	}
	volumes, err := answer.CheckedList(r.Objects.CoreV1().PersistentVolumes().List(ctx, metav1.ListOptions{}))
	if err != nil {
		return fmt.Errorf("list volumes: %w", err)
	}
	for i := range volumes.Items {
		volume := &volumes.Items[i]
		ref := volume.Spec.ClaimRef
		if ref == nil || volume.Spec.PersistentVolumeReclaimPolicy != v1.PersistentVolumeReclaimDelete {
			continue
		}
		if !deleted[ref.UID] {
			if volume.Status.Phase == v1.VolumeReleased {
				done.Left = append(done.Left, fmt.Sprintf("PersistentVolume %s of claim %s/%s: its disk is being deleted",
					volume.Name, ref.Namespace, ref.Name))
			}
			continue
		}
		if err := r.retain(ctx, volume); err != nil {
			done.Left = append(done.Left, fmt.Sprintf("PersistentVolume %s could not be saved: %v", volume.Name, err))
			continue
		}
		done.Undone = append(done.Undone, fmt.Sprintf("PersistentVolume %s of claim %s/%s keeps its disk: the policy is Retain",
			volume.Name, ref.Namespace, ref.Name))
	}
	done.Left = append(done.Left, "what is gone stays gone, and so does what participants did",
		"the freeze stays: without it the owners of deleted volumes would fill new, empty ones")
	done.Next = append(done.Next, r.Commands.Kubectl("", "delete", "validatingadmissionpolicybinding", FreezeName))
	return nil
}

// goingClaims returns the UIDs of claims that are deleted, or go with a pod that is deleted: the garbage collector deletes
// an ephemeral claim once its pod is gone.
func (r *Runner) goingClaims(ctx context.Context) (map[types.UID]bool, error) {
	claims, err := answer.CheckedList(r.Objects.CoreV1().PersistentVolumeClaims("").List(ctx, metav1.ListOptions{}))
	if err != nil {
		return nil, fmt.Errorf("list claims: %w", err)
	}
	// After the claims: a pod that is not in this list, and owns one of them, is gone.
	pods, err := answer.CheckedList(r.Objects.CoreV1().Pods("").List(ctx, metav1.ListOptions{}))
	if err != nil {
		return nil, fmt.Errorf("list pods: %w", err)
	}
	stays := map[types.UID]bool{}
	for i := range pods.Items {
		stays[pods.Items[i].UID] = pods.Items[i].DeletionTimestamp == nil
	}
	going := map[types.UID]bool{}
	for i := range claims.Items {
		owner := metav1.GetControllerOf(&claims.Items[i])
		ofPod := owner != nil && owner.Kind == "Pod" && !stays[owner.UID]
		going[claims.Items[i].UID] = ofPod || claims.Items[i].DeletionTimestamp != nil
	}
	return going, nil
}

// retain keeps the disk of a volume that is still of its claim.
func (r *Runner) retain(ctx context.Context, volume *v1.PersistentVolume) error {
	body, err := patch.For(volume).Test("/spec/persistentVolumeReclaimPolicy", "Delete").
		Test("/spec/claimRef/uid", string(volume.Spec.ClaimRef.UID)).
		Set("/spec/persistentVolumeReclaimPolicy", "Retain").Bytes()
	if err != nil {
		return err
	}
	_, err = r.Objects.CoreV1().PersistentVolumes().Patch(ctx, volume.Name, types.JSONPatchType, body,
		metav1.PatchOptions{FieldManager: r.Agent})
	return err
}
