package main

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/exeunt-io/exeunt/pkg/csimock"
	"github.com/exeunt-io/exeunt/test/model/check"
	"github.com/exeunt-io/exeunt/test/sandbox"
)

// reach is the longest time from a live read of a program to the step that rests on it.
const reach = 30 * time.Second

// recorder feeds the run to the rules of the model.
type recorder struct {
	mu       sync.Mutex
	history  check.History
	upstream bool
}

func newRecorder(upstream, admission bool) *recorder {
	return &recorder{upstream: upstream, history: check.History{Reach: reach, Honor: true, Journaled: !upstream,
		Admission: admission}}
}

// observe records a version of an object, or its end.
func (r *recorder) observe(object any, gone bool) {
	event := watch.Modified
	if gone {
		event = watch.Deleted
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.history.Observe(time.Now(), event, object)
}

// vanished records the end of an object that was not watched. The version is that of the
// list without the object.
func (r *recorder) vanished(object any, version string) {
	o, is := object.(runtime.Object)
	if !is {
		return
	}
	last := o.DeepCopyObject()
	if meta, is := last.(metav1.Object); is {
		meta.SetResourceVersion(version)
	}
	r.observe(last, true)
}

// listed records a list.
func (r *recorder) listed(began time.Time, version string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.history.Listed(began, version)
}

// resumed records that the watches were interrupted.
func (r *recorder) resumed(restored bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.history.Resumed(restored)
}

// unobserved records that versions of that time may be missing.
func (r *recorder) unobserved(from, to time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.history.Unobserved(from, to)
}

// paused records that a program was frozen.
func (r *recorder) paused(from, to time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.history.Paused(from, to)
}

// gaveUp records that a disk needs no record.
func (r *recorder) gaveUp(handle string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.history.GaveUp(handle)
}

// called records a CSI call of a program or, with user, of a user.
func (r *recorder) called(call csimock.Call, user bool) {
	kind := check.CreateVolume
	if call.Method == "DeleteVolume" {
		kind = check.DeleteVolume
	}
	actor := check.Provisioner
	switch {
	case user:
		actor = ""
	case r.upstream:
		actor = check.UpstreamProvisioner
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.history.Called(check.Record{
		Actor: actor, Kind: kind, Handle: call.Volume, Name: call.Name, OK: call.Code == "OK",
		Began: call.Time.Add(-time.Duration(call.DurationMS+1) * time.Millisecond), Ended: call.Time,
	})
}

// recorded are the resources whose writes are recorded.
var recorded = []string{"persistentvolumes", "persistentvolumeclaims", "pods", "leases"}

// followRequests records the writes in the audit log until ctx ends.
func (r *recorder) followRequests(ctx context.Context, path string) error {
	for event, err := range sandbox.FollowAudit(ctx, path) {
		if err != nil {
			return fmt.Errorf("follow audit log: %w", err)
		}
		refused := event.Code >= 300 && event.Code < 500
		if refused || !event.Writes() || !slices.Contains(recorded, event.Resource) {
			continue
		}
		r.mu.Lock()
		r.history.Requested(check.Request{
			Actor: actorOf(event.User), Resource: event.Resource, Namespace: event.Namespace, Name: event.Name,
			Began: event.Time.Add(-event.Duration), Ended: event.Time,
		})
		r.mu.Unlock()
	}
	return nil
}

// actorOf returns the program of a user of the API server.
func actorOf(user string) check.Actor {
	switch user {
	case sandbox.PVControllerAccount.Name():
		return check.PVController
	case sandbox.ProvisionerAccount.Name():
		return check.Provisioner
	case sandbox.UpstreamSidecarUser.Name():
		return check.UpstreamProvisioner
	}
	if strings.HasPrefix(user, "system:kube-controller-manager") {
		return check.UpstreamLoops
	}
	return ""
}

// broken returns the rules that were broken during the run, and those that are broken at its
// end. stored are the disks. The request of a clone whose source and claim are gone stays unresolved.
func (r *recorder) broken(stored map[string]string, driver string) []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	disks := make([]check.Disk, 0, len(stored))
	for _, handle := range slices.Sorted(maps.Keys(stored)) {
		disks = append(disks, check.Disk{Handle: handle, Name: stored[handle]})
	}
	found := r.history.Violations()
	found = append(found, r.history.AtRest(disks, check.Wanted{
		Driver: driver, Honor: true, Unresolved: true, Classes: []string{classDelete, classRetain, classWait},
	})...)
	var texts []string
	for _, violation := range found {
		texts = append(texts, violation.String())
	}
	return texts
}
