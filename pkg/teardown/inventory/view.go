package inventory

import (
	"slices"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/exeunt-io/exeunt/pkg/storage"
	"github.com/exeunt-io/exeunt/pkg/teardown/balancer"
	"github.com/exeunt-io/exeunt/pkg/teardown/claim"
	"github.com/exeunt-io/exeunt/pkg/teardown/fate"
)

// view is what follows from all objects at one time.
type view struct {
	now time.Time
	// users are the pods of each claim, bound its volumes.
	users map[key][]*pod
	bound map[key][]*volume
	// attached are the names of VolumeAttachments, by volume.
	attached map[string]string
	// owners are the UIDs of pods with claims, owned the claims that a pod owns: the garbage collector deletes these after it.
	owners map[types.UID]bool
	owned  map[types.UID][]*request
	// contents are by the UID of their snapshot.
	contents map[types.UID]*content
	entries  map[types.UID]entry
	// claimed are the namespaces with claims, below those with disks that hold kept volumes or snapshots.
	claimed, below map[string]bool
	// serving are the Services that volumes need.
	serving map[key]bool
	// infrastructure are the namespaces that go last.
	infrastructure map[string]bool

	fates    map[string]fate.Decision
	claims   map[key]claim.Decision
	requests map[key]claim.Request
	pods     map[key]claim.Decision
	outsides map[string]balancer.Decision

	waves *waves
	// steps is nil until they are asked for.
	steps []Step
}

// at returns the view of the time, which is computed once while nothing changes.
func (i *Inventory) at(now time.Time) *view {
	if i.last != nil && i.last.now.Equal(now) {
		return i.last
	}
	v := i.index(now)
	i.judgeOutsides(v)
	i.findBelow(v)
	v.waves = i.newWaves(v)
	i.judgeClaims(v)
	i.last, i.below = v, v.below
	return v
}

func (i *Inventory) index(now time.Time) *view {
	v := &view{
		now: now, users: make(map[key][]*pod, len(i.pods)), bound: make(map[key][]*volume, len(i.volumes)),
		owners: make(map[types.UID]bool, len(i.pods)),
		owned:  map[types.UID][]*request{}, serving: map[key]bool{},
		contents: map[types.UID]*content{}, entries: i.entries(),
		claimed: map[string]bool{}, below: map[string]bool{}, fates: make(map[string]fate.Decision, len(i.volumes)),
		claims: make(map[key]claim.Decision, len(i.claims)), pods: make(map[key]claim.Decision, len(i.pods)),
		outsides: map[string]balancer.Decision{}, requests: map[key]claim.Request{}, attached: map[string]string{},
	}
	for _, a := range i.attachments {
		v.attached[a.volume] = max(v.attached[a.volume], a.name)
	}
	for _, p := range i.pods {
		v.owners[p.uid] = true
		for _, name := range p.claims {
			c := key{p.namespace, name}
			v.users[c] = append(v.users[c], p)
		}
	}
	for _, f := range i.volumes {
		if f.claimed {
			v.bound[f.claim] = append(v.bound[f.claim], f)
		}
	}
	for name, c := range i.claims {
		v.claimed[name.namespace] = true
		if c.owner != "" {
			v.owned[c.owner] = append(v.owned[c.owner], c)
		}
	}
	for _, c := range i.contents {
		v.contents[c.snapshotUID] = c
	}
	v.infrastructure = i.findInfrastructure()
	return v
}

// findBelow judges the volumes until no further namespace holds kept disks: what a kept volume or snapshot lies on is
// kept as well (#08).
func (i *Inventory) findBelow(v *view) {
	found := i.findDrivers()
	for at := range i.keptSnapshots(v) {
		namespaces := found.of(at.driver)
		if at.driver == "" { // its content is not there yet: any driver may have it
			namespaces = found.all
		}
		i.hold(v, namespaces)
		i.holdServer(v, at.server)
	}
	for changed := true; changed; {
		changed = false
		for name, f := range i.volumes {
			v.fates[name] = fate.Decide(i.fateOf(v.below, f))
			if v.fates[name].Kept() {
				changed = i.hold(v, found.of(f.driver)) || i.holdServer(v, f.server) || changed
			}
		}
	}
}

