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

func (w *swap) create(phase string, from, to int) []string {
	w.T.Helper()
	all := claimNames(phase, from, to)
	w.Must(w.createAll(all), "create claims")
	return all
}

// createAll creates claims. Every fourth claim has the class with policy Retain.
func (w *swap) createAll(all []string) error {
	w.created += len(all)
	var group errgroup.Group
	group.SetLimit(16)
	for _, name := range all {
		class := w.Namespace + "-delete"
		if retained(name) {
			class = w.Namespace + "-retain"
		}
		group.Go(func() error {
			_, err := w.Client.CoreV1().PersistentVolumeClaims(w.Namespace).Create(w.Ctx, w.NewClaim(name, class), metav1.CreateOptions{})
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
func (w *swap) delete(all ...string) {
	w.T.Helper()
	for _, name := range all {
		w.deleted[name] = time.Now()
		w.DeleteClaim(name)
	}
}

// volumeOf returns the volume name of the claim.
func (w *swap) volumeOf(claim string) string {
	w.T.Helper()
	found, err := w.Client.CoreV1().PersistentVolumeClaims(w.Namespace).Get(w.Ctx, claim, metav1.GetOptions{})
	w.Must(err, "read claim")
	return "pvc-" + string(found.UID)
}

func (w *swap) listClaims() map[string]*v1.PersistentVolumeClaim {
	w.T.Helper()
	list, err := w.Client.CoreV1().PersistentVolumeClaims(w.Namespace).List(w.Ctx, metav1.ListOptions{})
	w.Must(err, "list claims")
	all := map[string]*v1.PersistentVolumeClaim{}
	for i := range list.Items {
		all[list.Items[i].Name] = &list.Items[i]
	}
	return all
}

func (w *swap) listVolumes() map[string]*v1.PersistentVolume {
	w.T.Helper()
	list, err := w.Client.CoreV1().PersistentVolumes().List(w.Ctx, metav1.ListOptions{})
	w.Must(err, "list volumes")
	all := map[string]*v1.PersistentVolume{}
	for i := range list.Items {
		all[list.Items[i].Name] = &list.Items[i]
	}
	return all
}

// poll waits until left returns nothing, for at most the given time.
func (w *swap) poll(what string, most time.Duration, left func() []string) {
	w.T.Helper()
	var last []string
	err := wait.PollUntilContextTimeout(w.Ctx, 100*time.Millisecond, most, true, func(context.Context) (bool, error) {
		last = left()
		return len(last) == 0, nil
	})
	if err != nil {
		w.T.Fatalf("%s: after %s not for %d: %v", what, most, len(last), last)
	}
}

func (w *swap) awaitStored(claim string) {
	w.T.Helper()
	name := w.volumeOf(claim)
	w.poll("the driver has the volume", 3*harness.DeletionLimit, func() []string {
		for _, stored := range w.driver.Volumes() {
			if stored == name {
				return nil
			}
		}
		return []string{claim}
	})
}

func (w *swap) awaitAllBound(all []string) {
	w.T.Helper()
	w.poll("claims are bound", 6*harness.DeletionLimit, func() []string {
		claims := w.listClaims()
		return slices.DeleteFunc(slices.Clone(all), func(name string) bool {
			claim := claims[name]
			return claim != nil && claim.Status.Phase == v1.ClaimBound
		})
	})
}

// awaitAllGone waits until no deleted claim and no volume to be reclaimed exists.
func (w *swap) awaitAllGone(phase string) {
	w.T.Helper()
	w.poll("deleted claims are gone", 3*harness.DeletionLimit, func() []string {
		claims := w.listClaims()
		for name, since := range w.deleted {
			if at, is := w.claims.GoneAt(name); is && claims[name] == nil {
				w.slowest[phase] = max(w.slowest[phase], at.Sub(since))
				delete(w.deleted, name)
			}
		}
		return slices.Collect(maps.Keys(w.deleted))
	})
	if w.slowest[phase] > harness.DeletionLimit {
		w.T.Errorf("%s: the deletion of a claim took %s", phase, w.slowest[phase])
	}
	w.poll("volumes of deleted claims are reclaimed", 3*harness.DeletionLimit, func() []string {
		volumes := w.listVolumes()
		stored := sets.New(slices.Collect(maps.Values(w.driver.Volumes()))...)
		return slices.DeleteFunc(slices.Clone(w.gone), func(name string) bool { return volumes[name] == nil && !stored.Has(name) })
	})
}

// mayGo records volumes of bound claims that are to be reclaimed.
func (w *swap) mayGo(all ...string) {
	w.T.Helper()
	claims := w.listClaims()
	for _, name := range all {
		volume := claims[name].Spec.VolumeName
		delete(w.protected, volume)
		if !retained(name) {
			w.gone = append(w.gone, volume)
		}
	}
}

// keep sets the policy Retain for volumes of bound claims, as an administrator does, and
// deletes the claims and, if asked to, the PersistentVolumes.
func (w *swap) keep(objectGoes bool, all ...string) {
	w.T.Helper()
	claims := w.listClaims()
	for _, name := range all {
		volume := claims[name].Spec.VolumeName
		w.SetPolicy(volume, v1.PersistentVolumeReclaimRetain)
		w.delete(name)
		w.protected[volume] = "an administrator keeps the volume of claim " + name
		w.AwaitVolume(volume, "is released", func(v *v1.PersistentVolume) bool { return v.Status.Phase == v1.VolumeReleased })
		if objectGoes {
			w.DeleteVolume(volume)
			w.AwaitVolumeGone(volume)
			w.kept = append(w.kept, volume)
		}
	}
}

// foresee records, before our provisioner returns, the volumes that it must never delete
// and the claims whose entries it must not finish. Volumes with policy Delete and without
// a claim are to be reclaimed.
func (w *swap) foresee() {
	w.T.Helper()
	claims, volumes := w.listClaims(), w.listVolumes()
	for name, volume := range volumes {
		claim := claims[volume.Spec.ClaimRef.Name]
		switch {
		case claim != nil || volume.Spec.PersistentVolumeReclaimPolicy == v1.PersistentVolumeReclaimRetain:
			w.protected[name] = "served before, for claim " + volume.Spec.ClaimRef.Name
		case !slices.Contains(w.gone, name):
			w.gone = append(w.gone, name)
		}
	}
	for _, entry := range w.inherited {
		if claims[entry.Name] == nil && volumes[entry.VolumeName()] == nil {
			w.unfinished = append(w.unfinished, entry.VolumeName())
		}
	}
}

// expectInherited checks for entries of the claims whose calls were pending.
func (w *swap) expectInherited(all []string) {
	w.T.Helper()
	found := sets.New[string]()
	for _, entry := range w.inherited {
		found.Insert(entry.Name)
	}
	if missing := sets.New(all...).Difference(found); missing.Len() > 0 {
		w.T.Fatalf("the journal has no entries of the claims %v, whose calls were pending", sets.List(missing))
	}
}

// findLeaks records the volumes that upstream created and leaked: neither a claim nor a
// PersistentVolume nor a journal entry refers to them.
func (w *swap) findLeaks(began int) {
	w.T.Helper()
	known := sets.New(w.kept...)
	for name := range w.listVolumes() {
		known.Insert(name)
	}
	for _, claim := range w.listClaims() {
		known.Insert("pvc-" + string(claim.UID))
	}
	for _, entry := range w.inherited {
		known.Insert(entry.VolumeName())
	}
	requested := sets.New[string]()
	for _, call := range w.driver.Server.Calls()[began:] {
		if call.Method == "CreateVolume" {
			requested.Insert(call.Name)
		}
	}
	for _, name := range w.driver.Volumes() {
		switch {
		case known.Has(name):
		case requested.Has(name):
			w.leaked = append(w.leaked, name)
		default:
			w.T.Errorf("no object refers to volume %s, which upstream did not request", name)
		}
	}
}

// awaitQuiet waits until every claim is bound and all entries are unresolved.
func (w *swap) awaitQuiet() {
	w.T.Helper()
	w.awaitAllBound(slices.Collect(maps.Keys(w.listClaims())))
	w.poll("journal entries are finished", 3*harness.DeletionLimit, func() []string {
		var left []string
		for _, entry := range w.driver.JournalEntries(journal.KindActive) {
			left = append(left, entry.Name)
		}
		return left
	})
	w.unresolved = w.driver.JournalEntries(journal.KindUnresolved)
}

// expectExactOrphans compares the driver's volumes without a PersistentVolume with the
// unresolved entries, upstream's leaks, and the volumes that an administrator keeps.
func (w *swap) expectExactOrphans() {
	w.T.Helper()
	volumes := w.listVolumes()
	stored := sets.New(slices.Collect(maps.Values(w.driver.Volumes()))...)
	orphans := sets.New[string]()
	for name := range stored {
		if volumes[name] == nil {
			orphans.Insert(name)
		}
	}
	listed, wanted := sets.New[string](), sets.New(w.unfinished...)
	for _, entry := range w.unresolved {
		listed.Insert(entry.VolumeName())
	}
	if !listed.Equal(wanted) {
		w.T.Errorf("unresolved entries are of %v, want the deleted claims %v", sets.List(listed), sets.List(wanted))
	}
	explained := listed.Intersection(stored).Union(sets.New(w.leaked...)).Union(sets.New(w.kept...))
	if !orphans.Equal(explained) {
		w.T.Errorf("volumes without PersistentVolume and reason: %v; expected but missing: %v",
			sets.List(orphans.Difference(explained)), sets.List(explained.Difference(orphans)))
	}
	w.expectNeverDeleted(stored)
}

// expectNeverDeleted checks that the driver has the protected volumes and got no
// DeleteVolume call for them.
func (w *swap) expectNeverDeleted(stored sets.Set[string]) {
	w.T.Helper()
	for name, reason := range w.protected {
		if !stored.Has(name) {
			w.T.Errorf("volume %s was deleted: %s", name, reason)
		}
	}
	byHandle := w.driver.Volumes()
	for _, call := range w.driver.Server.Calls() {
		if name := byHandle[call.Volume]; call.Method == "DeleteVolume" && w.protected[name] != "" {
			w.T.Errorf("DeleteVolume was called for %s: %s", name, w.protected[name])
		}
	}
}

// report logs the counts, and fails if too few cases occurred.
func (w *swap) report() {
	w.T.Helper()
	orphaned := 0
	stored := sets.New(slices.Collect(maps.Values(w.driver.Volumes()))...)
	var lines []string
	for _, entry := range w.unresolved {
		exists := stored.Has(entry.VolumeName())
		if exists {
			orphaned++
		}
		lines = append(lines, fmt.Sprintf("unresolved: claim %s, volume %s, in the driver: %t, %s", entry.Name, entry.VolumeName(), exists, entry.Unresolved.Reason))
	}
	for _, name := range w.leaked {
		lines = append(lines, "leaked by upstream: "+name)
	}
	w.T.Logf("%d claims; %d entries when our provisioner was killed, %d of them unresolved in the end, %d with a volume; %d volumes leaked by upstream; "+
		"%d kept without a PersistentVolume; %d protected; %d reclaimed; the slowest deletion of a claim: %v; faults: %v\n%s",
		w.created, len(w.inherited), len(w.unresolved), orphaned, len(w.leaked), len(w.kept), len(w.protected), len(w.gone),
		w.slowest, w.driver.FaultyCalls(), strings.Join(lines, "\n"))
	if w.created != 3*perPhase || orphaned < 5 || len(w.leaked) < 3 || len(w.protected) < 100 {
		w.T.Error("the run did too little to show anything")
	}
}
