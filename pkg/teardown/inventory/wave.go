package inventory

import (
	"github.com/exeunt-io/exeunt/pkg/teardown/balancer"
	"github.com/exeunt-io/exeunt/pkg/teardown/claim"
	"github.com/exeunt-io/exeunt/pkg/teardown/fate"
)

// The waves, in their order.
const (
	// ordinary: namespaces that nothing else depends on.
	ordinary = 1
	// onStorage: in infrastructure namespaces, volumes of CSI drivers or servers that run in a namespace with claims.
	onStorage = 2
	// lowest: the rest of the infrastructure.
	lowest = 3
)

// waves is the order of claims and pods.
type waves struct {
	claims, pods map[key]int
	// left is the first wave of which something is left that may still go.
	left int
	// held are the namespaces of participants that are not done.
	held map[string]bool
}

// open reports whether claims and pods of the wave may go.
func (w *waves) open(wave int, namespace string) bool { return wave <= w.left && !w.held[namespace] }

// findInfrastructure returns the namespaces that others depend on. One that was found stays: its pods go during the
// teardown.
func (i *Inventory) findInfrastructure() map[string]bool {
	for _, p := range i.participants {
		if p.Namespace != "" {
			i.infrastructure[p.Namespace] = true
		}
	}
	for namespace := range i.findDrivers().all {
		i.infrastructure[namespace] = true
	}
	for _, namespaces := range i.backends {
		for _, namespace := range namespaces {
			i.infrastructure[namespace] = true
		}
	}
	return i.infrastructure
}

func (i *Inventory) newWaves(v *view) *waves {
	w := &waves{claims: make(map[key]int, len(i.claims)), pods: make(map[key]int, len(i.pods)), held: map[string]bool{}}
	for _, p := range i.participants {
		w.held[p.Namespace] = true
	}
	for name, c := range i.claims {
		w.claims[name] = i.waveOf(v, c.namespace, i.driverOf(v, c))
		if w.claims[name] == lowest && i.isServed(v, c) {
			w.claims[name] = onStorage
		}
	}
	for name, p := range i.pods {
		for _, c := range p.claims {
			w.pods[name] = max(w.pods[name], w.claims[key{p.namespace, c}])
		}
		if w.pods[name] == 0 { // its claims do not exist
			w.pods[name] = i.waveOf(v, p.namespace, "")
		}
	}
	for name, p := range i.pods { // a claim goes with the last of its pods, or it would wait for them in vain
		for _, c := range p.claims {
			used := key{p.namespace, c}
			w.claims[used] = max(w.claims[used], w.pods[name])
		}
	}
	w.left = i.firstLeft(v, w)
	return w
}

// waveOf returns the wave of a volume of the driver for a claim in the namespace.
func (i *Inventory) waveOf(v *view, namespace, driver string) int {
	if !v.infrastructure[namespace] {
		return ordinary
	}
	found := i.findDrivers()
	for _, namespaces := range []map[string]bool{found.namespaces[driver], found.clusters[driver]} {
		for runs := range namespaces {
			if v.claimed[runs] {
				return onStorage
			}
		}
	}
	return lowest
}

// driverOf returns the driver of the claim's volume.
func (i *Inventory) driverOf(v *view, c *request) string {
	for _, f := range i.volumesOf(v, c) {
		return f.driver
	}
	return c.provisioner
}

// firstLeft returns the first wave of which something is left, but for what is stuck by evidence.
func (i *Inventory) firstLeft(v *view, w *waves) int {
	first := lowest
	left := func(wave int) { first = min(first, wave) }
	for name, p := range i.pods {
		if !i.stuckPod(p) {
			left(w.pods[name])
		}
	}
	for name, c := range i.claims {
		if i.awaits(v, c) && !i.stuckClaim(v, c) {
			left(w.claims[name])
		}
	}
	i.volumesLeft(v, w, left)
	for _, e := range v.entries {
		if !e.unresolved {
			left(i.waveOf(v, e.claim.namespace, e.driver))
		}
	}
	for id, o := range i.outsides { // a CSI driver deletes snapshots
		if o.state.Kind == balancer.Snapshot && v.outsides[id].Action != balancer.Leave && !i.stuck[o.uid] {
			left(ordinary)
		}
	}
	for _, c := range i.contents {
		if i.contentLeft(c) && !i.stuck[c.uid] {
			left(ordinary)
		}
	}
	return first
}

// volumesLeft calls left for volumes that are to be deleted, and for kept ones that are attached.
func (i *Inventory) volumesLeft(v *view, w *waves, left func(int)) {
	wave := func(f *volume) int {
		if of, known := w.claims[f.claim]; known {
			return of
		}
		return i.waveOf(v, f.claim.namespace, f.driver)
	}
	for name, f := range i.volumes {
		if !v.fates[name].Kept() && !i.stuckVolume(v, f) {
			left(wave(f))
		}
	}
	for _, a := range i.attachments {
		if f := i.volumes[a.volume]; f != nil && v.fates[a.volume].Kept() && !i.stuck[a.uid] && !i.stuckVolume(v, f) {
			left(wave(f))
		}
	}
}

// awaits reports whether the claim itself is to go.
func (i *Inventory) awaits(v *view, c *request) bool {
	n := i.namespaces[c.namespace]
	switch i.volumeOf(v, c) {
	case claim.Kept, claim.Unmarked:
		return false
	default:
		return c.phase != claim.Lost && !c.preserved && !n.preserved
	}
}

// contentLeft reports whether a snapshot is being deleted in storage, after its object has gone.
func (i *Inventory) contentLeft(c *content) bool {
	o := i.outsides["VolumeSnapshot "+c.snapshot.namespace+"/"+c.snapshot.name]
	return c.deletable && c.snapshotUID != "" && (o == nil || o.uid != c.snapshotUID)
}

// stuckPod reports whether there is evidence that the pod does not go.
func (i *Inventory) stuckPod(p *pod) bool {
	return p.mirror || i.stuck[p.uid] || i.stuckParticipant(p.namespace)
}

func (i *Inventory) stuckClaim(v *view, c *request) bool {
	if i.stuck[c.uid] || i.stuckParticipant(c.namespace) || v.entries[c.uid].unresolved {
		return true
	}
	for _, p := range v.users[c.key] {
		if i.stuckPod(p) {
			return true
		}
	}
	return false
}

func (i *Inventory) stuckVolume(v *view, f *volume) bool {
	c := i.claims[f.claim]
	return i.stuck[f.uid] || f.claimed && i.stuckParticipant(f.claim.namespace) ||
		c != nil && c.uid == f.claimUID && i.stuckClaim(v, c)
}

// stuckParticipant reports whether a participant of the namespace is stuck: its namespace waits for it (#55).
func (i *Inventory) stuckParticipant(namespace string) bool {
	for _, p := range i.participants {
		if p.Stuck && p.Namespace == namespace && namespace != "" {
			return true
		}
	}
	return false
}

// awaitsVolume reports whether a volume is to go.
func awaitsVolume(d fate.Decision) bool {
	return d.Action == fate.Await || d.Action == fate.DeleteClaim
}
