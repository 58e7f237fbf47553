package inventory

import (
	"cmp"
	"maps"
	"slices"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/exeunt-io/exeunt/internal/enum"
	"github.com/exeunt-io/exeunt/pkg/teardown"
	"github.com/exeunt-io/exeunt/pkg/teardown/balancer"
	"github.com/exeunt-io/exeunt/pkg/teardown/claim"
	"github.com/exeunt-io/exeunt/pkg/teardown/fate"
)

// Action is what a step does.
type Action int

const (
	// Mark sets the label and the policy Retain on a kept PersistentVolume, in one patch.
	Mark Action = iota
	// Delete deletes the object.
	Delete
)

// String returns the name of the value.
func (a Action) String() string { return enum.Name(a, "Mark", "Delete") }

// Step is one thing that may be done now.
type Step struct {
	Action   Action
	Resource schema.GroupVersionResource
	Kind     string
	// Namespace is "" for a PersistentVolume.
	Namespace       string
	Name            string
	UID             types.UID
	ResourceVersion string
	// Volumes are the PersistentVolume of a claim, or those of the claims that a pod owns. Each is read live, and must
	// be judged DeleteClaim by Live, before the object is deleted.
	Volumes []string
	// Unseen are PersistentVolumes that a provisioner may have made since, for a claim that is not bound. The object is
	// not deleted if one is there: a user may keep it, which its watch will show.
	Unseen []string
	Reason string
	wave   int
}

// The kinds in the order in which they are deleted: load balancers take longest.
var order = map[string]int{"PersistentVolume": 0, "Service": 1, "Gateway": 2, "Ingress": 3, "VolumeSnapshot": 4, "Pod": 5,
	claimKind: 6}

