// Package deadline computes until when a custom resource that is being deleted may end gracefully, for its controller.
//
//	deletion := deadline.Of(object)
//	if deletion.Remaining(time.Now(), 30*time.Second) == 0 {
//		// power off
//	}
//
// The user names the grace period: kubectl delete --grace-period=300 at an API server with graceful deletion of custom
// resources, kubectl exeunt delete --grace-period=300 at any. An object with finalizers is then deleted in one of two
// forms, of which [Of] makes one answer:
//
//	served with grace       deletionTimestamp is the deadline, deletionGracePeriodSeconds is above 0
//	stored, and at stock    deletionTimestamp is the request, deletionGracePeriodSeconds is 0, the annotation
//	                        exeunt.io/deletion-window: START/END has the deadline
//
// A window counts only if it starts within a minute of the deletion timestamp and ends less than 2^31 seconds after it; a
// window that ends at its start is a forced deletion. Otherwise the deletion has no grace period, and the controller's
// default counts. A deletionGracePeriodSeconds of 0 alone is no force: stock API servers write 0 in each deletion.
//
// A controller has one timer per object, set to [Deletion.Remaining]. The deadline can move earlier while it runs, and
// never later. When the work is done, before the deadline or after it, the controller removes its finalizer.
package deadline
