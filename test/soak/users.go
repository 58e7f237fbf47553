package main

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	v1 "k8s.io/api/core/v1"
)

const (
	// userCount is how many lifecycles are under way at once.
	userCount = 28
	// patience is how long a user waits for one lifecycle before the next one begins.
	patience = 45 * time.Second
	// treeUserCount is how many trees are under way at once.
	treeUserCount = 6
	// maxLate bounds the slow lifecycles beside which a user runs another one.
	maxLate = 120
	// longLivedCount is the number of claims that exist for the whole run.
	longLivedCount = 6
)

// users run one lifecycle after the other.
type users struct {
	world *world
	view  *view
	watch *watcher
	seed  uint64
	// epoch counts how often etcd was restored.
	epoch int
	// next is the number of the next lifecycle of each user.
	next [userCount]int

	mu     sync.Mutex
	active map[*lifecycle]bool
	errs   []error
	all    sync.WaitGroup
	// abort ends all lifecycles, quit lets none begin.
	abort context.CancelCauseFunc
	quit  chan struct{}
}

func newUsers(w *world, v *view, watch *watcher) *users {
	return &users{world: w, view: v, watch: watch, seed: w.config.Seed, active: map[*lifecycle]bool{}}
}

// start begins the lifecycles of all users, and the function before them.
func (u *users) start(ctx context.Context, first func(context.Context)) {
	ctx, u.abort = context.WithCancelCause(ctx)
	if first != nil {
		first(ctx)
	}
	quit := make(chan struct{})
	u.quit = quit
	for user := range userCount {
		u.all.Go(func() { u.work(ctx, user, quit) })
	}
	for user := range u.world.treeUsers() {
		u.all.Go(func() { u.workOnTrees(ctx, user, quit) })
	}
}

// work runs one lifecycle after the other. A slow one does not keep the next one waiting.
func (u *users) work(ctx context.Context, user int, quit <-chan struct{}) {
	for ctx.Err() == nil {
		select {
		case <-quit:
			return
		default:
		}
		done := make(chan struct{})
		lc := u.begin(user)
		u.all.Go(func() {
			defer close(done)
			u.finish(lc, lc.run(ctx))
		})
		u.await(ctx, done, quit)
	}
}

// await waits for the end of a lifecycle, not longer than patience while others are not late.
func (u *users) await(ctx context.Context, done, quit <-chan struct{}) {
	timer := time.NewTimer(patience)
	defer timer.Stop()
	select {
	case <-done:
		return
	case <-quit:
		return
	case <-timer.C:
	}
	if u.late() < maxLate {
		return
	}
	select {
	case <-done:
	case <-quit:
	case <-ctx.Done():
	}
}

// late returns the number of lifecycles beyond one for each user.
func (u *users) late() int {
	u.mu.Lock()
	defer u.mu.Unlock()
	return len(u.active) - userCount
}

// begin returns the next lifecycle of a user.
func (u *users) begin(user int) *lifecycle {
	u.mu.Lock()
	defer u.mu.Unlock()
	n := u.next[user]
	u.next[user]++
	choices := NewChoices(u.seed, user, n)
	lc := u.lifecycle(choices, choices.prefix()+fmt.Sprintf("v%d-%d-%d", u.epoch, user, n), space)
	u.active[lc] = true
	return lc
}

// add counts a lifecycle among those that have to end.
func (u *users) add(lc *lifecycle) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.active[lc] = true
}

func (u *users) lifecycle(choices Choices, name, space string) *lifecycle {
	return &lifecycle{Choices: choices, world: u.world, view: u.view, watch: u.watch, name: name, space: space,
		keys: &keySet{}}
}

// finish counts a lifecycle that ended.
func (u *users) finish(lc *lifecycle, err error) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if lc.Sort == Tree {
		u.world.counts.add(topicTrees, string(lc.Sort), 1)
	} else {
		u.world.counts.add(topicVolumes, string(lc.Sort), lc.volumes)
	}
	switch {
	case err == nil, isAborted(err):
		delete(u.active, lc)
	default: // stays active: its objects are looked at in the end
		u.errs = append(u.errs, fmt.Errorf("%s: %w", lc.name, err))
	}
}

// leave lets no further lifecycle begin.
func (u *users) leave() { close(u.quit) }

// abortAll ends all lifecycles at once, and waits for their end.
func (u *users) abortAll() {
	u.leave()
	u.abort(errAborted)
	u.all.Wait()
	u.epoch++
}

// unfinished returns the lifecycles that have not ended, sorted by name.
func (u *users) unfinished() []*lifecycle {
	u.mu.Lock()
	defer u.mu.Unlock()
	var all []*lifecycle
	for lc := range u.active {
		all = append(all, lc)
	}
	slices.SortFunc(all, func(a, b *lifecycle) int {
		if a.name < b.name {
			return -1
		}
		return 1
	})
	return all
}

// bindLongLived creates the claims that exist for the whole run, and waits until they are bound.
func (u *users) bindLongLived(ctx context.Context) error {
	for n := range longLivedCount {
		lc := u.lifecycle(Choices{Sort: Dynamic, Retain: n%2 == 0}, fmt.Sprintf("long-lived-%d", n), longLivedSpace)
		claim, err := lc.create(ctx, lc.name)
		if err != nil {
			return err
		}
		if _, err := lc.bind(ctx, claim); err != nil {
			return fmt.Errorf("bind %s: %w", claim.Name, err)
		}
	}
	return nil
}

// missingLongLived returns the long-lived claims that are not bound to a disk.
func (u *users) missingLongLived() []string {
	var missing []string
	for n := range longLivedCount {
		key := fmt.Sprintf("%s/long-lived-%d", longLivedSpace, n)
		claim := u.view.claim(key)
		if claim == nil || claim.Status.Phase != v1.ClaimBound || claim.DeletionTimestamp != nil {
			missing = append(missing, key)
			continue
		}
		volume := u.view.volume(claim.Spec.VolumeName)
		if volume == nil {
			missing = append(missing, key)
			continue
		}
		if exists, err := u.world.disks.has(handleOf(volume)); err != nil || !exists {
			missing = append(missing, key)
		}
	}
	return missing
}