func compareSteps(a, b Step) int {
	return cmp.Or(cmp.Compare(a.Action, b.Action), cmp.Compare(a.wave, b.wave), cmp.Compare(order[a.Kind], order[b.Kind]),
		cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
}

// Steps returns what may be done now: first the marks, then deletions in the order of the waves.
func (i *Inventory) Steps(now time.Time) []Step {
	v := i.at(now)
	if v.steps == nil {
		v.steps = slices.Concat(i.marks(v), i.outsideSteps(v), i.podSteps(v), i.claimSteps(v))
		slices.SortFunc(v.steps, compareSteps)
	}
	return v.steps
}

func (i *Inventory) marks(v *view) (steps []Step) {
	for name, f := range i.volumes {
		if d := v.fates[name]; d.Action == fate.Mark {
			steps = append(steps, Step{
				Action: Mark, Resource: v1.SchemeGroupVersion.WithResource("persistentvolumes"), Kind: "PersistentVolume",
				Name: name, UID: f.uid, ResourceVersion: f.version, Reason: string(d.Reason),
			})
		}
	}
	return steps
}

func (i *Inventory) outsideSteps(v *view) (steps []Step) {
	for id, o := range i.outsides {
		if d := v.outsides[id]; d.Action == balancer.Delete {
			steps = append(steps, Step{
				Action: Delete, Resource: o.resource, Kind: o.kind, Namespace: o.namespace, Name: o.name, UID: o.uid,
				ResourceVersion: o.version, Reason: string(d.Reason), wave: ordinary,
			})
		}
	}
	return steps
}

func (i *Inventory) podSteps(v *view) (steps []Step) {
	for name, p := range i.pods {
		if d := v.pods[name]; d.Action == claim.Delete || d.Action == claim.Confirm {
			steps = append(steps, Step{
				Action: Delete, Resource: v1.SchemeGroupVersion.WithResource("pods"), Kind: "Pod", Namespace: p.namespace,
				Name: p.name, UID: p.uid, ResourceVersion: p.version, Volumes: i.ephemeralVolumes(v, p),
				Unseen: i.unseenOf(v, p), Reason: string(d.Reason), wave: v.waves.pods[name],
			})
		}
	}
	return steps
}

func (i *Inventory) claimSteps(v *view) (steps []Step) {
	for name, c := range i.claims {
		d := v.claims[name]
		if d.Action != claim.Delete && d.Action != claim.Confirm {
			continue
		}
		step := Step{
			Action: Delete, Resource: v1.SchemeGroupVersion.WithResource("persistentvolumeclaims"), Kind: claimKind,
			Namespace: c.namespace, Name: c.name, UID: c.uid, ResourceVersion: c.version, Reason: string(d.Reason),
			wave: v.waves.claims[name],
		}
		if d.Action == claim.Confirm {
			step.Volumes = []string{c.volume}
		}
		step.Unseen = i.unseen(c)
		steps = append(steps, step)
	}
	return steps
}

// unseen returns the volume that may be made for a claim, or is, and that no watch shows. The watch of a journal, or of
// events, may be ahead of that of volumes.
func (i *Inventory) unseen(c *request) []string {
	name := nameOfVolume(c.uid)
	switch {
	case c.phase == claim.Lost:
		return nil
	case c.volume != "": // also of a claim that is not bound yet
		name = c.volume
	case c.phase == claim.Bound, c.provisioner == "":
		return nil
	}
	if i.volumes[name] != nil {
		return nil
	}
	return []string{name}
}

// unseenOf returns those of the claims that a pod owns.
func (i *Inventory) unseenOf(v *view, p *pod) (names []string) {
	for _, c := range v.owned[p.uid] {
		names = append(names, i.unseen(c)...)
	}
	return names
}

// Unmarked returns how many kept volumes have no mark yet.
func (i *Inventory) Unmarked(now time.Time) (count int) {
	for _, d := range i.at(now).fates {
		if d.Action == fate.Mark {
			count++
		}
	}
	return count
}

// Work returns what is left: Ready, Awaited or Quiet.
func (i *Inventory) Work(now time.Time) teardown.Work {
	v := i.at(now)
	switch {
	case slices.ContainsFunc(i.Steps(now), func(s Step) bool { return s.Action == Delete }):
		return teardown.Ready
	case i.isAwaited(v):
		return teardown.Awaited
	}
	return teardown.Quiet
}

// isAwaited reports whether anything is left that is to go by itself.
func (i *Inventory) isAwaited(v *view) bool {
	if len(i.participants) > 0 || len(v.entries) > 0 || len(i.unknown) > 0 {
		return true
	}
	for _, d := range v.claims {
		if d.Action == claim.Wait {
			return true
		}
	}
	for _, d := range v.pods {
		if d.Action == claim.Wait {
			return true
		}
	}
	for _, d := range v.outsides {
		if d.Action == balancer.Wait {
			return true
		}
	}
	return i.isStorageAwaited(v)
}

func (i *Inventory) isStorageAwaited(v *view) bool {
	for _, d := range v.fates {
		if awaitsVolume(d) {
			return true
		}
	}
	for _, a := range i.attachments {
		if i.volumes[a.volume] != nil && v.fates[a.volume].Kept() {
			return true
		}
	}
	for _, c := range i.contents {
		if i.contentLeft(c) {
			return true
		}
	}
	return false
}

// NextTime returns when a step is due by time alone, the zero time for never.
func (i *Inventory) NextTime(now time.Time) (next time.Time) {
	v := i.at(now)
	for name, c := range i.claims {
		since := i.requested[c.uid]
		if v.claims[name].Reason != claim.ProvisioningRequested || since.IsZero() {
			continue
		}
		if due := since.Add(i.options.RequestWait); due.After(now) && (next.IsZero() || due.Before(next)) {
			next = due
		}
	}
	return next
}

// Unopened returns the namespaces with claims whose wave has not begun, sorted: their pods may still be made (#25).
func (i *Inventory) Unopened(now time.Time) []string {
	v := i.at(now)
	closed := map[string]bool{}
	for _, set := range []map[key]int{v.waves.claims, v.waves.pods} {
		for name, wave := range set {
			if !v.waves.open(wave, name.namespace) {
				closed[name.namespace] = true
			}
		}
	}
	return slices.Sorted(maps.Keys(closed))
}
