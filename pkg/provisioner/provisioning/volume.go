package provisioning

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/klog/v2"

	"github.com/exeunt-io/exeunt/pkg/controller"
	"github.com/exeunt-io/exeunt/pkg/provision"
	"github.com/exeunt-io/exeunt/pkg/provisioner/backend"
	"github.com/exeunt-io/exeunt/pkg/storage"
)

// failure is an error of CreateVolume.
type failure struct {
	err error
	// hopeless: the same request would get the same answer.
	hopeless bool
	// ignored: another provisioner serves the claim.
	ignored bool
}

// create calls the driver and notes what is known of the volume since.
func (c *Controller) create(ctx context.Context, o *observation, s provision.State) (*observation, error) {
	if s.Want == provision.Wanted {
		c.reportStart(o)
	}
	before, _ := c.memory.of(o.claim.UID)
	if !s.Journaled {
		c.bypassed(before)
	}
	c.note(o, func(r *claimRecord) {
		if r.creation != provision.Open || !o.plan.equals(r.plan) {
			r.openedAt = time.Now()
		}
		r.creation, r.requested = provision.Open, true
		r.claim, r.node = o.claim, o.plan.selected
		if !o.plan.alternative {
			r.plan = o.plan.withoutCredentials()
		}
	})
	made, failed := c.Backend.Create(ctx, backend.Call{Request: o.plan.request, Volume: o.plan.volume, Unwanted: o.gone || s.Want == provision.Unwanted})
	if failed == nil {
		failed = c.checkHandle(made, o)
	}
	if now, _ := c.memory.of(o.claim.UID); now.sightings != before.sightings {
		klog.FromContext(ctx).Info("A PersistentVolume of the claim was seen during the call; the call is repeated", "volume", o.name)
		return o.afterCall(nil), nil
	}
	if failed != nil {
		return c.failed(ctx, o, s, before, failed)
	}
	provision.AssignmentOf(o.plan.volume).ApplyTo(made.Volume, c.Honor)
	klog.FromContext(ctx).V(2).Info("Volume created in the storage system", "volume", o.name, "handle", made.Shown)
	c.note(o, func(r *claimRecord) {
		r.creation = provision.Created
		r.volume, r.unusable, r.handle, r.shown = made.Volume, made.Unusable, made.Handle, made.Shown
		if o.plan.alternative && s.Want == provision.Wanted {
			r.unusable = "the volume was created by an earlier request for the claim, which asked for something else"
		}
	})
	return o.afterCall(nil), nil
}

// afterCall is the observation after the driver was called.
func (o *observation) afterCall(f *failure) *observation {
	after := o.next(o.claim)
	after.called, after.failure, after.plan = true, f, nil
	return after
}

// checkHandle refuses a volume of which nothing can be deleted: one without a
// handle, or with the handle of another volume.
func (c *Controller) checkHandle(made backend.Answer, o *observation) *backend.Failure {
	if made.Handle == "" {
		return badHandle("the driver returned no volume handle")
	}
	others := slices.DeleteFunc(c.Deletion.Naming(made.Volume), func(name string) bool { return name == o.name })
	if len(others) > 0 || !c.memory.reserve(c.Deletion.HandleOf(made.Volume), o.claim.UID) {
		return badHandle(fmt.Sprintf("the driver returned the volume handle %q, which another volume has", made.Shown))
	}
	return nil
}

func badHandle(reason string) *backend.Failure {
	return &backend.Failure{Err: errors.New(reason), Outcome: provision.Uncertain, Unresolved: reason + ", which does not say whether there is a volume"}
}

// failed notes what a failed call says.
func (c *Controller) failed(ctx context.Context, o *observation, s provision.State, before claimRecord, failed *backend.Failure) (*observation, error) {
	creation := provision.After(failed.Outcome, before.creation, !before.deniedAt.IsZero() && time.Since(before.deniedAt) >= c.Patience.Denial)
	c.note(o, func(r *claimRecord) {
		r.creation = creation
		r.noteDenial(creation)
		r.noteUnresolved(unresolvedBy(failed, r))
		if failed.Outcome == provision.Mismatch {
			r.alternatives++
		}
		if failed.NodeUnfit {
			r.unfit = o.claim.Annotations[storage.AnnSelectedNode]
		}
	})
	if c.Failed != nil {
		c.Failed(storage.ClaimClass(o.claim))
	}
	f := &failure{err: failed.Err, hopeless: failed.Infeasible && s.Want == provision.Wanted, ignored: failed.Ignored}
	c.count(o, failed.Err)
	if s.Want != provision.Unwanted && !f.ignored {
		f.err = c.reportFailure(o, c.sentence(o, failed.Err, f.hopeless))
	}
	if f.hopeless {
		klog.FromContext(ctx).Error(f.err, "The driver refuses the request, trying again later", "wait", c.Backoff.Max)
	}
	return o.afterCall(f), nil
}

// noteDenial notes when the driver denied the volume first.
func (r *claimRecord) noteDenial(creation provision.Creation) {
	switch {
	case creation != provision.Denied:
		r.deniedAt = time.Time{}
	case r.deniedAt.IsZero():
		r.deniedAt = time.Now()
	}
}

// noteUnresolved notes since when only an administrator can find out, "" for not.
func (r *claimRecord) noteUnresolved(reason string) {
	switch {
	case reason == "":
		r.unresolvedAt = time.Time{}
	case r.unresolvedAt.IsZero():
		r.unresolvedAt = time.Now()
	}
	r.unresolved = reason
}

