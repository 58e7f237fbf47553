package provisioning

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/klog/v2"

	"github.com/exeunt-io/exeunt/internal/answer"
	"github.com/exeunt-io/exeunt/pkg/controller"
	"github.com/exeunt-io/exeunt/pkg/provision"
	"github.com/exeunt-io/exeunt/pkg/provisioner/backend"
	"github.com/exeunt-io/exeunt/pkg/storage"
)

// create calls the driver and records the result.
func (c *Controller) create(ctx context.Context, o *observation, s provision.State) (*observation, error) {
	if s.Want == provision.Wanted {
		c.reportStart(o)
	}
	if !s.Journaled {
		c.countBypass(o.record)
	}
	c.updateRecord(o, func(r *claimRecord) {
		if r.request.creation != provision.Requested && r.request.creation != provision.FailedOnce || !o.plan.equals(r.request.plan) {
			r.claim.openedAt = time.Now() // one denial leaves the outcome open
		}
		r.request.creation, r.claim.requested = provision.Requested, true
		r.object.appeared = r.object.appeared && s.Want != provision.Wanted // a claim that waits has used no volume
		r.claim.last, r.claim.node = o.claim, o.plan.selected
		if !o.plan.alternative {
			r.request.plan = o.plan.withoutCredentials()
		}
	})
	answer, failed := c.Backend.Create(ctx, backend.Call{Request: o.plan.request, Volume: o.plan.volume, Unwanted: s.Want == provision.Unwanted})
	c.Reporter.Withdraw(o.claim.UID)
	if failed == nil {
		failed = c.checkHandle(answer, o)
	}
	flaw := ""
	if failed == nil {
		flaw = c.flawOf(o, s, answer)
		failed = c.checkAge(s, answer, flaw)
	}
	if failed != nil {
		return c.recordFailure(ctx, o, s, failed), nil
	}
	o.plan.assign(answer.Volume, c.Honor)
	if !c.recordResult(ctx, o, func(r *claimRecord) {
		r.request.creation = provision.Created
		r.disk = diskFacts{volume: answer.Volume, handle: answer.Handle, shown: answer.Shown, unusable: flaw}
	}) {
		return o.afterCall(provision.NoCause, nil), nil
	}
	klog.FromContext(ctx).V(2).Info("Volume created in the storage system", "volume", o.name, "handle", answer.Shown)
	return o.afterCall(provision.NoCause, nil), nil
}

// flawOf returns why the claim cannot use the created volume, "" if it can. A volume in another place than the
// requested one is recorded where it is, as csi-provisioner does, unless it is certainly new.
func (c *Controller) flawOf(o *observation, s provision.State, answer backend.Answer) string {
	switch {
	case o.plan.alternative && s.Want == provision.Wanted:
		return "the volume was created by an earlier request for the claim, which asked for something else"
	case answer.Unusable == "" && s.Made:
		return answer.Elsewhere
	}
	return answer.Unusable
}

// checkAge refuses a volume with a flaw that may be older than the requests of this process. It may hold data, and is left
// alone; the request is repeated, in case somebody moves the volume away.
func (c *Controller) checkAge(s provision.State, answer backend.Answer, flaw string) *backend.Failure {
	if flaw == "" || s.Made {
		return nil
	}
	c.memory.release(c.Deletion.HandleOf(answer.Volume))
	reason := fmt.Sprintf("%s; the volume with the handle %q may be older than this request and hold data, as after a restore of etcd, and is left alone: delete it in the storage system if nobody needs it",
		flaw, answer.Shown)
	return &backend.Failure{Err: errors.New(reason), Outcome: provision.Uncertain, Unresolved: reason}
}

// recordResult records the result of a call. It returns false, and records nothing, if an
// event of the claim's PersistentVolume came during the call: the volume may be deleted
// already, so the call is repeated.
func (c *Controller) recordResult(ctx context.Context, o *observation, change func(*claimRecord)) bool {
	var seen bool
	c.updateRecord(o, func(r *claimRecord) {
		if seen = r.object.events != o.record.object.events; !seen {
			change(r)
		}
	})
	if seen {
		klog.FromContext(ctx).Info("A PersistentVolume of the claim was seen during the call; the call is repeated", "volume", o.name)
	}
	return !seen
}

// afterCall returns the observation after a call of the driver.
func (o *observation) afterCall(cause provision.Cause, err error) *observation {
	after := o.next(o.claim)
	after.called, after.plan, after.cause, after.err = true, nil, cause, err
	return after
}

