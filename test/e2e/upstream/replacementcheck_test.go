package upstream

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/exeunt-io/exeunt/pkg/journal"
	"github.com/exeunt-io/exeunt/test/e2e/harness"
)

func (r *replacement) create(phase string, from, to int) []string {
	r.T.Helper()
	all := claimNames(phase, from, to)
	r.Must(r.createAll(all), "create claims")
	return all
}

// createAll creates claims. Every fourth claim has the class with policy Retain.
func (r *replacement) createAll(all []string) error {
	r.created += len(all)
	var group errgroup.Group
	group.SetLimit(16)
	for _, name := range all {
		class := r.Namespace + "-delete"
		if retained(name) {
			class = r.Namespace + "-retain"
		}
		group.Go(func() error {
			_, err := r.Client.CoreV1().PersistentVolumeClaims(r.Namespace).
				Create(r.Ctx, r.NewClaim(name, class), metav1.CreateOptions{})
			return err
		})
	}
	return group.Wait()
}

func retained(name string) bool {
	number, _ := strconv.Atoi(name[strings.IndexByte(name, '-')+1:])
	return number%4 == 3
}

// delete deletes claims and records the time.
func (r *replacement) delete(all ...string) {
	r.T.Helper()
	for _, name := range all {
		r.deleted[name] = time.Now()
		r.DeleteClaim(name)
	}
}

// volumeOf returns the volume name of the claim.
func (r *replacement) volumeOf(claim string) string {
	r.T.Helper()
	found, err := r.Client.CoreV1().PersistentVolumeClaims(r.Namespace).Get(r.Ctx, claim, metav1.GetOptions{})
	r.Must(err, "read claim")
	return "pvc-" + string(found.UID)
}

func (r *replacement) listClaims() map[string]*v1.PersistentVolumeClaim {
	r.T.Helper()
	list, err := r.Client.CoreV1().PersistentVolumeClaims(r.Namespace).List(r.Ctx, metav1.ListOptions{})
	r.Must(err, "list claims")
	all := map[string]*v1.PersistentVolumeClaim{}
	for i := range list.Items {
		all[list.Items[i].Name] = &list.Items[i]
	}
	return all
}

func (r *replacement) listVolumes() map[string]*v1.PersistentVolume {
	r.T.Helper()
	list, err := r.Client.CoreV1().PersistentVolumes().List(r.Ctx, metav1.ListOptions{})
	r.Must(err, "list volumes")
	all := map[string]*v1.PersistentVolume{}
	for i := range list.Items {
		all[list.Items[i].Name] = &list.Items[i]
	}
	return all
}

// poll waits until left returns nothing, for at most the given time.
func (r *replacement) poll(what string, most time.Duration, left func() []string) {
	r.T.Helper()
	var last []string
	err := wait.PollUntilContextTimeout(r.Ctx, 100*time.Millisecond, most, true, func(context.Context) (bool, error) {
		last = left()
		return len(last) == 0, nil
	})
	if err != nil {
		r.T.Fatalf("%s: after %s not for %d: %v", what, most, len(last), last)
	}
}

func (r *replacement) awaitStored(claim string) {
	r.T.Helper()
	name := r.volumeOf(claim)
	r.poll("the driver has the volume", 3*harness.DeletionLimit, func() []string {
		for _, stored := range r.driver.Volumes() {
			if stored == name {
				return nil
			}
		}
		return []string{claim}
	})
}

func (r *replacement) awaitAllBound(all []string) {
	r.T.Helper()
	r.poll("claims are bound", 6*harness.DeletionLimit, func() []string {
		claims := r.listClaims()
		return slices.DeleteFunc(slices.Clone(all), func(name string) bool {
			claim := claims[name]
			return claim != nil && claim.Status.Phase == v1.ClaimBound
		})
	})
}

