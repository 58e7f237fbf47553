package provision_test

import (
	"testing"

	. "github.com/exeunt-io/exeunt/pkg/provision"
	"github.com/exeunt-io/exeunt/pkg/storage"
)

// world is a model of one claim, its volume, the journal and a provisioner. The provisioner
// acts by Decide. It can crash at any point, and then remembers only the journal.
type world struct {
	// gone: the claim is deleted; bound: the claim is, or was, bound (Bound or Lost).
	gone, bound bool
	// stored: the storage system has the volume; working: the storage system may still
	// create the volume; data: the volume may have data.
	stored, working, data bool
	// recorded: the PersistentVolume exists; retained: the user deleted the PersistentVolume
	// and keeps the volume.
	recorded, retained bool
	// durable is the entry in the journal; broken: another program led since the entry was
	// written; unresolved: the entry is an unresolved one.
	durable    Entry
	broken     bool
	unresolved bool
	// creation, entry, prepared and unusable are the memory of the provisioner. An entry
	// removed from memory may still be durable.
	creation Creation
	entry    Entry
	prepared bool
	unusable bool
	// older: the claim is older than the process. announced: the entry says that a PersistentVolume may exist; told: the
	// provisioner has written so; published: an earlier process has.
	older, announced, told, published bool
	// otherLed: another program has been the leader.
	otherLed bool
}

func (w world) state() State {
	s := State{Want: Wanted, Creation: w.creation, Entry: w.entry, Unusable: w.unusable, Made: !w.older,
		MayBeKept: w.published, Unannounced: w.creation == Created && !w.told, Journaled: true, Leading: true}
	switch {
	case w.bound && !w.gone:
		s.Want = BoundOrLost
	case w.gone:
		s.Want = Unwanted
	case w.unusable:
		s.Want = Misplaced
	}
	if w.recorded {
		s.Record = storage.RecordPresent
	}
	if w.prepared {
		s.Prepared = Ready
	}
	s.Stored = w.creation == Requested || w.creation == Doubtful || w.creation == FailedOnce
	return s
}

// nextAction returns the next action that is not a read.
func (w world) nextAction() Action {
	s := w.state()
	for {
		switch d := Decide(s); d.Action {
		case ReadClaim:
			s.Read = ClaimRead
		case ReadBoth:
			s.Read = BothRead
		case ReadNode:
			s.NodeRead = true
		default:
			return d.Action
		}
	}
}

// afterCrash returns the world after a crash and a new leader's read of the journal.
func (w world) afterCrash() world {
	w.creation, w.prepared, w.unusable, w.entry = NotRequested, false, false, NoEntry
	w.announced = w.announced && w.durable != NoEntry
	w.older, w.told, w.published = true, w.announced, w.announced
	switch {
	case w.durable != NoEntry && w.broken:
		w.entry = Untrusted
	case w.durable != NoEntry:
		w.entry = Inherited
	}
	return w
}

// afterCall returns the worlds after CreateVolume.
func (w world) afterCall() []world {
	created, lost, late, refused := w, w, w, w
	created.stored, created.working, created.creation = true, false, Created
	lost.stored, lost.working, lost.creation = true, false, Requested // the response was lost
	late.working, late.creation = true, Requested                     // timeout
	unusable := created
	if unusable.unusable = !w.older; w.older { // it is left alone
		unusable.creation, unusable.prepared = After(Uncertain, w.creation, false), false
	}
	all := []world{created, unusable, lost, late}
	if !w.stored && !w.working {
		refused.creation, refused.prepared = After(NoVolume, w.creation, true), false
		all = append(all, refused)
	}
	return all
}

// afterAction returns the worlds after the provisioner's next action.
func (w world) afterAction() []world {
	next := w
	switch w.nextAction() {
	case Prepare, UseStored:
		next.prepared = true
	case WriteEntry:
		next.durable, next.entry, next.broken, next.announced = Durable, Durable, false, w.told
	case WriteDiscarding:
		next.durable, next.entry = Discarding, Discarding
	case Adopt:
		next.creation, next.prepared, next.entry = Requested, true, Adopted(w.entry)
	case Create:
		return w.afterCall()
	case Save:
		next.recorded, next.creation = true, NotRequested
	case AcceptRecord:
		next.creation = NotRequested
	case Discard:
		next.stored, next.data, next.creation, next.unusable = false, false, Failed, false
	case RemoveEntry:
		next.entry, next.creation, next.prepared, next.unusable, next.told = NoEntry, NotRequested, false, false, false
		return []world{next.flushed(), next}
	case MoveToUnresolved:
		next.durable, next.entry, next.creation, next.unresolved = NoEntry, NoEntry, NotRequested, true
		next.announced, next.told = false, false
	case Announce:
		next.announced, next.told = true, true
	case Wait, ReadClaim, ReadBoth, ReadNode, Reschedule:
	}
	if w.entry == NoEntry && next.entry == NoEntry {
		next = next.flushed()
	}
	return []world{next}
}