// checkHandle refuses a volume without a handle, and a handle of another volume: such a
// volume could never be deleted safely.
func (c *Controller) checkHandle(answer backend.Answer, o *observation) *backend.Failure {
	if answer.Handle == "" {
		return badHandle("the driver returned no volume handle")
	}
	others := slices.DeleteFunc(c.Deletion.VolumesOnDisk(answer.Volume), func(name string) bool { return name == o.name })
	if len(others) > 0 || !c.memory.reserve(c.Deletion.HandleOf(answer.Volume), o.claim.UID) {
		return badHandle(fmt.Sprintf("the driver returned the volume handle %q, which another volume has", answer.Shown))
	}
	return nil
}

func badHandle(reason string) *backend.Failure {
	return &backend.Failure{Err: errors.New(reason), Outcome: provision.Uncertain, Unresolved: reason + ", which does not say whether there is a volume"}
}

// recordFailure records a failed call.
func (c *Controller) recordFailure(ctx context.Context, o *observation, s provision.State, failed *backend.Failure) *observation {
	before := o.record.request.answers
	longAgo := !before.failedAt.IsZero() && time.Since(before.failedAt) >= c.Timeouts.RepeatedFailure
	counts := longAgo && before.noVolumes+1 >= 2*o.record.entry.requests()
	creation := provision.After(failed.Outcome, o.record.request.creation, counts)
	if !c.recordResult(ctx, o, func(r *claimRecord) {
		r.request.creation = creation
		answers := &r.request.answers
		reason := cmp.Or(failed.Unresolved, provision.Unresolved(failed.Outcome, answers.alternatives >= len(r.entry.superseded)))
		if isAnswer := failed.Outcome != provision.Unanswered && failed.Outcome != provision.Unchanged; reason != "" || isAnswer {
			answers.setUnresolved(reason)
		}
		answers.count(failed.Outcome, creation, r.entry.requests(), longAgo)
		if failed.NodeUnfit && !o.plan.alternative { // which may be for another node
			r.claim.unfit = o.claim.Annotations[storage.AnnSelectedNode]
		}
	}) {
		return o.afterCall(provision.NoCause, nil)
	}
	cause, err := provision.CauseOf(failed.Infeasible, failed.Ignored, s.Want), failed.Err
	if ctx.Err() != nil { // the end of this process interrupted the call, which is no failure of the driver
		return o.afterCall(cause, err)
	}
	c.countPass(o, failed.Err)
	if s.Want != provision.Unwanted && cause != provision.CallIgnored {
		err = c.reportFailure(o, c.userError(o, err, cause == provision.CallInfeasible))
	}
	if cause == provision.CallInfeasible {
		klog.FromContext(ctx).Error(err, "The driver refuses the request, trying again later", "wait", c.Backoff.Max)
	}
	return o.afterCall(cause, err)
}

// userError returns the text of the event for a failed call, or for a request that cannot
// be built.
func (c *Controller) userError(o *observation, err error, infeasible bool) error {
	if infeasible {
		return fmt.Errorf("failed to provision volume with StorageClass %q: infeasible error, retries will be delayed (not retried for %s unless class, node or annotations of the claim change): %w",
			storage.ClaimClass(o.claim), c.Backoff.Max, err)
	}
	return fmt.Errorf("failed to provision volume with StorageClass %q: %w", storage.ClaimClass(o.claim), err)
}

// save creates the PersistentVolume. An existing PersistentVolume with the name is read
// live: it may come from an earlier write with a lost response.
func (c *Controller) save(ctx context.Context, o *observation) (*observation, error) {
	changed := false
	c.updateRecord(o, func(r *claimRecord) {
		if changed = r.disk.volume == nil; !changed { // an event has reset the volume
			r.object.savedAt, r.object.seen = time.Time{}, false
		}
	})
	if changed {
		return o.next(o.claim), nil
	}
	created, err := c.Client.CoreV1().PersistentVolumes().Create(ctx, o.record.disk.volume, metav1.CreateOptions{})
	if err == nil {
		err = controller.CheckName(created, o.name)
	}
	switch {
	case apierrors.IsAlreadyExists(err):
		return c.readStored(ctx, o)
	case c.DiscardRefused && c.isMade(o) && answer.IsInvalidObject(err, "PersistentVolume", o.name):
		return c.refused(o, err), nil
	case err != nil:
		if !answer.IsDefinite(err) {
			c.updateRecord(o, func(r *claimRecord) {
				r.object.writtenAt, r.object.published = time.Now(), r.object.published || !isProtected(o.record.disk.volume)
			})
		}
		return nil, c.reportFailure(o, fmt.Errorf("error creating provisioned PV object for claim %s: %w", controller.Key(o.claim), err))
	case storage.RecordOf(created, o.claim.UID) != storage.RecordPresent || !c.Deletion.SameDisk(o.record.disk.volume, created):
		return c.readStored(ctx, o) // an admission webhook has changed what is stored
	}
	return c.recordSaved(o), nil
}

