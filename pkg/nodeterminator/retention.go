package nodeterminator

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/klog/v2"

	"github.com/exeunt-io/exeunt/pkg/termination"
)

const (
	// reportAge is how long a report is kept after its last change.
	reportAge = 72 * time.Hour
	// deletePause is the time until a report that could not be deleted is looked at again.
	deletePause = time.Hour
)

// list takes over the reports of earlier processes.
func (r *reports) list(ctx context.Context) {
	var stored *v1.ConfigMapList
	err := repeated(ctx, func() (err error) {
		limited, cancel := context.WithTimeout(ctx, reportTimeout)
		defer cancel()
		stored, err = r.client.List(limited, metav1.ListOptions{LabelSelector: termination.ReportLabel})
		return err
	})
	if err != nil {
		klog.FromContext(ctx).Info("Listing reports failed; old ones stay until the next start", "err", err)
		return
	}
	for i := range stored.Items {
		r.takeOver(&stored.Items[i])
	}
}

// takeOver plans the deletion of a report of an earlier process. A node that went while nobody led is written down as
// ended. Reports of nodes that this process terminates, or has terminated, may be newer than the list.
func (r *reports) takeOver(one *v1.ConfigMap) {
	name, named := strings.CutPrefix(one.Name, reportName(""))
	uid := types.UID(name)
	report, err := reportIn(one)
	gone := !r.exists(report) // before isPending: a node that is gone is not begun later
	if !named || r.isPending(uid) || r.isStored(uid) {
		return
	}
	r.keep(uid, ageLeft(one))
	if err == nil && report.UID == name && !isFinal(report) && gone {
		r.finish(endedUnseen(report))
	}
}

// isPending reports whether this process terminates the node, or is to write its last report.
func (r *reports) isPending(uid types.UID) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.pending[uid] != nil
}

// isStored reports whether this process has written, read or listed the report of the node.
func (r *reports) isStored(uid types.UID) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.stored[uid] != nil
}

// keep has the report looked at after this time, and not before.
func (r *reports) keep(uid types.UID, wait time.Duration) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if timer := r.stored[uid]; timer != nil {
		timer.Stop()
	}
	r.stored[uid] = time.AfterFunc(wait, func() { r.expire(uid) })
}

// expire deletes the report if it is old enough, and else plans to look again.
func (r *reports) expire(uid types.UID) {
	r.deleting <- struct{}{}
	defer func() { <-r.deleting }()
	r.mu.Lock()
	ctx := r.ctx
	r.mu.Unlock()
	wait, err := r.deleteOld(ctx, uid)
	if err != nil {
		klog.FromContext(ctx).Info("Deleting an old report failed, it is tried again", "report", reportName(uid), "err", err)
		wait = deletePause
	}
	if wait > 0 {
		r.keep(uid, wait)
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.stored, uid)
}

// deleteOld deletes the report of a node that has ended, or returns how long it stays. What counts is the live object:
// another process may have changed it.
func (r *reports) deleteOld(ctx context.Context, uid types.UID) (time.Duration, error) {
	stored, exists, err := r.get(ctx, reportName(uid))
	if err != nil || !exists {
		return 0, err
	}
	report, _ := reportIn(stored) // one that cannot be read is deleted, too
	if r.isPending(uid) || r.exists(report) {
		return deletePause, nil
	}
	if left := ageLeft(stored); left > 0 {
		return left, nil
	}
	ctx, cancel := context.WithTimeout(ctx, reportTimeout)
	defer cancel()
	return 0, r.client.Delete(ctx, stored.Name, metav1.DeleteOptions{
		Preconditions: &metav1.Preconditions{UID: &stored.UID, ResourceVersion: &stored.ResourceVersion}})
}

// ageLeft returns how long the report is kept.
func ageLeft(stored *v1.ConfigMap) time.Duration {
	return time.Until(lastChange(stored).Add(reportAge))
}

// lastChange returns when the object was written last.
func lastChange(stored *v1.ConfigMap) time.Time {
	at := stored.CreationTimestamp.Time
	for _, entry := range stored.ManagedFields {
		if entry.Time != nil && entry.Time.After(at) {
			at = entry.Time.Time
		}
	}
	return at
}

// reportIn returns the report that the object has.
func reportIn(stored *v1.ConfigMap) (termination.Report, error) {
	var report termination.Report
	if err := json.Unmarshal([]byte(stored.Data[termination.ReportKey]), &report); err != nil {
		return termination.Report{}, fmt.Errorf("decode report: %w", err)
	}
	return report, nil
}

func isFinal(report termination.Report) bool {
	return report.Phase == termination.PhaseEnded || report.Phase == termination.PhaseAbandoned
}

// endedUnseen returns the report of a node that is gone: nobody saw how its last pods ended.
func endedUnseen(report termination.Report) termination.Report {
	report.Phase = termination.PhaseEnded
	report.Counts.Unknown += report.Counts.Left
	report.Counts.Left, report.Left, report.Volumes = 0, nil, nil
	return report
}