// unresolvedBy returns why repeating the request does not help, "" if it may.
func unresolvedBy(failed *backend.Failure, r *claimRecord) string {
	switch {
	case failed.Unresolved != "":
		return failed.Unresolved
	case failed.Outcome == provision.Mismatch && r.alternatives >= len(r.superseded):
		return "the driver has a volume of that name, and says to every known request that it does not fit"
	case failed.Outcome == provision.SourceMissing:
		return "the driver no longer finds what the request names, such as its source, which an earlier call may have found"
	}
	return ""
}

// sentence is what the user reads of an error of the driver, or of a request that
// cannot be built.
func (c *Controller) sentence(o *observation, err error, hopeless bool) error {
	if hopeless {
		return fmt.Errorf("failed to provision volume with StorageClass %q: infeasible error, retries will be delayed (not tried again for %s unless class, node or annotations of the claim change): %w",
			storage.ClaimClass(o.claim), c.Backoff.Max, err)
	}
	return fmt.Errorf("failed to provision volume with StorageClass %q: %w", storage.ClaimClass(o.claim), err)
}

// save records the volume. An existing PersistentVolume of its name is success only
// if it refers to this claim.
func (c *Controller) save(ctx context.Context, o *observation) (*observation, error) {
	r, _ := c.memory.of(o.claim.UID)
	if r.volume == nil { // an event of it came a moment ago
		return o.next(o.claim), nil
	}
	c.note(o, func(r *claimRecord) { r.seen = false })
	_, err := c.Client.CoreV1().PersistentVolumes().Create(ctx, r.volume, metav1.CreateOptions{})
	if apierrors.IsAlreadyExists(err) {
		return c.compare(ctx, o)
	}
	if err != nil {
		return nil, c.reportFailure(o, fmt.Errorf("error creating provisioned PV object for claim %s: %w", controller.Key(o.claim), err))
	}
	return c.saved(o), nil
}

// compare reads the volume that has the name.
func (c *Controller) compare(ctx context.Context, o *observation) (*observation, error) {
	after, err := c.readBoth(ctx, o)
	if err != nil {
		return nil, err
	}
	if c.recordOf(after) == storage.RecordPresent {
		if r, _ := c.memory.of(o.claim.UID); r.volume != nil && !c.Deletion.SameDisk(r.volume, after.volume) {
			c.reportLeftAlone(o, r)
		}
		return c.saved(o), nil
	}
	return after, nil
}

func (c *Controller) saved(o *observation) *observation {
	r, _ := c.memory.of(o.claim.UID)
	c.note(o, func(r *claimRecord) {
		r.settle()
		r.saved, r.savedAt, r.recorded, r.nameTaken = true, time.Now(), true, false
	})
	if now, _ := c.memory.of(o.claim.UID); now.seen && r.volume != nil {
		c.memory.release(c.Deletion.HandleOf(r.volume))
	}
	c.count(o, nil)
	c.reportSuccess(o)
	after := o.next(o.claim)
	after.plan = nil
	return after
}

// discard deletes a volume that nothing records. If it cannot be used, the user reads
// why.
func (c *Controller) discard(ctx context.Context, o *observation) (*observation, error) {
	r, _ := c.memory.of(o.claim.UID)
	if r.volume == nil { // an event of it came a moment ago
		return o.next(o.claim), nil
	}
	recorded, err := c.isRecorded(ctx, o, r)
	switch {
	case err != nil:
		return nil, err
	case recorded:
		c.reportLeftAlone(o, r)
	default:
		if err := c.Deletion.Discard(ctx, r.volume, r.handle); err != nil {
			return nil, c.reportCleanupFailed(o, err)
		}
		klog.FromContext(ctx).V(2).Info("Unused volume deleted in the storage system", "volume", o.name, "handle", r.shown)
	}
	c.releaseHandle(r)
	c.note(o, func(r *claimRecord) {
		r.settle()
		r.creation = provision.Failed
	})
	after := o.next(o.claim)
	after.plan, after.called = nil, true
	if r.unusable != "" && r.unusable != discardedBefore && c.wantOf(after) == provision.Wanted {
		err := errors.New(r.unusable)
		c.count(o, err)
		after.failure = &failure{err: c.reportFailure(o, err)}
	}
	return after, nil
}

// isRecorded reports whether a PersistentVolume has the disk, or a claim names the
// volume. Both are read live from all there are: the disk may hold data then.
func (c *Controller) isRecorded(ctx context.Context, o *observation, r claimRecord) (bool, error) {
	if len(c.Deletion.Naming(r.volume)) > 0 || o.volume != nil && c.Deletion.SameDisk(r.volume, o.volume) {
		return true, nil
	}
	found, err := someVolume(ctx, c.Client, func(volume *v1.PersistentVolume) bool { return c.Deletion.SameDisk(r.volume, volume) })
	if err != nil || found {
		return found, err
	}
	return someClaim(ctx, c.Client, func(claim *v1.PersistentVolumeClaim) bool { return claim.Spec.VolumeName == o.name })
}

// releaseHandle ends the reservation of the handle of a volume that is settled.
func (c *Controller) releaseHandle(r claimRecord) {
	if r.volume != nil {
		c.memory.release(c.Deletion.HandleOf(r.volume))
	}
}
