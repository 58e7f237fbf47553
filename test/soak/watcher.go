package main

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	v1 "k8s.io/api/core/v1"

	"github.com/exeunt-io/exeunt/pkg/csimock"
	"github.com/exeunt-io/exeunt/test/sandbox"
)

const (
	// settle is how long after a call its claim is looked for: the watch may be late.
	settle = 1500 * time.Millisecond
	// decidedWithin is how long before a DeleteVolume its decision can have been taken: a
	// process may be frozen between its live read and the call, and the call takes time.
	decidedWithin = 2*leaseDuration + 3*callTimeout + 5*time.Second
)

// watcher checks during the run that no data goes.
type watcher struct {
	world *world
	view  *view

	mu      sync.Mutex
	pending []csimock.Call
	// excused are handles of disks that were deleted before etcd was restored.
	excused map[string]bool
	// missing is since when a disk of a bound claim is missing, by handle.
	missing map[string]time.Time
	lost    map[string]string
	// deleted are objects that the collector deleted although they have a living owner, or none.
	deleted []finding
}

func newWatcher(w *world, v *view) *watcher {
	return &watcher{world: w, view: v, excused: map[string]bool{}, lost: map[string]string{}}
}

// run follows the call log and the disks until ctx ends.
func (w *watcher) run(ctx context.Context) error {
	var group sync.WaitGroup
	group.Go(func() {
		for ctx.Err() == nil {
			w.check(time.Now().Add(-settle))
			w.checkDisks(settle)
			sandbox.Pause(ctx, 500*time.Millisecond)
		}
	})
	defer group.Wait()
	for call, err := range sandbox.FollowCalls(ctx, w.world.disks.driver.CallLog) {
		if err != nil {
			return fmt.Errorf("follow CSI calls: %w", err)
		}
		w.note(call)
	}
	return nil
}

// note records a call.
func (w *watcher) note(call csimock.Call) {
	w.view.history.addCall(call)
	switch call.Method {
	case "CreateVolume", "DeleteVolume":
	default:
		return
	}
	if call.Code != "OK" {
		w.world.counts.add(topicCSI, call.Method+" "+call.Code, 1)
	} else if call.DurationMS >= 250 {
		w.world.counts.add(topicCSI, call.Method+" slow", 1)
	}
	if w.world.disks.isOfUser(call) {
		if call.Method == "DeleteVolume" {
			w.view.record.called(call, true)
		}
		return
	}
	w.view.record.called(call, false)
	if call.Method == "DeleteVolume" {
		w.mu.Lock()
		w.pending = append(w.pending, call)
		w.mu.Unlock()
	}
}

// check checks the calls that finished before the time. Calls wait while nothing is watched.
func (w *watcher) check(before time.Time) {
	if !w.view.isConnected() {
		return
	}
	w.mu.Lock()
	var ready, later []csimock.Call
	for _, call := range w.pending {
		if call.Time.Before(before) {
			ready = append(ready, call)
		} else {
			later = append(later, call)
		}
	}
	w.pending = later
	w.mu.Unlock()
	for _, call := range ready {
		if why := w.forbidden(call); why != "" {
			w.report(call.Volume, why)
		}
	}
}

// drain checks all calls so far.
func (w *watcher) drain(ctx context.Context) {
	sandbox.Pause(ctx, settle)
	w.check(time.Now())
}

// forbidden returns why a DeleteVolume should not have been called, "" if it may. A call that
// failed counts: it was decided.
func (w *watcher) forbidden(call csimock.Call) string {
	w.view.mu.Lock()
	defer w.view.mu.Unlock()
	if !w.view.isObserved(call.Time.Add(-time.Duration(call.DurationMS)*time.Millisecond), call.Time) {
		return "" // the objects of that time are not known
	}
	name, known := w.view.byHandle[call.Volume]
	if !known {
		return "" // the volume was never recorded, and is discarded
	}
	if last := w.view.deletable[call.Volume]; call.Time.Sub(last) > decidedWithin {
		return fmt.Sprintf("DeleteVolume (call %d) although the policy of %s was not Delete", call.Seq, name)
	}
	volume := w.view.volumes[name]
	if volume == nil || volume.Spec.ClaimRef == nil {
		return ""
	}
	if claim, lives := w.view.claimUIDs[volume.Spec.ClaimRef.UID]; lives {
		return fmt.Sprintf("DeleteVolume (call %d) although claim %s exists", call.Seq, claim)
	}
	return ""
}

// checkDisks checks that every bound claim has its disk. The watch may be late, so a disk is
// lost once it has been missing for that long.
func (w *watcher) checkDisks(late time.Duration) {
	bound := w.boundHandles()
	stored, err := w.world.disks.stored()
	if err != nil {
		return // the next check reads it
	}
	for handle, claim := range w.missingFor(late, bound, stored) {
		w.report(handle, "the disk is missing, and claim "+claim+" is bound to it")
	}
}

// missingFor returns the bound claims whose disk has been missing for that long, by handle.
func (w *watcher) missingFor(late time.Duration, bound, stored map[string]string) map[string]string {
	w.mu.Lock()
	defer w.mu.Unlock()
	missing, since := map[string]string{}, map[string]time.Time{}
	for handle, claim := range bound {
		if _, exists := stored[handle]; exists {
			continue
		}
		since[handle] = time.Now()
		if first, was := w.missing[handle]; was {
			since[handle] = first
		}
		if time.Since(since[handle]) >= late {
			missing[handle] = claim
		}
	}
	w.missing = since
	return missing
}

// boundHandles returns the bound claims by handle, none while nothing is watched.
func (w *watcher) boundHandles() map[string]string {
	w.view.mu.Lock()
	defer w.view.mu.Unlock()
	bound := map[string]string{}
	if !w.view.gapSince.IsZero() {
		return bound
	}
	for key, claim := range w.view.claims {
		volume := w.view.volumes[claim.Spec.VolumeName]
		if claim.Status.Phase == v1.ClaimBound && volume != nil && volume.Spec.ClaimRef != nil &&
			volume.Spec.ClaimRef.UID == claim.UID {
			bound[handleOf(volume)] = key
		}
	}
	return bound
}

// excuse excuses the disks of a restored etcd that were not stored when it was restored, and returns their number.
func (w *watcher) excuse(stored map[string]string) int {
	w.view.mu.Lock()
	defer w.view.mu.Unlock()
	w.mu.Lock()
	defer w.mu.Unlock()
	count := 0
	for _, volume := range w.view.volumes {
		if handle := handleOf(volume); stored[handle] == "" {
			w.excused[handle] = true
			count++
		}
	}
	return count
}

// report records a lost disk once.
func (w *watcher) report(handle, why string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if !w.excused[handle] && w.lost[handle] == "" {
		w.lost[handle] = why
		w.view.history.append("disk "+handle, time.Now(), "LOST: "+why)
	}
}

// collected reports an object that has to stay, and does not.
func (w *watcher) collected(key string, choices TreeChoices) {
	w.mu.Lock()
	defer w.mu.Unlock()
	text := fmt.Sprintf("object %s is deleted, and nobody deleted all of its owners (%+v)", key, choices)
	w.deleted = append(w.deleted, finding{text: text})
}

// errAborted ends lifecycles whose objects are not theirs any longer, since etcd is restored.
var errAborted = errors.New("etcd is being restored")
