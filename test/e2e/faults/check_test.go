package faults

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/exeunt-io/exeunt/pkg/journal"
	"github.com/exeunt-io/exeunt/test/e2e/harness"
)

// table has the observed calls: one row per fault, one column per moment.
type table struct {
	mu      sync.Mutex
	cells   map[string]map[string]string
	methods int
	slowest time.Duration
	// unresolved counts the unresolved entries of all cells.
	unresolved int
}

func newTable() *table { return &table{cells: map[string]map[string]string{}} }

func (c *table) set(row, column, text string, methods, unresolved int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.cells[row] == nil {
		c.cells[row] = map[string]string{}
	}
	c.cells[row][column] = text
	c.methods += methods
	c.unresolved += unresolved
}

func (c *table) took(time time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.slowest = max(c.slowest, time)
}

// columnNames returns the columns of the matrix.
func columnNames() []string {
	names := slices.Clone(moments)
	for _, c := range columns() {
		names = append(names, c.name)
	}
	return names
}

// String returns the table with the number of faulty calls in each cell.
func (c *table) String() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	var text strings.Builder
	names := columnNames()
	fmt.Fprintf(&text, "| fault | %s |\n", strings.Join(names, " | "))
	for _, row := range slices.Sorted(maps.Keys(c.cells)) {
		fmt.Fprintf(&text, "| %s |", row)
		for _, column := range names {
			fmt.Fprintf(&text, " %s |", c.cells[row][column])
		}
		text.WriteString("\n")
	}
	fmt.Fprintf(&text, "%d cells: %d faults, %d methods, %d columns; %d unresolved entries; a deleted claim or namespace took %s at most\n",
		c.methods, len(c.cells), len(methods), len(names), c.unresolved, c.slowest.Round(time.Millisecond))
	return text.String()
}

// expectFull checks that every method of every cell had a fault.
func (c *table) expectFull(t *testing.T) {
	t.Helper()
	if want := len(callFaults()) * len(methods) * len(columnNames()); c.methods != want {
		t.Errorf("%d cells had their fault, want %d", c.methods, want)
	}
	if c.unresolved == 0 {
		t.Error("no journal entry was unresolved, though secrets were deleted during calls")
	}
}

// cell runs one column and records its faulty calls.
func (r *faultTest) cell(column string, run func()) {
	r.T.Helper()
	before := r.driver.FaultyCalls()
	failed := true
	defer func() {
		if failed {
			r.cells.set(r.name(), column, "FAILED", 0, 0)
		}
	}()
	run()
	after, missed, calls := r.driver.FaultyCalls(), []string{}, 0
	for _, method := range methods {
		calls += after[method] - before[method]
		if after[method] == before[method] {
			missed = append(missed, method)
		}
	}
	if len(missed) > 0 {
		r.T.Errorf("%s: %v had no fault", column, missed)
	}
	if r.T.Failed() {
		return
	}
	failed = false
	unresolved := r.unresolvedOf(column)
	r.cells.set(r.name(), column, fmt.Sprintf("%d (%d)", calls, unresolved), len(methods), unresolved)
}

func (r *faultTest) name() string { return r.callFault.name }

// unresolvedOf counts the unresolved entries of the claims of one column.
func (r *faultTest) unresolvedOf(column string) int {
	r.T.Helper()
	count := 0
	for _, entry := range r.driver.JournalEntries(journal.KindUnresolved) {
		if entry.Name == "dropped-"+strings.ReplaceAll(column, " ", "-") {
			count++
		}
	}
	return count
}

// persistentVolumes returns the PersistentVolumes of the driver, by handle.
func (r *faultTest) persistentVolumes() map[string]string {
	r.T.Helper()
	list, err := r.Client.CoreV1().PersistentVolumes().List(r.Ctx, metav1.ListOptions{})
	r.Must(err, "list volumes")
	known := map[string]string{}
	for i := range list.Items {
		if v := &list.Items[i]; v.Spec.CSI != nil && v.Spec.CSI.Driver == r.driver.Config.Name {
			known[harness.Handle(v)] = v.Name
		}
	}
	return known
}