// awaitAllGone waits until no deleted claim and no volume to be reclaimed exists.
func (r *replacement) awaitAllGone(phase string) {
	r.T.Helper()
	r.poll("deleted claims are gone", 3*harness.DeletionLimit, func() []string {
		claims := r.listClaims()
		for name, since := range r.deleted {
			if at, is := r.claims.GoneAt(name); is && claims[name] == nil {
				r.slowest[phase] = max(r.slowest[phase], at.Sub(since))
				delete(r.deleted, name)
			}
		}
		return slices.Collect(maps.Keys(r.deleted))
	})
	if r.slowest[phase] > harness.DeletionLimit {
		r.T.Errorf("%s: the deletion of a claim took %s", phase, r.slowest[phase])
	}
	r.poll("volumes of deleted claims are reclaimed", 3*harness.DeletionLimit, func() []string {
		volumes := r.listVolumes()
		stored := sets.New(slices.Collect(maps.Values(r.driver.Volumes()))...)
		return slices.DeleteFunc(slices.Clone(r.gone),
			func(name string) bool { return volumes[name] == nil && !stored.Has(name) })
	})
}

// expectReclaimed records volumes of bound claims that are to be reclaimed.
func (r *replacement) expectReclaimed(all ...string) {
	r.T.Helper()
	claims := r.listClaims()
	for _, name := range all {
		volume := claims[name].Spec.VolumeName
		delete(r.protected, volume)
		if !retained(name) {
			r.gone = append(r.gone, volume)
		}
	}
}

// retain sets the policy Retain for volumes of bound claims, as an administrator does, and
// deletes the claims and, if asked to, the PersistentVolumes.
func (r *replacement) retain(deleteObject bool, all ...string) {
	r.T.Helper()
	claims := r.listClaims()
	for _, name := range all {
		volume := claims[name].Spec.VolumeName
		r.SetPolicy(volume, v1.PersistentVolumeReclaimRetain)
		r.delete(name)
		r.protected[volume] = "an administrator keeps the volume of claim " + name
		r.AwaitVolume(volume, "is released", func(v *v1.PersistentVolume) bool { return v.Status.Phase == v1.VolumeReleased })
		if deleteObject {
			r.DeleteVolume(volume)
			r.AwaitVolumeGone(volume)
			r.kept = append(r.kept, volume)
		}
	}
}

// recordExpectations records, before our provisioner returns, the volumes that it must never delete
// and the claims whose entries it must not finish. Volumes with policy Delete and without
// a claim are to be reclaimed.
func (r *replacement) recordExpectations() {
	r.T.Helper()
	claims, volumes := r.listClaims(), r.listVolumes()
	for name, volume := range volumes {
		claim := claims[volume.Spec.ClaimRef.Name]
		switch {
		case claim != nil || volume.Spec.PersistentVolumeReclaimPolicy == v1.PersistentVolumeReclaimRetain:
			r.protected[name] = "served before, for claim " + volume.Spec.ClaimRef.Name
		case !slices.Contains(r.gone, name):
			r.gone = append(r.gone, name)
		}
	}
	for _, entry := range r.inherited {
		if claims[entry.Name] == nil && volumes[entry.VolumeName()] == nil {
			r.unfinished = append(r.unfinished, entry.VolumeName())
		}
	}
}

// expectInherited checks for entries of the claims whose calls were pending.
func (r *replacement) expectInherited(all []string) {
	r.T.Helper()
	found := sets.New[string]()
	for _, entry := range r.inherited {
		found.Insert(entry.Name)
	}
	if missing := sets.New(all...).Difference(found); missing.Len() > 0 {
		r.T.Fatalf("the journal has no entries of the claims %v, whose calls were pending", sets.List(missing))
	}
}

// findLeaks records the volumes that upstream created and leaked: neither a claim nor a
// PersistentVolume nor a journal entry refers to them.
func (r *replacement) findLeaks(began int) {
	r.T.Helper()
	known := sets.New(r.kept...)
	for name := range r.listVolumes() {
		known.Insert(name)
	}
	for _, claim := range r.listClaims() {
		known.Insert("pvc-" + string(claim.UID))
	}
	for _, entry := range r.inherited {
		known.Insert(entry.VolumeName())
	}
	requested := sets.New[string]()
	for _, call := range r.driver.Server.Calls()[began:] {
		if call.Method == "CreateVolume" {
			requested.Insert(call.Name)
		}
	}
	for _, name := range r.driver.Volumes() {
		switch {
		case known.Has(name):
		case requested.Has(name):
			r.leaked = append(r.leaked, name)
		default:
			r.T.Errorf("no object refers to volume %s, which upstream did not request", name)
		}
	}
}