// hold keeps the disks of claims in the namespaces, and reports whether one is new.
func (i *Inventory) hold(v *view, namespaces map[string]bool) (changed bool) {
	for namespace := range namespaces {
		if v.claimed[namespace] && !v.below[namespace] {
			v.below[namespace], changed = true, true
		}
	}
	return changed
}

// place is where a snapshot is: with a driver, and on a server if its handle names one.
type place struct{ driver, server string }

// keptSnapshots returns where snapshots are that stay.
func (i *Inventory) keptSnapshots(v *view) map[place]bool {
	places := map[place]bool{}
	for _, c := range i.contents {
		if !c.deletable { // also after its snapshot has gone
			places[c.place()] = true
		}
	}
	for id, o := range i.outsides {
		if o.state.Kind == balancer.Snapshot && v.outsides[id].Action == balancer.Leave {
			places[i.contentFor(v, o).place()] = true
		}
	}
	return places
}

// fateOf returns what the decision about a volume rests on.
func (i *Inventory) fateOf(below map[string]bool, f *volume) fate.State {
	s := fate.State{
		Preserved: f.preserved, Deletable: f.deletable, Provisioned: f.provisioned, Shared: i.shares(f),
		Marked: f.marked, Held: f.held, Claim: i.relationOf(f),
	}
	if f.claimed {
		s.Below = below[f.claim.namespace]
		s.Preserved = s.Preserved || i.namespaces[f.claim.namespace].preserved
		if c := i.claims[f.claim]; c != nil && c.uid == f.claimUID {
			s.Preserved = s.Preserved || c.preserved
		}
	}
	return s
}

// shares reports whether another volume has the same disk, or lies in its directory.
func (i *Inventory) shares(f *volume) bool {
	if len(f.disks) == 0 {
		return false
	}
	own := f.disks[0]
	others := i.disks[own]
	if known := i.volumes[f.name]; known != nil && len(known.disks) > 0 && known.disks[0] == own {
		others--
	}
	return others > 0 || i.options.Shared[own]
}

// relationOf returns the relation of the volume to its claim.
func (i *Inventory) relationOf(f *volume) fate.Claim {
	if !f.claimed {
		return fate.Never
	}
	c := i.claims[f.claim]
	gone := c == nil || c.uid != f.claimUID
	switch {
	case gone && f.phase == storage.PhaseAvailable, gone && f.claimUID == "":
		return fate.Never
	case gone:
		return fate.Released
	case c.phase == claim.Lost, c.volume != "" && c.volume != f.name:
		return fate.Lost
	}
	return fate.Bound
}

// Live judges a PersistentVolume that was read now, before its claim is deleted: only DeleteClaim lets it be deleted.
func (i *Inventory) Live(volume *v1.PersistentVolume) fate.Decision {
	if i.below == nil {
		i.at(time.Time{})
	}
	return fate.Decide(i.fateOf(i.below, factsOfVolume(volume)))
}

// judgeOutsides decides about Services, Ingresses, Gateways and snapshots.
func (i *Inventory) judgeOutsides(v *view) {
	i.findServing(v)
	for id, o := range i.outsides {
		v.outsides[id] = balancer.Decide(i.outsideOf(v, o))
	}
}

// outsideOf returns what the decision about the object rests on.
func (i *Inventory) outsideOf(v *view, o *outside) balancer.State {
	s, n := o.state, i.namespaces[o.namespace]
	s.Preserved, s.Deleting = s.Preserved || n.preserved, s.Deleting || n.deleting
	s.LeadsToAPI = slices.ContainsFunc(o.addresses, func(a string) bool { return i.options.APIServer[a] })
	s.Serving = s.Kind == balancer.ServiceLB && v.serving[key{o.namespace, o.name}]
	if s.Kind == balancer.Snapshot {
		s.Content = i.contentOf(v, o)
	}
	return s
}

// contentFor returns the content of a snapshot, nil if there is none.
func (i *Inventory) contentFor(v *view, o *outside) *content {
	if c := v.contents[o.uid]; c != nil {
		return c
	}
	return i.contents[o.content]
}