// leaked returns the names of the driver's volumes that neither a PersistentVolume nor
// the journal has. The order of the reads matters: the PersistentVolume is created before
// the entry is removed, and deleted after the volume.
func (r *faultTest) leaked() []string {
	r.T.Helper()
	stored := r.driver.Volumes()
	logged := sets.New[string]()
	for _, kind := range []journal.Kind{journal.KindActive, journal.KindUnresolved} {
		for _, entry := range r.driver.JournalEntries(kind) {
			logged.Insert(entry.VolumeName())
		}
	}
	known, still := r.persistentVolumes(), r.driver.Volumes()
	leaked := []string{}
	for handle, name := range stored {
		if known[handle] == "" && still[handle] != "" && !logged.Has(name) &&
			!r.unlogged.Has(types.UID(strings.TrimPrefix(name, "pvc-"))) {
			leaked = append(leaked, name)
		}
	}
	return leaked
}

// expectNoLeak fails the test if the driver has a leaked volume. It may run at any time.
func (r *faultTest) expectNoLeak() {
	r.T.Helper()
	if leaked := r.leaked(); len(leaked) > 0 {
		r.T.Errorf("neither a PersistentVolume nor the journal has the driver's volumes %v", leaked)
	}
}

// awaitConsistent waits until kept claims are bound and dropped claims deleted, the journal has
// unresolved entries only, and driver, API and journal have the same volumes.
func (r *faultTest) awaitConsistent(c claimSet) {
	r.T.Helper()
	r.AwaitBound(c.kept.Name)
	r.AwaitVolumeGone(c.victimVolume.Name)
	r.awaitNoDifference()
	r.claims.ExpectNoFinalizer(r.T)
	r.driver.ForgetSeen()
}

func (r *faultTest) awaitNoDifference() {
	r.T.Helper()
	var difference string
	err := wait.PollUntilContextTimeout(r.Ctx, 50*time.Millisecond, 2*harness.DeletionLimit, true,
		func(context.Context) (bool, error) {
			difference = r.difference()
			return difference == "", nil
		})
	if err != nil {
		r.T.Fatal(difference)
	}
}

// difference describes how driver, API and journal differ, "" for no difference.
func (r *faultTest) difference() string {
	r.T.Helper()
	if active := r.driver.JournalEntries(journal.KindActive); len(active) > 0 {
		return fmt.Sprintf("%d journal entries are not finished, one of claim %s", len(active), active[0].Name)
	}
	logged := sets.New[string]()
	for _, entry := range r.driver.JournalEntries(journal.KindUnresolved) {
		if !r.unresolved.Has(entry.UID) {
			return fmt.Sprintf("the entry of claim %s is unresolved: %s", entry.Name, entry.Unresolved.Reason)
		}
		logged.Insert(entry.VolumeName())
	}
	stored, known := r.driver.Volumes(), r.persistentVolumes()
	for handle, name := range known {
		if stored[handle] != name {
			return "the driver does not have " + name
		}
	}
	for handle, name := range stored {
		if known[handle] == "" && !logged.Has(name) {
			return "neither a PersistentVolume nor the journal has the volume " + name
		}
	}
	return ""
}

// deleteDropped deletes a claim whose volume is being created.
func (r *faultTest) deleteDropped(c claimSet) {
	r.T.Helper()
	deleted := time.Now()
	r.Must(r.Client.CoreV1().PersistentVolumeClaims(c.dropped.Namespace).
		Delete(r.Ctx, c.dropped.Name, metav1.DeleteOptions{}), "delete claim")
	r.expectGone(c.dropped, deleted)
}

// expectGone checks that the claim is deleted as fast as with upstream.
func (r *faultTest) expectGone(claim *v1.PersistentVolumeClaim, deleted time.Time) {
	r.T.Helper()
	harness.Await(r.Session, &v1.PersistentVolumeClaim{}, harness.ObjectName{Resource: "persistentvolumeclaims",
		Namespace: claim.Namespace, Name: claim.Name}, "is gone",
		func(_ *v1.PersistentVolumeClaim, exists bool) bool { return !exists })
	r.expectTook(claim.Name, deleted)
}

func (r *faultTest) expectTook(what string, deleted time.Time) {
	r.T.Helper()
	took := time.Since(deleted)
	if r.cells != nil {
		r.cells.took(took)
	}
	if took > harness.DeletionLimit {
		r.T.Errorf("the deletion of %s took %s", what, took)
	}
}
