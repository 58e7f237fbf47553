package inventory_test

import (
	"slices"
	"testing"
	"time"

	csispec "github.com/container-storage-interface/spec/lib/go/csi"
	coordinationv1 "k8s.io/api/coordination/v1"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"github.com/exeunt-io/exeunt/pkg/alive"
	"github.com/exeunt-io/exeunt/pkg/controller"
	"github.com/exeunt-io/exeunt/pkg/journal"
	"github.com/exeunt-io/exeunt/pkg/teardown"
	"github.com/exeunt-io/exeunt/pkg/teardown/inventory"
)

// requestedIn returns a Lease of the journal with an entry for the claim shop/data.
func requestedIn(t *testing.T, kind journal.Kind) *coordinationv1.Lease {
	t.Helper()
	text, err := journal.Encode(journal.Entry{UID: "data", Namespace: "shop", Name: "data",
		Volume: &v1.PersistentVolume{ObjectMeta: meta("", "pvc-data")}, Request: journal.Request{CreateVolumeRequest: &csispec.CreateVolumeRequest{Name: "pvc-data"}}})
	if err != nil {
		t.Fatal(err)
	}
	return ofEBS.Lease(kind, 0, "pod_1_exeunt", firstTerm, map[types.UID]string{"data": text})
}

var (
	ofEBS = journal.Journal{Namespace: "csi", Driver: "ebs"}
	// firstTerm is that of the leader Lease that ledBy returns.
	firstTerm = journal.Custody{LeaderLease: "ebs"}
)

// ledBy returns the leader Lease of the provisioner of ebs.
func ledBy(holder string) *coordinationv1.Lease { return lease("csi", "ebs", holder) }

// emptyJournal returns a Lease of the journal without entries, of the first term.
func emptyJournal(edits ...edit[coordinationv1.Lease]) *coordinationv1.Lease {
	return with(ofEBS.Lease(journal.KindActive, 0, "pod_1_exeunt", firstTerm, nil), edits)
}

func TestJournalEntryIsAwaited(t *testing.T) { // 21
	entry := requestedIn(t, journal.KindActive)
	i := fill(inventory.Options{}, data("shop", requested), ledBy("pod_1_exeunt"), entry)
	if got := stepsOf(i, now); len(got) != 0 || i.Work(now) != teardown.Awaited {
		t.Errorf("steps %q, work %v with an entry", got, i.Work(now))
	}
	i.Remove(data("shop", requested))
	if got, want := itemsOf(i, now), []string{"data delete ProvisioningRequested none"}; !slices.Equal(got, want) {
		t.Errorf("items %q, want %q", got, want)
	}
	if got := i.Work(now); got != teardown.Awaited {
		t.Errorf("work %v with an entry of a claim that is gone", got)
	}
	i.Remove(entry)
	i.Set(requestedIn(t, journal.KindUnresolved))
	if got := i.Items(now); len(got) != 1 || got[0].Fate != teardown.Unknown || i.Work(now) != teardown.Awaited {
		t.Errorf("%+v, work %v: an unresolved entry is not named as unknown", got, i.Work(now))
	}
}

func TestNamesAreThoseOfOtherPackages(t *testing.T) {
	if inventory.PreserveLabel != alive.PreserveLabel {
		t.Errorf("label %s, want %s", inventory.PreserveLabel, alive.PreserveLabel)
	}
	i := fill(inventory.Options{}, data("shop", requested), ledBy("pod_1"+controller.IdentitySuffix), emptyJournal())
	if got := stepsOf(i, now); len(got) != 1 {
		t.Errorf("steps %q: the Lease of our provisioner is not recognized", got)
	}
}

// Our provisioner leads without a journal with the gate off, without the right to write Leases, and for a request that is
// too large: its Lease proves nothing of a claim then.
func TestLeaderWithoutJournalProvesNothing(t *testing.T) { // 21
	nextTerm, other := ledBy("pod_2_exeunt"), ofEBS
	nextTerm.Spec.LeaseTransitions, other.Driver = ptr.To[int32](1), "efs"
	for name, objects := range map[string][]any{
		"no journal":                {ledBy("pod_1_exeunt")},
		"journal of an earlier one": {nextTerm, emptyJournal()},
		"journal that is off": {ledBy("pod_1_exeunt"), emptyJournal(func(l *coordinationv1.Lease) {
			l.Annotations[journal.OffAnnotation] = "true"
		})},
		"unresolved entries alone": {ledBy("pod_1_exeunt"),
			ofEBS.Lease(journal.KindUnresolved, 0, "pod_1_exeunt", firstTerm, nil)},
		"journal of another driver": {ledBy("pod_1_exeunt"),
			other.Lease(journal.KindActive, 0, "pod_1_exeunt", firstTerm, nil)},
		"another leader": {ledBy("pod_1"), emptyJournal()},
		"request that is too large": {ledBy("pod_1_exeunt"), emptyJournal(),
			event("ProvisioningWithoutJournal", "Volume pvc-data is created without a journal entry", now)},
	} {
		t.Run(name, func(t *testing.T) {
			i := fill(inventory.Options{}, append(objects, data("shop", requested))...)
			if got, want := itemsOf(i, now), []string{"data delete ProvisioningRequested none"}; !slices.Equal(got, want) ||
				len(stepsOf(i, now)) != 0 {
				t.Errorf("items %q, steps %q", got, stepsOf(i, now))
			}
			i.Remove(data("shop", requested))
			if got := i.Items(now); len(got) != 1 || got[0].Fate != teardown.Unknown {
				t.Errorf("items %+v after the claim has gone", got)
			}
			lost := []teardown.Item{{Object: teardown.Object{Kind: "PersistentVolumeClaim", UID: "data"}, Driver: "ebs"}}
			if got := fill(inventory.Options{}, objects...).Unanswered(lost); len(got) != 1 {
				t.Error("the next runner takes the Lease for an answer")
			}
		})
	}
}