func (i *Inventory) contentOf(v *view, o *outside) balancer.Content {
	c := i.contentFor(v, o)
	switch {
	case o.grouped:
		return balancer.ContentOfGroup
	case c == nil && o.content == "":
		return balancer.NoContent
	case c == nil:
		return balancer.ContentUnread
	case c.deletable:
		return balancer.ContentDelete
	}
	return balancer.ContentKept
}

// judgeClaims decides about claims and their pods.
func (i *Inventory) judgeClaims(v *view) {
	for name, c := range i.claims {
		v.claims[name] = claim.Decide(i.claimOf(v, c))
	}
	for name, p := range i.pods {
		v.pods[name] = claim.DecidePod(claim.PodState{
			Deleting: p.deleting || i.namespaces[p.namespace].deleting, Mirror: p.mirror,
			Unmarked: i.usesUnmarked(v, p), Requested: i.requestsEphemeral(v, p), Unread: len(i.ephemeralVolumes(v, p)) > 0,
			Open: v.waves.open(v.waves.pods[name], p.namespace),
		})
	}
}

// requestsEphemeral reports whether a claim that the pod owns awaits a volume.
func (i *Inventory) requestsEphemeral(v *view, p *pod) bool {
	return slices.ContainsFunc(v.owned[p.uid], func(c *request) bool {
		return c.phase == claim.Pending && (v.requests[c.key] == claim.Open || i.volumeOf(v, c) == claim.Deletable)
	})
}

// ephemeralVolumes returns the volumes that the deletion of the pod deletes.
func (i *Inventory) ephemeralVolumes(v *view, p *pod) (names []string) {
	for _, c := range v.owned[p.uid] {
		for _, f := range i.volumesOf(v, c) {
			if v.fates[f.name].Action == fate.DeleteClaim {
				names = append(names, f.name)
			}
		}
	}
	return names
}

// claimOf returns what the decision about a claim rests on.
func (i *Inventory) claimOf(v *view, c *request) claim.State {
	n := i.namespaces[c.namespace]
	s := claim.State{
		Deleting: c.deleting || n.deleting, Preserved: c.preserved || n.preserved, Phase: c.phase,
		Volume: i.volumeOf(v, c), Ephemeral: c.owner != "" && v.owners[c.owner],
		Open: v.waves.open(v.waves.claims[c.key], c.namespace), Used: len(v.users[c.key]) > 0,
	}
	if c.phase == claim.Pending {
		s.Request = i.requestOf(c, v.entries, v.now)
		v.requests[c.key] = s.Request
	}
	return s
}

// volumeOf returns what is known of the volume of a claim. Of several volumes the kept one counts.
func (i *Inventory) volumeOf(v *view, c *request) claim.Volume {
	known := claim.NoVolume
	for _, f := range i.volumesOf(v, c) {
		switch v.fates[f.name].Action {
		case fate.Mark:
			return claim.Unmarked
		case fate.Keep:
			known = claim.Kept
		case fate.DeleteClaim:
			if known == claim.NoVolume {
				known = claim.Deletable
			}
		case fate.Await: // it belongs to another claim of the same name
		}
	}
	return known
}

// volumesOf returns the volumes whose claimRef is the claim, and the volume in the claim's spec.volumeName.
func (i *Inventory) volumesOf(v *view, c *request) []*volume {
	var found []*volume
	for _, f := range v.bound[c.key] {
		if f.claimUID == c.uid {
			found = append(found, f)
		}
	}
	if named := i.volumes[c.volume]; named != nil && (named.claimUID != c.uid || named.claim != c.key) {
		found = append(found, named)
	}
	return found
}

// usesUnmarked reports whether a kept volume of a claim that the pod uses or owns is not marked yet.
func (i *Inventory) usesUnmarked(v *view, p *pod) bool {
	if slices.ContainsFunc(v.owned[p.uid], func(c *request) bool { return i.volumeOf(v, c) == claim.Unmarked }) {
		return true
	}
	for _, name := range p.claims {
		if c := i.claims[key{p.namespace, name}]; c != nil && i.volumeOf(v, c) == claim.Unmarked {
			return true
		}
	}
	return false
}
