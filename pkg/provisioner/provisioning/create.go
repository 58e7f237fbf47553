package provisioning

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"k8s.io/klog/v2"

	"github.com/exeunt-io/exeunt/pkg/controller"
	"github.com/exeunt-io/exeunt/pkg/provision"
	"github.com/exeunt-io/exeunt/pkg/provisioner/backend"
	"github.com/exeunt-io/exeunt/pkg/provisioner/journalstore"
	"github.com/exeunt-io/exeunt/pkg/storage"
)

// create calls the driver and records the result.
func (c *Controller) create(ctx context.Context, o *observation, s provision.State) (*observation, error) {
	if s.Want == provision.Wanted {
		c.reportStart(o)
	}
	if !s.Journaled {
		c.reportBypass(o)
	}
	c.recordCall(o, s)
	call := backend.Call{Request: o.plan.request, Volume: o.plan.volume, Unwanted: s.Want == provision.Unwanted}
	answer, failed := c.Backend.Create(ctx, call)
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

// reportStart reports a call of the driver once it takes long, unless it is withdrawn.
func (c *Controller) reportStart(o *observation) {
	message := fmt.Sprintf("External provisioner is provisioning volume for claim %q", controller.Key(o.claim))
	c.Reporter.ReportAfter(o.claim, controller.NormalEvent(provisioning, message), storage.QuietWait)
}

// Reasons for a call without a journal entry.
const (
	bypassTooLarge  = "TooLarge"
	bypassForbidden = "Forbidden"
)

// reportBypass counts a call without a journal entry, and reports one that is not reported yet: with the right to create
// Leases alone, a Lease of this term says that the journal is complete.
func (c *Controller) reportBypass(o *observation) {
	reason := o.record.request.bypass
	if reason == "" && c.Journaled && c.Journal != nil {
		reason = bypassForbidden
		c.reportUnlogged(o, journalstore.ErrForbidden)
	}
	if reason != "" && c.Bypassed != nil {
		c.Bypassed(reason)
	}
}

// recordCall records that the driver is being called: from now on there may be a volume.
func (c *Controller) recordCall(o *observation, s provision.State) {
	c.updateRecord(o, func(r *claimRecord) {
		wasOpen := r.request.creation == provision.Requested || r.request.creation == provision.FailedOnce
		if !wasOpen || !o.plan.equals(r.request.plan) {
			// not after FailedOnce: one denial leaves the outcome open
			r.claim.openedAt = time.Now()
		}
		r.request.creation, r.claim.requested = provision.Requested, true
		r.object.appeared = r.object.appeared && s.Want != provision.Wanted // a claim that waits has used no volume
		r.claim.last, r.claim.node = o.claim, o.plan.selected
		if !o.plan.alternative {
			r.request.plan = o.plan.withoutCredentials()
		}
	})
}

// checkHandle refuses a volume without a handle, and a handle that another volume has, or a volume that is being
// recorded or discarded. The two claims would share one disk, and the deletion of one volume, or its discard,
// would delete the data of the other one.
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
	unresolved := reason + ", which does not say whether there is a volume"
	return &backend.Failure{Err: errors.New(reason), Outcome: provision.Uncertain, Unresolved: unresolved}
}

// flawOf returns why the claim cannot use the created volume, "" if it can. A volume in another place than the
// requested one is recorded where it is, as csi-provisioner does, unless it is certainly new.
func (c *Controller) flawOf(o *observation, s provision.State, answer backend.Answer) string {
	switch {
	case o.plan.alternative && s.Want == provision.Wanted:
		return "the volume was created by an earlier request for the claim, which asked for something else"
	case answer.Unusable == "" && s.Made:
		// Only a volume that is certainly new: after a restore of etcd a claim waited again whose disk was full,
		// its next pod was in another zone, and the disk, in the wrong place for this request, was deleted.
		return answer.Elsewhere
	}
	return answer.Unusable
}

// checkAge refuses a volume with a flaw that may be older than the requests of this process. CreateVolume finds
// volumes by their name and does not say which are new: a disk that is too small for this request may be the one
// that the claim had before a restore of etcd, with its data. It is left alone; the request is repeated, in case
// somebody moves it away.
func (c *Controller) checkAge(s provision.State, answer backend.Answer, flaw string) *backend.Failure {
	if flaw == "" || s.Made {
		return nil
	}
	c.memory.release(c.Deletion.HandleOf(answer.Volume))
	reason := fmt.Sprintf("%s; the volume with the handle %q may be older than this request and hold data, "+
		"as after a restore of etcd, and is left alone: delete it in the storage system if nobody needs it", flaw,
		answer.Shown)
	return &backend.Failure{Err: errors.New(reason), Outcome: provision.Uncertain, Unresolved: reason}
}

// recordFailure records a failed call.
func (c *Controller) recordFailure(ctx context.Context, o *observation, s provision.State,
	failed *backend.Failure) *observation {
	before := o.record.request.answers
	longAgo := !before.failedAt.IsZero() && time.Since(before.failedAt) >= c.Timeouts.RepeatedFailure
	counts := longAgo && before.noVolumes+1 >= 2*o.record.entry.requests()
	creation := provision.After(failed.Outcome, o.record.request.creation, counts)
	if !c.recordResult(ctx, o, func(r *claimRecord) {
		r.request.creation = creation
		answers := &r.request.answers
		triedAll := answers.alternatives >= len(r.entry.superseded)
		reason := cmp.Or(failed.Unresolved, provision.Unresolved(failed.Outcome, triedAll))
		isAnswer := failed.Outcome != provision.Unanswered && failed.Outcome != provision.Unchanged
		if reason != "" || isAnswer {
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

// recordResult records the result of a call. It returns false, and records nothing, if an event of the claim's
// PersistentVolume came during the call. The volume may have been recorded by an earlier write, bound and
// deleted: recorded again, it would bind a claim to a disk that is gone. So the call is repeated.
func (c *Controller) recordResult(ctx context.Context, o *observation, change func(*claimRecord)) bool {
	var seen bool
	c.updateRecord(o, func(r *claimRecord) {
		if seen = r.object.events != o.record.object.events; !seen {
			change(r)
		}
	})
	if seen {
		logger := klog.FromContext(ctx)
		logger.Info("A PersistentVolume of the claim was seen during the call; the call is repeated", "volume", o.name)
	}
	return !seen
}
