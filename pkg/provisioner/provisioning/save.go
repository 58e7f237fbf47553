package provisioning

import (
	"context"
	"errors"
	"fmt"
	"time"

	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/pager"
	"k8s.io/klog/v2"

	"github.com/exeunt-io/exeunt/internal/answer"
	"github.com/exeunt-io/exeunt/pkg/controller"
	"github.com/exeunt-io/exeunt/pkg/finalizer"
	"github.com/exeunt-io/exeunt/pkg/provision"
	"github.com/exeunt-io/exeunt/pkg/storage"
)

// save creates the PersistentVolume. An existing PersistentVolume with the name is read
// live: it may come from an earlier write with a lost response.
func (c *Controller) save(ctx context.Context, o *observation) (*observation, error) {
	changed := false
	c.updateRecord(o, func(r *claimRecord) {
		// An event has reset the volume: its PersistentVolume came and went, and the disk may have gone with it.
		if changed = r.disk.volume == nil; !changed {
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
		return c.readConflicting(ctx, o, err)
	case c.DiscardRefused && c.isMade(o) && answer.IsInvalidObject(err, "PersistentVolume", o.name):
		// Only the validation of the API server itself proves that the PersistentVolume can never be created. A
		// webhook may deny with the same code 422 and be mended later: the disk was deleted for its denial.
		return c.refused(o, err), nil
	case err != nil:
		if !answer.IsDefinite(err) {
			// The write may still be executed, and its user may keep the disk without a trace: from now on the disk
			// is neither discarded before the write ends, nor requested again for a claim that is gone.
			c.updateRecord(o, func(r *claimRecord) {
				r.object.writtenAt = time.Now()
				r.object.published = r.object.published || !isProtected(o.record.disk.volume)
			})
		}
		return nil, c.reportUnsaved(o, err)
	case storage.RecordOf(created, o.claim.UID) != storage.RecordPresent ||
		!c.Deletion.SameDisk(o.record.disk.volume, created):
		// An admission webhook has changed claimRef or handle. The created disk would count as recorded, its entry
		// would go, and nobody would know of the disk.
		return c.readStored(ctx, o)
	}
	return c.recordSaved(o), nil
}

// isProtected reports whether the PersistentVolume has the finalizer: it remains until a provisioner has looked
// at it.
func isProtected(volume *v1.PersistentVolume) bool {
	return finalizer.Has(volume.Finalizers, finalizer.External)
}

// readConflicting reads the PersistentVolume that has the name of the written one. If there is none, an admission
// webhook denied the write with the code of an object that exists, and the write is repeated with backoff.
func (c *Controller) readConflicting(ctx context.Context, o *observation, denied error) (*observation, error) {
	after, err := c.readStored(ctx, o)
	if err == nil && after.volume == nil {
		return nil, c.reportUnsaved(o, denied)
	}
	return after, err
}

// reportUnsaved reports that the PersistentVolume was not created, and returns the error.
func (c *Controller) reportUnsaved(o *observation, err error) error {
	return c.reportFailure(o, fmt.Errorf("error creating provisioned PV object for claim %s: %w",
		controller.Key(o.claim), err))
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

// readStored reads the PersistentVolume that is stored instead of the written one. If it has another disk, the
// created volume is left alone. An event of the PersistentVolume may have reset the record meanwhile: o still has
// the volume.
func (c *Controller) readStored(ctx context.Context, o *observation) (*observation, error) {
	after, err := c.readBoth(ctx, o)
	if err == nil && after.volume != nil {
		c.reportOtherDisk(o, after.volume)
	}
	return after, err
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

// reportOtherDisk reports that the PersistentVolume of the claim has another disk than the created volume.
func (c *Controller) reportOtherDisk(o *observation, recorded *v1.PersistentVolume) {
	if o.record.disk.volume != nil && !c.Deletion.SameDisk(o.record.disk.volume, recorded) {
		c.reportLeftAlone(o, volumeNamed)
	}
}

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

func (c *Controller) reportSuccess(o *observation) {
	c.Reporter.Report(o.claim, controller.NormalEvent(provisioningSucceeded, "Successfully provisioned volume "+o.name))
}

// discard deletes a volume without a PersistentVolume, the one deletion that no PersistentVolume asks for. The
// call is prepared before volumes and claims are read: reading a secret may take tens of seconds, in which another
// program may record the disk. The reason is reported when the claim waits.
func (c *Controller) discard(ctx context.Context, o *observation) (*observation, error) {
	r := o.record
	deleteVolume, unprepared := c.Deletion.PrepareDiscard(ctx, r.disk.volume, r.disk.handle)
	read := time.Now()
	recorded, err := c.isRecorded(ctx, o, &read)
	if err == nil && !recorded {
		// A process without leader election that was frozen after the lists deleted a disk that its successor had
		// recorded meanwhile.
		err = controller.CheckRead(read)
	}
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
		logger := klog.FromContext(ctx).V(2)
		logger.Info("Unused volume deleted in the storage system", "volume", o.name, "handle", r.disk.shown)
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

// reportCleanupFailed reports that an unused volume still exists.
func (c *Controller) reportCleanupFailed(o *observation, err error) error {
	failure := fmt.Errorf("delete unused volume %s: %w", o.name, err)
	c.Reporter.Report(o.claim, controller.WarningEvent(provisioningCleanupFailed, fmt.Sprintf(
		"Error cleaning provisioned volume for claim %s: %v; retried with backoff", controller.Key(o.claim), failure)))
	return failure
}

// isRecorded reports whether a PersistentVolume has the disk or one inside it, or a claim names the volume. All
// volumes and claims are read live, also those that no cache of ours has: a recorded disk may hold data. A
// directory that no claim could use was deleted although the directory of another volume was inside. It moves read
// to the time of the last request.
func (c *Controller) isRecorded(ctx context.Context, o *observation, read *time.Time) (bool, error) {
	disk := o.record.disk.volume
	if len(c.Deletion.VolumesDeletedWith(disk)) > 0 || o.volume != nil && c.Deletion.DeletedWith(disk, o.volume) {
		return true, nil
	}
	found, err := anyVolume(ctx, c.Client, read, func(volume *v1.PersistentVolume) bool {
		return c.Deletion.DeletedWith(disk, volume)
	})
	if err != nil || found {
		return found, err
	}
	return anyClaim(ctx, c.Client, read, func(claim *v1.PersistentVolumeClaim) bool {
		return claim.Spec.VolumeName == o.name
	})
}

// anyVolume reports whether a PersistentVolume, read live, matches.
func anyVolume(ctx context.Context, client kubernetes.Interface, read *time.Time,
	matches func(*v1.PersistentVolume) bool) (bool, error) {
	return anyObject(ctx, read, func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
		return answer.CheckedList(client.CoreV1().PersistentVolumes().List(ctx, options))
	}, matches)
}

// anyClaim reports whether a claim, read live, matches.
func anyClaim(ctx context.Context, client kubernetes.Interface, read *time.Time,
	matches func(*v1.PersistentVolumeClaim) bool) (bool, error) {
	return anyObject(ctx, read, func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
		return answer.CheckedList(client.CoreV1().PersistentVolumeClaims(metav1.NamespaceAll).List(ctx, options))
	}, matches)
}

// anyObject reports whether an object of a live list, read page by page, matches. It moves read, the time of the
// request before, to that of its last one, and ends with an error if a minute lies between two of them: a disk may
// have been recorded on a page that was read before. All pages together may take longer.
func anyObject[T any](ctx context.Context, read *time.Time, list pager.ListPageFunc,
	matches func(T) bool) (bool, error) {
	page := func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
		if err := controller.CheckRead(*read); err != nil {
			return nil, err
		}
		*read = time.Now()
		return list(ctx, options)
	}
	err := pager.New(page).EachListItem(ctx, metav1.ListOptions{}, func(object runtime.Object) error {
		if typed, ok := object.(T); ok && matches(typed) {
			return errFound
		}
		return nil
	})
	if err != nil && !errors.Is(err, errFound) {
		return false, fmt.Errorf("list all objects: %w", err)
	}
	return err != nil, nil
}

// errFound ends a live list early.
var errFound = errors.New("found")
