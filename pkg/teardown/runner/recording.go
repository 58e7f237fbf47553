package runner

import (
	"cmp"
	"slices"

	"github.com/exeunt-io/exeunt/pkg/teardown"
)

// recording is what was saved of the teardown. It is for reports: no decision about an object reads it.
type recording struct {
	// planned: the plan is complete. complete: the report says so.
	planned, complete bool
	// items are those of the plan, and those that appeared later.
	items []teardown.Item
	// saved is where the item of an object is, by its key.
	saved map[string]int
	// open is where the items of requested claims are, by the UID of the claim, while neither an outcome nor a volume of
	// theirs is recorded; bound are the claims of recorded volumes. Each round asks for the requests.
	open  map[string]int
	bound map[string]bool
	// lacking are sentences about what was lost or edited: reports are poorer for it, and nothing else depends on it.
	lacking []string
	// next is the number of the next ConfigMap. last are the items of the one before, if this term wrote it.
	next int
	last []teardown.Item
}

// keyOf returns what an item is known by. Participants have no UID: their finalizers name them.
func keyOf(item *teardown.Item) string {
	return string(item.Kind) + "/" + cmp.Or(item.Object.UID, item.ExternalID)
}

// unknown returns the items whose outcome nothing will show.
func (r *recording) unknown() (found []teardown.Item) {
	for i := range r.items {
		if r.items[i].Fate == teardown.Unknown {
			found = append(found, r.items[i])
		}
	}
	return found
}

// add takes items that are saved, in any order. One of an object replaces another if it says more of the outcome.
func (r *recording) add(items []teardown.Item) {
	for i := range items {
		key := keyOf(&items[i])
		at, is := r.saved[key]
		switch {
		case !is:
			at = len(r.items)
			r.saved[key], r.items = at, append(r.items, items[i])
		case outcome(&items[i]) > outcome(&r.items[at]):
			r.items[at] = items[i]
		}
		r.note(at)
	}
}

// note remembers whether the outcome of a request is still open after its item, or a volume, was recorded. A volume is
// found by the UID of its claim: a kept one of an earlier claim of the name is no answer to a later one.
func (r *recording) note(at int) {
	if r.open == nil {
		r.open, r.bound = map[string]int{}, map[string]bool{}
	}
	item := &r.items[at]
	switch uid := item.Object.UID; {
	case item.ClaimUID != "":
		r.bound[item.ClaimUID] = true
		delete(r.open, item.ClaimUID)
	case item.Object.Kind != "PersistentVolumeClaim":
	case item.Plan == teardown.PlanDelete && item.Fate == teardown.Planned && !r.bound[uid]:
		r.open[uid] = at
	default:
		delete(r.open, uid)
	}
}

// requests returns the recorded requests whose outcome is open.
func (r *recording) requests() (found []teardown.Item) {
	for _, at := range r.open {
		found = append(found, r.items[at])
	}
	return found
}

// outcome orders what was saved of one object: it is planned, then perhaps unknown, and its volume may come late.
func outcome(item *teardown.Item) int { return slices.Index(outcomes, item.Fate) }

var outcomes = []teardown.Fate{teardown.Unknown, teardown.Gone}

// unsaved returns the items that the record lacks.
func (r *recording) unsaved(items []teardown.Item) []teardown.Item {
	var lacking []teardown.Item
	for i := range items {
		at, is := r.saved[keyOf(&items[i])]
		if !is || outcome(&items[i]) > outcome(&r.items[at]) {
			lacking = append(lacking, items[i])
		}
	}
	return lacking
}

// outcomesOf returns the outcomes of claims that the record lacks. An unknown one that is no item any more has got its
// volume, which is an item of its own; a lost one that is no item was answered: there is no disk. A kept claim may be
// there still, and is judged anew.
func (r *recording) outcomesOf(items, lost []teardown.Item) []teardown.Item {
	changed := slices.DeleteFunc(r.unsaved(items), func(item teardown.Item) bool { return item.Fate != teardown.Unknown })
	past := slices.Concat(r.unknown(), lost)
	if len(past) == 0 {
		return changed
	}
	here := keysOf(items)
	for _, item := range past {
		if item.Plan != teardown.PlanDelete || here[keyOf(&item)] {
			continue
		}
		item = r.items[r.saved[keyOf(&item)]]
		item.Fate = teardown.Gone
		changed = append(changed, item)
	}
	return changed
}

// names are under which objects a report has what others of its objects stood for, too: one is gone, the disk may not be.
type names struct {
	// claims have a volume, by their UID. contents are there, snapshots are in the record, by driver and handle.
	claims, contents, snapshots map[string]bool
}

func namesOf(saved, current []teardown.Item) names {
	found := names{map[string]bool{}, map[string]bool{}, map[string]bool{}}
	for _, items := range [][]teardown.Item{saved, current} {
		for i := range items {
			if items[i].ClaimUID != "" {
				found.claims[items[i].ClaimUID] = true
			}
		}
	}
	for i := range current {
		if handle := handleOf(&current[i]); current[i].Object.Kind == "VolumeSnapshotContent" && handle != "" {
			found.contents[handle] = true
		}
	}
	for i := range saved {
		if handle := handleOf(&saved[i]); saved[i].Object.Kind == "VolumeSnapshot" && handle != "" {
			found.snapshots[handle] = true
		}
	}
	return found
}

// have reports whether another item has what the item stood for: a claim its volume, a snapshot its content.
func (n names) have(item *teardown.Item) bool {
	switch item.Object.Kind {
	case "PersistentVolumeClaim":
		return n.claims[item.Object.UID]
	case "VolumeSnapshot":
		return n.contents[handleOf(item)]
	case "VolumeSnapshotContent":
		return n.snapshots[handleOf(item)]
	}
	return false
}

// handleOf returns driver and handle, "" without a handle.
func handleOf(item *teardown.Item) string {
	if item.ExternalID == "" {
		return ""
	}
	return item.Driver + " " + item.ExternalID
}
