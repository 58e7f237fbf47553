package main

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/exeunt-io/exeunt/deploy"
	"github.com/exeunt-io/exeunt/pkg/journal"
	"github.com/exeunt-io/exeunt/test/sandbox"
)

const (
	// noProgress is how long nothing changes until what is left counts as stuck. The backoff
	// of both programs is at most a minute.
	noProgress = 100 * time.Second
	// noAnswer is the same if only entries of the journal are left: a driver that denies the volume
	// of a claim that is gone counts if it says so twice, ten minutes apart.
	noAnswer = 10*time.Minute + unresolvedAfter + noProgress
	// quietLimit bounds the wait for the end of all work.
	quietLimit = 8*time.Minute + noAnswer
)

// finding is what went wrong, and the keys of its history.
type finding struct {
	text string
	keys []string
}

// left is what has not ended yet.
type left struct {
	leaked, stuck []finding
	// open are entries of the journal.
	open []finding
	// unresolved and unrecorded count the disks that only the journal or an audit knows.
	unresolved, unrecorded int
}

// none reports whether everything has ended.
func (l left) none() bool { return len(l.leaked)+len(l.stuck)+len(l.open) == 0 }

// patience returns how long nothing may change.
func (l left) patience() time.Duration {
	if len(l.leaked)+len(l.stuck) == 0 {
		return noAnswer
	}
	return noProgress
}

// fingerprint changes with every progress.
func (l left) fingerprint() string {
	var parts []string
	for _, f := range slices.Concat(l.leaked, l.stuck, l.open) {
		parts = append(parts, f.text)
	}
	slices.Sort(parts)
	return strings.Join(parts, "\n")
}

// awaitQuiet waits until everything has ended, or nothing changes any more.
func (c *chaos) awaitQuiet(ctx context.Context) (left, error) {
	deadline, changed, last, patience := time.Now().Add(quietLimit), time.Now(), "", noProgress
	for {
		now, err := c.left(ctx)
		switch {
		case ctx.Err() != nil:
			return now, context.Cause(ctx)
		case err == nil && now.none():
			return now, nil
		case err == nil && now.fingerprint() != last:
			last, changed, patience = now.fingerprint(), time.Now(), now.patience()
		case time.Since(changed) > patience || time.Now().After(deadline):
			return now, err
		}
		sandbox.Pause(ctx, time.Second)
	}
}

// left returns what has not ended yet.
func (c *chaos) left(ctx context.Context) (left, error) {
	entries, err := c.entries(ctx)
	if err != nil {
		return left{}, err
	}
	stored, err := c.world.disks.stored()
	if err != nil {
		return left{}, err
	}
	var l left
	for _, lc := range c.users.unfinished() {
		l.stuck = append(l.stuck,
			finding{fmt.Sprintf("lifecycle %s (%s, %s, flip %s, retain %v): %s", lc.name, lc.Sort, lc.Order, lc.Flip, lc.Retain,
				lc.at()), lc.keys.all()})
	}
	l.stuck = append(l.stuck, c.returning.unbound(c.view)...)
	l.addTerminating(c)
	l.addLeaked(c, stored, entries)
	return l, nil
}

// addTerminating adds objects that are being deleted and that no lifecycle waits for.
func (l *left) addTerminating(c *chaos) {
	known := map[string]bool{}
	for _, f := range l.stuck {
		for _, key := range f.keys {
			known[key] = true
		}
	}
	c.view.mu.Lock()
	defer c.view.mu.Unlock()
	for _, kind := range []string{"pv", "claim", "pod"} {
		for _, object := range c.view.ofKind(kind) {
			key := keyOf(kind, object)
			volume, is := object.(*v1.PersistentVolume)
			released := is && volume.Status.Phase != v1.VolumeBound &&
				volume.Spec.PersistentVolumeReclaimPolicy == v1.PersistentVolumeReclaimDelete && volume.Spec.ClaimRef != nil
			if !known[key] && (object.GetDeletionTimestamp() != nil || released) {
				l.stuck = append(l.stuck, finding{key + " is not deleted: " + describe(object), []string{key}})
			}
		}
	}
}

// addLeaked adds disks that nothing knows.
func (l *left) addLeaked(c *chaos, stored map[string]string, entries map[string]journal.Kind) {
	c.view.mu.Lock()
	defer c.view.mu.Unlock()
	known := map[string]bool{}
	for _, volume := range c.view.volumes {
		known[handleOf(volume)] = true
	}
	for _, handle := range slices.Sorted(maps.Keys(stored)) {
		name := stored[handle]
		_, journaled := entries[name]
		switch {
		case known[handle]:
		case journaled:
			l.unresolved++
		case c.unrecorded[handle] != "":
			l.unrecorded++
		default:
			l.leaked = append(l.leaked,
				finding{fmt.Sprintf("disk %s (%s) has no volume and no entry in the journal", handle, name),
					[]string{"disk " + handle, "disk " + name, "pv " + name, "pv " + c.view.byHandle[handle]}})
		}
	}
	for name, kind := range entries {
		if kind == journal.KindActive {
			l.open = append(l.open, finding{"the journal has an open entry of " + name, []string{"pv " + name, "disk " + name}})
		}
	}
}

// entries returns the names of the volumes in the journal.
func (c *chaos) entries(ctx context.Context) (map[string]journal.Kind, error) {
	ctx, cancel := context.WithTimeout(ctx, attempt)
	defer cancel()
	leases, err := c.world.client().CoordinationV1().Leases(deploy.Namespace).List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, fmt.Errorf("read journal: %w", err)
	}
	names := map[string]journal.Kind{}
	own := journal.Journal{Namespace: deploy.Namespace, Driver: c.world.disks.driver.DriverName}
	for i := range leases.Items {
		addEntries(names, own, &leases.Items[i])
	}
	return names, nil
}

func addEntries(names map[string]journal.Kind, own journal.Journal, lease *coordinationv1.Lease) {
	kind, _, ours := own.KindOf(lease)
	if !ours {
		return
	}
	found, broken := journal.Entries(lease)
	for i := range found {
		names[found[i].VolumeName()] = kind
	}
	for _, uid := range broken {
		names["pvc-"+string(uid)] = kind
	}
}

// lost returns the disks that are gone and should not be.
func (c *chaos) lost(ctx context.Context) []finding {
	all := c.detached.lost(ctx, c.world.client())
	c.watch.mu.Lock()
	all = append(all, c.watch.deleted...)
	for handle, why := range c.watch.lost {
		name := c.view.byHandle[handle]
		all = append(all, finding{"disk " + handle + ": " + why, []string{"disk " + handle, "pv " + name, "disk " + name}})
	}
	c.watch.mu.Unlock()
	for _, key := range c.users.missingLongLived() {
		all = append(all, finding{"long-lived claim " + key + " is not bound to a disk", []string{"claim " + key}})
	}
	if stored, err := c.world.disks.stored(); err == nil {
		all = append(all, c.returning.lost(stored)...)
	}
	return all
}