// awaitFinished waits until every claim is bound and all entries are unresolved.
func (r *replacement) awaitFinished() {
	r.T.Helper()
	r.awaitAllBound(slices.Collect(maps.Keys(r.listClaims())))
	r.poll("journal entries are finished", 3*harness.DeletionLimit, func() []string {
		var left []string
		for _, entry := range r.driver.JournalEntries(journal.KindActive) {
			left = append(left, entry.Name)
		}
		return left
	})
	r.unresolved = r.driver.JournalEntries(journal.KindUnresolved)
}

// expectExplainedOrphans compares the driver's volumes without a PersistentVolume with the
// unresolved entries, upstream's leaks, and the volumes that an administrator keeps.
func (r *replacement) expectExplainedOrphans() {
	r.T.Helper()
	volumes := r.listVolumes()
	stored := sets.New(slices.Collect(maps.Values(r.driver.Volumes()))...)
	orphans := sets.New[string]()
	for name := range stored {
		if volumes[name] == nil {
			orphans.Insert(name)
		}
	}
	listed, wanted := sets.New[string](), sets.New(r.unfinished...)
	for _, entry := range r.unresolved {
		listed.Insert(entry.VolumeName())
	}
	if !listed.Equal(wanted) {
		r.T.Errorf("unresolved entries are of %v, want the deleted claims %v", sets.List(listed), sets.List(wanted))
	}
	explained := listed.Intersection(stored).Union(sets.New(r.leaked...)).Union(sets.New(r.kept...))
	if !orphans.Equal(explained) {
		r.T.Errorf("volumes without PersistentVolume and reason: %v; expected but missing: %v",
			sets.List(orphans.Difference(explained)), sets.List(explained.Difference(orphans)))
	}
	r.expectNeverDeleted(stored)
}

// expectNeverDeleted checks that the driver has the protected volumes and got no
// DeleteVolume call for them.
func (r *replacement) expectNeverDeleted(stored sets.Set[string]) {
	r.T.Helper()
	for name, reason := range r.protected {
		if !stored.Has(name) {
			r.T.Errorf("volume %s was deleted: %s", name, reason)
		}
	}
	byHandle := r.driver.Volumes()
	for _, call := range r.driver.Server.Calls() {
		if name := byHandle[call.Volume]; call.Method == "DeleteVolume" && r.protected[name] != "" {
			r.T.Errorf("DeleteVolume was called for %s: %s", name, r.protected[name])
		}
	}
}

// report logs the counts, and fails if too few cases occurred.
func (r *replacement) report() {
	r.T.Helper()
	orphaned := 0
	stored := sets.New(slices.Collect(maps.Values(r.driver.Volumes()))...)
	var lines []string
	for _, entry := range r.unresolved {
		exists := stored.Has(entry.VolumeName())
		if exists {
			orphaned++
		}
		lines = append(lines, fmt.Sprintf("unresolved: claim %s, volume %s, in the driver: %t, %s", entry.Name,
			entry.VolumeName(), exists, entry.Unresolved.Reason))
	}
	for _, name := range r.leaked {
		lines = append(lines, "leaked by upstream: "+name)
	}
	r.T.Logf("%d claims; %d entries when our provisioner was killed, %d of them unresolved in the end, %d with a volume; %d volumes leaked by upstream; "+
		"%d kept without a PersistentVolume; %d protected; %d reclaimed; the slowest deletion of a claim: %v; faults: %v\n%s",
		r.created, len(r.inherited), len(r.unresolved), orphaned, len(r.leaked), len(r.kept), len(r.protected), len(r.gone),
		r.slowest, r.driver.FaultyCalls(), strings.Join(lines, "\n"))
	if r.created != 3*perPhase || orphaned < 5 || len(r.leaked) < 3 || len(r.protected) < 100 {
		r.T.Error("the run did too little to show anything")
	}
}
