package inventory

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"github.com/exeunt-io/exeunt/pkg/blocker"
	"github.com/exeunt-io/exeunt/pkg/teardown"
	"github.com/exeunt-io/exeunt/pkg/teardown/balancer"
	"github.com/exeunt-io/exeunt/pkg/teardown/claim"
	"github.com/exeunt-io/exeunt/pkg/teardown/fate"
)

// Items returns the external resources and the participants, sorted by kind, namespace and name. What is to be deleted is
// Planned, what stays is Kept.
func (i *Inventory) Items(now time.Time) []teardown.Item {
	v := i.at(now)
	items := make([]teardown.Item, 0, len(i.volumes)+len(i.outsides)+len(i.participants))
	for name, f := range i.volumes {
		items = append(items, i.volumeItem(v, f, v.fates[name]))
	}
	for name, c := range i.claims {
		if d := v.claims[name]; isRequested(v.requests[name]) && len(i.volumesOf(v, c)) == 0 {
			items = append(items, i.requestItem(c, d))
		}
	}
	for _, item := range i.unknown {
		items = append(items, item)
	}
	items = append(items, i.entryItems(v)...)
	for id, o := range i.outsides {
		items = append(items, i.outsideItem(v, o, v.outsides[id]))
	}
	for _, c := range i.contents {
		if i.contentLeft(c) {
			items = append(items, contentItem(c))
		}
	}
	for _, p := range i.participants {
		items = append(items, participantItem(p))
	}
	slices.SortFunc(items, compareItems)
	return items
}

func compareItems(a, b teardown.Item) int {
	return cmp.Or(-cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Object.Namespace, b.Object.Namespace),
		cmp.Compare(a.Object.Name, b.Object.Name), cmp.Compare(a.Object.UID, b.Object.UID),
		cmp.Compare(a.ExternalID, b.ExternalID))
}

// isRequested reports whether a volume may be on its way.
func isRequested(r claim.Request) bool { return r == claim.Open || r == claim.Unanswered }

// planned returns plan and fate of what is to be deleted or kept.
func planned(keeps bool) (teardown.Plan, teardown.Fate) {
	if keeps {
		return teardown.PlanKeep, teardown.Kept
	}
	return teardown.PlanDelete, teardown.Planned
}

func evidence(is bool) teardown.Evidence {
	if is {
		return teardown.ByFinalizer
	}
	return teardown.NoEvidence
}

func (i *Inventory) volumeItem(v *view, f *volume, d fate.Decision) teardown.Item {
	item := teardown.Item{
		Kind:       teardown.Volume,
		Object:     teardown.Object{Kind: "PersistentVolume", Name: f.name, UID: string(f.uid)},
		Claim:      f.claim.String(),
		ClaimUID:   string(f.claimUID),
		ExternalID: f.handle, Driver: f.driver, Size: f.size, Created: f.created, Reason: string(d.Reason),
		Evidence: evidence(i.fateOf(v.below, f).Evident()), Blockers: []blocker.Blocker{},
	}
	item.Plan, item.Fate = planned(d.Kept())
	if d.Kept() {
		item.InUse, item.Attachment = i.inUse(v, f), v.attached[f.name]
	}
	return item
}

// inUse reports whether the volume is attached, or used by a pod or claim that is to go.
func (i *Inventory) inUse(v *view, f *volume) bool {
	c := i.claims[f.claim]
	if c != nil && c.uid == f.claimUID && v.claims[f.claim].Action == claim.Wait {
		return true
	}
	return v.attached[f.name] != "" || f.claimed && slices.ContainsFunc(v.users[f.claim], func(p *pod) bool {
		return v.pods[p.key].Action != claim.Leave
	})
}

// requestItem is the item of a claim whose volume may be on its way: nothing but its name shows it.
func (i *Inventory) requestItem(c *request, d claim.Decision) teardown.Item {
	item := teardown.Item{
		Kind:       teardown.Volume,
		Object:     teardown.Object{Kind: claimKind, Namespace: c.namespace, Name: c.name, UID: string(c.uid)},
		ExternalID: nameOfVolume(c.uid), Driver: c.provisioner, Size: c.size, Created: c.created,
		Reason: string(d.Reason), Evidence: teardown.NoEvidence, Blockers: []blocker.Blocker{},
	}
	if item.Plan, item.Fate = planned(d.Action == claim.Leave); d.Reason == claim.OutcomeUnknown && d.Action == claim.Leave {
		item.Fate = teardown.Unknown
	}
	return item
}

// entryItems are the journal entries whose claim is gone.
func (i *Inventory) entryItems(v *view) (items []teardown.Item) {
	for uid, e := range v.entries {
		if c := i.claims[e.claim]; c != nil && c.uid == uid {
			continue
		}
		item := i.requestItem(&request{key: e.claim, uid: uid, provisioner: e.driver},
			claim.Decision{Action: claim.Wait, Reason: claim.ProvisioningRequested})
		if e.unresolved {
			item.Fate, item.Reason = teardown.Unknown, string(claim.OutcomeUnknown)
		}
		items = append(items, item)
	}
	return items
}

func (i *Inventory) outsideItem(v *view, o *outside, d balancer.Decision) teardown.Item {
	s := i.outsideOf(v, o)
	item := teardown.Item{
		Kind: o.item, Object: teardown.Object{Kind: o.kind, Namespace: o.namespace, Name: o.name, UID: string(o.uid)},
		ExternalID: strings.Join(o.addresses, ","), Driver: o.driver, Created: o.created, Reason: string(d.Reason),
		Evidence: evidence(s.Evident()), Blockers: []blocker.Blocker{},
	}
	if c := i.contentFor(v, o); o.item == teardown.Snapshot && c != nil {
		item.ExternalID, item.Driver, item.Size = c.handle, c.driver, c.size
	}
	item.Plan, item.Fate = planned(d.Action == balancer.Leave)
	return item
}

// contentItem is the item of a snapshot whose object is gone.
func contentItem(c *content) teardown.Item {
	return teardown.Item{
		Kind:       teardown.Snapshot,
		Object:     teardown.Object{Kind: "VolumeSnapshotContent", Name: c.name, UID: string(c.uid)},
		ExternalID: c.handle, Driver: c.driver, Size: c.size, Created: c.created, Plan: teardown.PlanDelete,
		Reason: string(balancer.Terminating), Fate: teardown.Planned, Evidence: evidence(c.held),
		Blockers: []blocker.Blocker{},
	}
}

func participantItem(p Participant) teardown.Item {
	return teardown.Item{
		Kind: teardown.Participant, Object: teardown.Object{Kind: "Alive", Name: "cluster", Namespace: p.Namespace},
		ExternalID: p.Finalizer, Plan: teardown.PlanDelete, Reason: p.Text, Fate: teardown.Planned,
		Evidence: teardown.ByFinalizer, Blockers: []blocker.Blocker{},
	}
}

// OnNodes returns the kept volumes on the disk of one node, sorted: these go with their machines (#09).
func (i *Inventory) OnNodes(now time.Time) (names []string) {
	v := i.at(now)
	for name, f := range i.volumes {
		if f.onNode && v.fates[name].Kept() {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}
