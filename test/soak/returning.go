package main

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	v1 "k8s.io/api/core/v1"

	"github.com/exeunt-io/exeunt/pkg/csimock"
)

// returningCount is the number of claims that each restore brings back without their volumes.
const returningCount = 4

// usedWithin is how long a restore waits for the claims to use their disks.
const usedWithin = 20 * time.Second

// misfitFor is how long after a restore the driver answers that the disks are too small, and until the next phase.
const misfitFor = 40 * time.Second

// returning are claims that use their disks only after etcd was copied. A restore brings them back without volume and
// node, the driver then answers for a time that the disk is too small, and the disk must stay: it has data.
type returning struct {
	mu     sync.Mutex
	claims []*lifecycle
	// created are all claims, also those that had no volume yet when etcd was restored.
	created []*v1.PersistentVolumeClaim
	// used are the claims of the disks that hold data, by handle.
	used map[string]*v1.PersistentVolumeClaim
	// misfits is until when the disks are too small.
	misfits time.Time
	stop    context.CancelFunc
	all     sync.WaitGroup
}

// create creates the claims, for which no node is selected yet.
func (r *returning) create(ctx context.Context, u *users) ([]*v1.PersistentVolumeClaim, error) {
	r.claims = nil
	var claims []*v1.PersistentVolumeClaim
	for n := range returningCount {
		lc := u.lifecycle(Choices{Sort: Waiting}, fmt.Sprintf("returning-%d-%d", u.epoch, n), longLivedSpace)
		claim, err := lc.create(ctx, lc.name)
		if err != nil {
			return nil, err
		}
		r.claims, claims = append(r.claims, lc), append(claims, claim)
	}
	r.created = append(r.created, claims...)
	return claims, nil
}

// use selects the node of each claim, and records its disk once it is bound.
func (r *returning) use(ctx context.Context, claims []*v1.PersistentVolumeClaim) {
	ctx, r.stop = context.WithCancel(ctx)
	for i, claim := range claims {
		r.all.Go(func() {
			volume, err := r.claims[i].bind(ctx, claim)
			if err != nil {
				return // etcd is restored before
			}
			r.mu.Lock()
			defer r.mu.Unlock()
			r.used[handleOf(volume)] = claim
		})
	}
}

// end ends the use of the disks, once all claims use theirs, or the time is over.
func (r *returning) end(within time.Duration) {
	used := make(chan struct{})
	go func() {
		defer close(used)
		r.all.Wait()
	}()
	select {
	case <-used:
	case <-time.After(within):
	}
	if r.stop != nil {
		r.stop()
	}
	<-used
}

// misfit has the disks be too small until the time.
func (r *returning) misfit(until time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.misfits = until
}

// faults are those of a driver whose answer does not fit the claims, none if the disks fit.
func (r *returning) faults() []csimock.Fault {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !time.Now().Before(r.misfits) {
		return nil
	}
	var faults []csimock.Fault
	for _, claim := range r.used {
		faults = append(faults, csimock.Fault{Method: "CreateVolume", Volume: "pvc-" + string(claim.UID), Every: 1,
			Response: csimock.TooSmall})
	}
	return faults
}

// useAgain selects the nodes of the claims that came back.
func (r *returning) useAgain(ctx context.Context, u *users) {
	for _, claim := range r.created {
		lc := u.lifecycle(Choices{Sort: Waiting}, claim.Name, claim.Namespace)
		u.all.Go(func() { lc.keepSelecting(ctx, claim) })
	}
}

// lost returns the disks that are gone.
func (r *returning) lost(stored map[string]string) []finding {
	r.mu.Lock()
	defer r.mu.Unlock()
	var all []finding
	for _, handle := range slices.Sorted(maps.Keys(r.used)) {
		if claim := r.used[handle]; stored[handle] == "" {
			text := fmt.Sprintf("disk %s: claim %s had used it when etcd was restored, exists, and the disk is gone", handle,
				claim.Name)
			all = append(all, finding{text, append(keysOf(claim), "disk "+handle)})
		}
	}
	return all
}

// unbound returns the claims that are not bound.
func (r *returning) unbound(v *view) []finding {
	var all []finding
	for _, claim := range r.created {
		if now := v.claim(claim.Namespace + "/" + claim.Name); now == nil || now.UID != claim.UID ||
			now.Status.Phase != v1.ClaimBound {
			all = append(all, finding{fmt.Sprintf("claim %s came back with etcd, and is not bound", claim.Name), keysOf(claim)})
		}
	}
	return all
}

func keysOf(claim *v1.PersistentVolumeClaim) []string {
	name := "pvc-" + string(claim.UID)
	return []string{"claim " + claim.Namespace + "/" + claim.Name, "disk " + name, "pv " + name}
}
