package garbage

import (
	"fmt"
	"slices"
	"strings"

	"github.com/exeunt-io/exeunt/test/model/explore"
)

// The greatest numbers of slots and kinds of a cluster.
const (
	maxSlots = 8
	maxKinds = 4
)

// Event is what a watch delivers: a version of an object, or its end.
type Event struct {
	Object  *Object
	Deleted bool
	// Version is that of the object; of a deletion, a version of its own.
	Version int
}

// View is what the collector was shown of one kind.
type View struct {
	// shown are the objects by slot that the collector was shown, at the version.
	shown   [maxSlots]*Object
	version int
	// events are to come.
	events []Event
}

// Write is a write of a former leader that has not arrived yet.
type Write struct {
	Call Call
	// Age is the number of seconds since it was sent.
	Age int
}

// Served is the answer to a read that has not arrived yet.
type Served struct {
	call   string
	answer Answer
}

// edges is a set of pairs of a dependent and its owner, by their slots.
type edges uint64

func edge(dependent, owner int) edges { return 1 << (dependent*maxSlots + owner) }

// State is a state of a cluster. Steps change a copy.
type State struct {
	objects      [maxSlots]*Object
	incarnations [maxSlots]int
	counters     [maxKinds]int
	views        [maxKinds]View
	// collector is the state of the collector in its machine, 0 if it does not run.
	collector int
	late      []Write
	served    []Served
	// paused: the pass of the worker is interrupted.
	paused bool
	// used are the actions that users have carried out.
	used uint64
	// Faults that are still to come.
	faults Faults
	// failing are the kinds that cannot be listed; unread those that could not be at some time.
	failing, unread [maxKinds]bool
	// away: the API server does not answer.
	away bool
	// backup is what a restore of etcd brings back. restored: one happened since the collector started; relist are
	// the kinds whose watches ended then, so that they are listed again.
	backup   *Backup
	restored bool
	relist   [maxKinds]bool
	// before has, for each owner that is deleted, the references that were committed before, and
	// blockers those that blocked then.
	before, blockers [maxSlots]edges
	// sinceOrphan and sinceForeground are the seconds since the owner was deleted so, sinceLive those since
	// it was neither.
	sinceOrphan, sinceForeground, sinceLive [maxSlots]int
	// witness has, for each owner that a search for cycles has read, the slots of its component, if
	// nothing outside blocked it.
	witness [maxSlots]uint8
	// stock is what upstream's collector sees.
	stock [maxSlots]*Object
	// broken are the rules that the last step broke; it is no part of the key.
	broken []explore.Finding
}

// longAgo is more seconds than any age that makes a difference.
const longAgo = 6

func (s *State) clone() *State {
	c := *s
	for k := range c.views {
		c.views[k].events = slices.Clip(c.views[k].events)
	}
	c.late, c.served, c.broken = slices.Clone(s.late), slices.Clone(s.served), nil
	return &c
}

// key returns a text that is equal for equal states.
func (s *State) key() string {
	var out strings.Builder
	for _, o := range s.objects {
		o.text(&out)
	}
	for k := range s.views {
		v := &s.views[k]
		fmt.Fprintf(&out, "|%d", v.version)
		for _, o := range v.shown {
			if o != nil {
				o.text(&out)
			}
		}
		for _, e := range v.events {
			fmt.Fprintf(&out, "!%d%t", e.Version, e.Deleted)
			e.Object.text(&out)
		}
	}
	fmt.Fprint(
		&out, s.incarnations, s.counters, s.collector, s.late, s.served, s.paused, s.used, s.faults, s.failing, s.unread,
		s.away, s.backup.text(), s.restored, s.relist, s.before, s.blockers, s.sinceOrphan, s.sinceForeground, s.sinceLive,
		s.witness,
	)
	for _, o := range s.stock {
		if o != nil {
			o.text(&out)
		}
	}
	return out.String()
}

// find returns the object with the UID, nil if there is none.
func (w *world) find(s *State, id string) *Object {
	for i, o := range s.objects {
		if o != nil && string(uid(w.config.Slots[i], o.Incarnation)) == id {
			return o
		}
	}
	return nil
}

// ownerOf returns the object that the reference of the dependent names, nil if it is absent.
func (w *world) ownerOf(s *State, dependent *Object, r Ref) *Object {
	owner := w.find(s, string(r.Owner))
	if owner == nil {
		return nil
	}
	slot := w.config.Slots[owner.Slot]
	if slot.Kind != r.Kind || slot.Name != r.Name {
		return nil
	}
	if w.config.Kinds[slot.Kind].Namespaced &&
		w.config.namespaceOf(slot) != w.config.namespaceOf(w.config.Slots[dependent.Slot]) {
		return nil
	}
	return owner
}

// references returns the pairs of all objects and their owners, and those that block.
func (w *world) references(s *State) (all, blocking edges) {
	for _, o := range s.objects {
		if o == nil {
			continue
		}
		for _, r := range o.Refs {
			if owner := w.ownerOf(s, o, r); owner != nil {
				all |= edge(o.Slot, owner.Slot)
				if r.Blocks {
					blocking |= edge(o.Slot, owner.Slot)
				}
			}
		}
	}
	return all, blocking
}

// dependents returns the slots of the dependents of the owner.
func (e edges) dependents(owner int) []int {
	var slots []int
	for d := range maxSlots {
		if e&edge(d, owner) != 0 {
			slots = append(slots, d)
		}
	}
	return slots
}