// flushed returns the world with a durable removal of the entry.
func (w world) flushed() world {
	w.durable, w.broken, w.announced = NoEntry, false, false
	return w
}

// afterUsers returns the worlds after an action of a user, of another controller or of the
// storage system.
func (w world) afterUsers() []world {
	var after []world
	add := func(change func(*world)) {
		next := w
		change(&next)
		after = append(after, next)
	}
	if !w.gone {
		add(func(w *world) { w.gone = true })
	}
	if w.recorded && !w.gone && !w.bound {
		add(func(w *world) { w.bound, w.data = true, true })
	}
	if w.recorded && w.bound && (w.durable == NoEntry || w.broken) {
		// The user sets the policy Retain and deletes the PersistentVolume. Our finalizer keeps
		// the object until the entry is removed, unless another program leads.
		add(func(w *world) { w.recorded, w.retained = false, true })
	}
	if w.recorded && w.bound && w.gone { // the user also removes our finalizer by hand
		add(func(w *world) { w.recorded, w.retained = false, true })
	}
	if w.recorded && w.gone && w.durable == NoEntry { // reclaimed; an entry would prevent the deletion
		add(func(w *world) { w.recorded, w.stored, w.data = false, false, false })
	}
	if w.working {
		add(func(w *world) { w.stored, w.working = true, false })
		add(func(w *world) { w.working = false })
	}
	return after
}

// afterOtherLeader returns the worlds after another program has led.
func (w world) afterOtherLeader() []world {
	if w.otherLed {
		return nil
	}
	idle := w
	idle.otherLed, idle.broken = true, w.durable != NoEntry
	all := []world{idle.afterCrash()}
	if !w.gone && !w.bound && !w.working { // the other program serves the claim, which becomes bound
		served := idle
		served.stored, served.recorded, served.bound, served.data = true, true, true, true
		all = append(all, served.afterCrash())
	}
	return all
}

// successors returns all worlds after one event.
func (w world) successors() []world {
	after := append(w.afterAction(), w.afterCrash())
	for _, next := range w.afterAction() {
		after = append(after, next.afterCrash())
	}
	after = append(after, w.afterUsers()...)
	return append(after, w.afterOtherLeader()...)
}

func reachable() map[world]bool {
	seen := map[world]bool{}
	todo := []world{{}}
	for len(todo) > 0 {
		w := todo[0]
		todo = todo[1:]
		if !seen[w] {
			seen[w] = true
			todo = append(todo, w.successors()...)
		}
	}
	return seen
}

func TestNoVolumeIsForgotten(t *testing.T) {
	worlds := reachable()
	for w := range worlds {
		known := w.recorded || w.retained || w.durable != NoEntry || w.unresolved || w.bound
		if (w.stored || w.working) && !known {
			t.Errorf("forgotten: %+v", w)
		}
	}
	t.Logf("%d worlds", len(worlds))
}

func TestVolumeWithDataIsNeverDiscarded(t *testing.T) {
	discarded := 0
	for w := range reachable() {
		if w.nextAction() != Discard {
			continue
		}
		if discarded++; w.data || w.recorded || w.durable != Discarding {
			t.Errorf("discarded: %+v", w)
		}
	}
	if discarded == 0 {
		t.Error("no volume is discarded")
	}
}

// A PersistentVolume with the policy Delete would destroy a volume that the user keeps.
func TestRetainedVolumeIsNotRecordedAgain(t *testing.T) {
	kept := 0
	for w := range reachable() {
		if !w.retained {
			continue
		}
		kept++
		if w.nextAction() == Adopt {
			w = w.afterAction()[0]
		}
		if next := w.nextAction(); next == Create || next == Save {
			t.Errorf("%v: %+v", next, w)
		}
	}
	if kept == 0 {
		t.Error("no world has a retained volume")
	}
}

func TestOnlyUnresolvedEntriesRemain(t *testing.T) {
	for w := range reachable() {
		for range 30 {
			w = w.afterAction()[0] // the first result of a call is a volume
		}
		switch {
		case w.durable != NoEntry:
			t.Errorf("an entry remains: %+v", w)
		case !w.gone && !w.bound && !w.recorded:
			t.Errorf("not served: %+v", w)
		}
	}
}

// This test shows that the model can lose a volume: the tests above can fail.
func TestVolumeWithoutEntryIsForgotten(t *testing.T) {
	w := world{prepared: true, entry: Durable} // in memory only
	w = w.afterCall()[1].afterCrash()
	w.gone = true
	if next := w.afterAction()[0]; next.recorded || !next.stored || next.durable != NoEntry {
		t.Errorf("want a forgotten volume, got %+v", next)
	}
}