// readStored reads the PersistentVolume that is stored instead of the written one. If it has another disk, the created
// volume is left alone. An event of the PersistentVolume may have reset the record meanwhile: o still has the volume.
func (c *Controller) readStored(ctx context.Context, o *observation) (*observation, error) {
	after, err := c.readBoth(ctx, o)
	if err == nil && after.volume != nil {
		c.reportOtherDisk(o, after.volume)
	}
	return after, err
}

// reportOtherDisk reports that the PersistentVolume of the claim has another disk than the created volume.
func (c *Controller) reportOtherDisk(o *observation, recorded *v1.PersistentVolume) {
	if o.record.disk.volume != nil && !c.Deletion.SameDisk(o.record.disk.volume, recorded) {
		c.reportLeftAlone(o, volumeNamed)
	}
}

// refused notes that the API server refuses the PersistentVolume of the created volume.
func (c *Controller) refused(o *observation, reason error) *observation {
	c.updateRecord(o, func(r *claimRecord) {
		if r.disk.volume != nil { // no event of the volume came meanwhile
			r.disk.unusable = fmt.Sprintf("the API server refuses the PersistentVolume: %v", reason)
		}
	})
	return o.next(o.claim)
}

// acceptRecord records that the claim's PersistentVolume exists already. If the
// PersistentVolume has another disk, the created volume is left alone.
func (c *Controller) acceptRecord(o *observation) *observation {
	recorded := o.volume
	if recorded == nil {
		recorded = controller.Lookup[*v1.PersistentVolume](c.Volumes, o.name)
	}
	if recorded != nil {
		c.reportOtherDisk(o, recorded)
	}
	return c.recordSaved(o)
}

// volumeNamed is why a created volume is left alone.
const volumeNamed = "a PersistentVolume or a claim names its volume already"

// recordSaved records that the PersistentVolume exists, and reports the success.
func (c *Controller) recordSaved(o *observation) *observation {
	seen := false
	c.updateRecord(o, func(r *claimRecord) {
		seen = r.object.seen
		r.request, r.disk = requestFacts{}, diskFacts{}
		r.object.savedAt, r.object.recorded, r.object.conflict = time.Now(), true, false
	})
	if seen {
		c.memory.release(c.Deletion.HandleOf(o.record.disk.volume))
	}
	c.countPass(o, nil)
	c.reportSuccess(o)
	after := o.next(o.claim)
	after.plan = nil
	return after
}

// discard deletes a volume without a PersistentVolume. The call is prepared before volumes and
// claims are read, because reading a secret takes time. The reason is reported when the claim
// waits.
func (c *Controller) discard(ctx context.Context, o *observation) (*observation, error) {
	r := o.record
	deleteVolume, unprepared := c.Deletion.PrepareDiscard(ctx, r.disk.volume, r.disk.handle)
	recorded, err := c.isRecorded(ctx, o)
	switch {
	case err != nil:
		return nil, err
	case recorded:
		c.reportLeftAlone(o, volumeNamed)
	case unprepared != nil:
		return nil, c.reportCleanupFailed(o, unprepared)
	default:
		if err := deleteVolume(ctx); err != nil {
			return nil, c.reportCleanupFailed(o, err)
		}
		klog.FromContext(ctx).V(2).Info("Unused volume deleted in the storage system", "volume", o.name, "handle", r.disk.shown)
	}
	c.releaseHandle(r)
	c.updateRecord(o, func(r *claimRecord) {
		r.request, r.disk = requestFacts{creation: provision.Failed}, diskFacts{}
	})
	if r.disk.unusable == "" {
		return o.afterCall(provision.NoCause, nil), nil
	}
	return o.afterCall(provision.VolumeDiscarded, errors.New(r.disk.unusable)), nil
}

// isRecorded reports whether a PersistentVolume has the disk or one inside it, or a claim names
// the volume. All volumes and claims are read live: a recorded disk may hold data.
func (c *Controller) isRecorded(ctx context.Context, o *observation) (bool, error) {
	r := o.record
	if len(c.Deletion.VolumesDeletedWith(r.disk.volume)) > 0 || o.volume != nil && c.Deletion.DeletedWith(r.disk.volume, o.volume) {
		return true, nil
	}
	found, err := anyVolume(ctx, c.Client, func(volume *v1.PersistentVolume) bool { return c.Deletion.DeletedWith(r.disk.volume, volume) })
	if err != nil || found {
		return found, err
	}
	return anyClaim(ctx, c.Client, func(claim *v1.PersistentVolumeClaim) bool { return claim.Spec.VolumeName == o.name })
}

// releaseHandle ends the reservation of the created volume's handle.
func (c *Controller) releaseHandle(r claimRecord) {
	if r.disk.volume != nil {
		c.memory.release(c.Deletion.HandleOf(r.disk.volume))
	}
}
