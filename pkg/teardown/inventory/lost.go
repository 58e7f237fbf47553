package inventory

import (
	"maps"
	"slices"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/exeunt-io/exeunt/pkg/teardown"
	"github.com/exeunt-io/exeunt/pkg/teardown/claim"
)

// removeClaim remembers a claim that went while a volume was requested, whoever deleted it: the disk may exist, and
// nothing else shows it.
func (i *Inventory) removeClaim(o *v1.PersistentVolumeClaim) {
	if c := i.claims[keyOf(o)]; c != nil && c.uid == o.UID && c.phase == claim.Pending && !i.refersTo(c) {
		entries := i.entries()
		if _, inJournal := entries[o.UID]; !inJournal && isRequested(i.requestOf(c, entries, time.Time{})) {
			i.unknown[c.uid] = i.unknownItem(c)
		}
	}
	delete(i.requested, o.UID)
	delete(i.failures, o.UID)
	delete(i.claims, keyOf(o))
}

// unknownItem is the item of a claim that went without an answer.
func (i *Inventory) unknownItem(c *request) teardown.Item {
	item := i.requestItem(c, claim.Decision{Action: claim.Delete, Reason: claim.OutcomeUnknown})
	item.Fate = teardown.Unknown
	return item
}

// removeLease remembers the open requests of a journal that somebody deleted, with its namespace for example: our
// provisioner never does, so no answer has come, and nothing else shows the disks.
func (i *Inventory) removeLease(o *coordinationv1.Lease) {
	gone := i.leases[keyOf(o)].entries
	i.found = nil
	delete(i.leases, keyOf(o))
	if len(gone) == 0 {
		return
	}
	left := i.entries()
	for _, e := range gone {
		c := &request{key: e.claim, uid: e.uid, provisioner: e.driver}
		if _, elsewhere := left[e.uid]; !elsewhere && !i.hasClaim(c) && !i.refersTo(c) {
			i.unknown[e.uid] = i.unknownItem(c)
		}
	}
}

// Inherit takes over what another inventory has learned and no list shows: since when answers are awaited, what expired
// events said, and the claims that went without an answer.
func (i *Inventory) Inherit(other *Inventory) {
	i.last, i.requested, i.unknown = nil, maps.Clone(other.requested), maps.Clone(other.unknown)
	for uid, said := range other.failures {
		facts := *said
		i.failures[uid] = &facts
	}
}

// Restore adds the items of a record whose fate is Unknown: claims that were deleted without an answer (#21). A claim,
// a volume or a journal entry that is there shows the outcome.
func (i *Inventory) Restore(items []teardown.Item) {
	i.last = nil
	entries := i.entries()
	for _, item := range items {
		c := &request{key: key{item.Object.Namespace, item.Object.Name}, uid: types.UID(item.Object.UID)}
		_, inJournal := entries[c.uid]
		if item.Fate == teardown.Unknown && item.Object.Kind == claimKind && !inJournal && !i.hasClaim(c) && !i.refersTo(c) {
			i.unknown[c.uid] = item
		}
	}
}

// Lost returns those of recorded requests without a recorded volume, as unknown, whose claim and volume are gone.
func (i *Inventory) Lost(requests []teardown.Item) (lost []teardown.Item) {
	for _, item := range requests {
		c := &request{key: key{item.Object.Namespace, item.Object.Name}, uid: types.UID(item.Object.UID)}
		if i.hasClaim(c) || i.refersTo(c) {
			continue
		}
		item.Fate, item.Reason = teardown.Unknown, string(claim.OutcomeUnknown)
		lost = append(lost, item)
	}
	return lost
}

// Unanswered returns those of lost requests whose disk may exist: the runner that saw the claim go is dead, and nothing
// else shows the answer (#21, #60). The journal of our provisioner would, and a final code in the last event.
func (i *Inventory) Unanswered(lost []teardown.Item) []teardown.Item {
	return slices.DeleteFunc(slices.Clone(lost), func(item teardown.Item) bool {
		uid := types.UID(item.Object.UID)
		return i.isJournaled(item.Driver, uid) || i.failures[uid].final()
	})
}