// The leader begins its journal, and ends it, without a change of its own Lease.
func TestChangedJournalChangesWhatIsKnown(t *testing.T) { // 21
	i := fill(inventory.Options{}, data("shop", requested), ledBy("pod_1_exeunt"))
	off := emptyJournal(func(l *coordinationv1.Lease) { l.Annotations[journal.OffAnnotation] = "true" })
	for _, tc := range []struct {
		journal *coordinationv1.Lease
		steps   int
	}{{emptyJournal(), 1}, {off, 0}, {emptyJournal(), 1}} {
		if !i.Set(tc.journal) || len(stepsOf(i, now)) != tc.steps {
			t.Errorf("steps %q, want %d", stepsOf(i, now), tc.steps)
		}
	}
}

// A runner recorded a request, saw its claim go, and died. Only what nothing else shows is unknown.
func TestRecordedRequestWithoutClaimIsUnknown(t *testing.T) { // 21, 60
	recorded := teardown.Item{Kind: teardown.Volume, Object: teardown.Object{Kind: "PersistentVolumeClaim", Namespace: "shop",
		Name: "data", UID: "data"}, ExternalID: "pvc-data", Driver: "ebs", Plan: teardown.PlanDelete, Fate: teardown.Planned}
	for name, tc := range map[string]struct {
		objects []any
		lost    int
	}{
		"nothing is left":     {nil, 1},
		"the claim is there":  {[]any{data("shop")}, 0},
		"the volume is there": {[]any{disk("shop")}, 0},
		"another claim":       {[]any{data("shop", func(c *v1.PersistentVolumeClaim) { c.UID = "b" })}, 1},
	} {
		i := inventory.New(inventory.Options{})
		for _, object := range tc.objects {
			i.Set(object)
		}
		lost := i.Lost([]teardown.Item{recorded})
		if len(lost) != tc.lost {
			t.Errorf("%s: %+v", name, lost)
		}
		i.Restore(lost)
		unknown := slices.ContainsFunc(i.Items(now), func(item teardown.Item) bool { return item.Fate == teardown.Unknown })
		if unknown != (tc.lost > 0) {
			t.Errorf("%s: an item is unknown: %t", name, unknown)
		}
	}
}

// The lists at the end are judged by what the runner has learned: what they do not show is neither awaited anew, nor
// unknown again once its volume came.
func TestFreshListsAgreeWithWhatWasLearned(t *testing.T) { // 21
	later := now.Add(3 * time.Minute)
	kept := data("shop", requested, func(c *v1.PersistentVolumeClaim) { c.Labels = map[string]string{preserve: ""} })
	for name, tc := range map[string]struct {
		learn  func(*inventory.Inventory)
		listed []any
		want   teardown.Work
	}{
		"a kept request has no answer": {func(i *inventory.Inventory) {
			i.Set(kept)
			i.Work(now)
		}, []any{kept}, teardown.Quiet},
		"its answer was final": {func(i *inventory.Inventory) {
			i.Set(kept)
			i.Set(failed("rpc error: code = InvalidArgument desc = no", now))
		}, []any{kept}, teardown.Quiet},
		"a claim went without an answer": {func(i *inventory.Inventory) {
			i.Set(data("shop", requested))
			i.Work(now)
			i.Remove(data("shop", requested))
		}, nil, teardown.Awaited},
		"its volume came late, and went": {func(i *inventory.Inventory) {
			i.Set(data("shop", requested))
			i.Work(now)
			i.Remove(data("shop", requested))
			i.Set(disk("shop"))
			i.Remove(disk("shop"))
		}, nil, teardown.Quiet},
	} {
		learned, fresh := inventory.New(inventory.Options{}), inventory.New(inventory.Options{})
		tc.learn(learned)
		fresh.Inherit(learned)
		for _, object := range tc.listed {
			fresh.Set(object)
		}
		if watched, listed := learned.Work(later), fresh.Work(later); watched != tc.want || listed != tc.want {
			t.Errorf("%s: watches say %s, lists %s, want %s", name, watched, listed, tc.want)
		}
	}
}

// What was recorded as unknown is no more than what nothing else shows.
func TestRestoredOutcomeYieldsToWhatIsThere(t *testing.T) { // 21
	unknown := []teardown.Item{{Kind: teardown.Volume, Object: teardown.Object{Kind: "PersistentVolumeClaim",
		Namespace: "shop", Name: "data", UID: "data"}, Plan: teardown.PlanDelete, Fate: teardown.Unknown}}
	for name, tc := range map[string]struct {
		object any
		want   bool
	}{
		"nothing":       {nil, true},
		"the claim":     {data("shop"), false},
		"another claim": {data("shop", func(c *v1.PersistentVolumeClaim) { c.UID = "b" }), true},
		"the volume":    {disk("shop"), false},
		"the journal":   {requestedIn(t, journal.KindActive), false},
	} {
		before, after := inventory.New(inventory.Options{}), inventory.New(inventory.Options{})
		before.Restore(unknown)
		for _, i := range []*inventory.Inventory{before, after} {
			i.Set(tc.object)
		}
		after.Restore(unknown)
		for i, listed := range map[*inventory.Inventory]string{before: "later", after: "before"} {
			is := slices.ContainsFunc(i.Items(now), func(item teardown.Item) bool { return item.Fate == teardown.Unknown })
			if is != tc.want {
				t.Errorf("%s, listed %s: unknown %t", name, listed, is)
			}
		}
	}
}
