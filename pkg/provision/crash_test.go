package provision_test

import (
	"testing"

	. "github.com/exeunt-io/exeunt/pkg/provision"
	"github.com/exeunt-io/exeunt/pkg/storage"
)

// world is one claim, its volume, the journal, and a provisioner that decides by
// Decide, ends at any point and forgets everything but the journal then.
type world struct {
	// gone, bound: the claim. Bound stays true when the PersistentVolume vanishes (Lost).
	gone, bound bool
	// stored: the storage system has the volume; working: it may create it later; data:
	// somebody may have written to it.
	stored, working, data bool
	// recorded: the PersistentVolume exists; retained: its user keeps the volume.
	recorded, retained bool
	// durable is the entry in the journal, broken its custody; apart: an administrator
	// has the entry.
	durable Entry
	broken  bool
	apart   bool
	// creation, entry, prepared, unusable are the memory of the provisioner. It may have
	// removed an entry that is durable still.
	creation Creation
	entry    Entry
	prepared bool
	unusable bool
	// foreign: another program has led already.
	foreign bool
}

func (w world) state() State {
	s := State{Want: Wanted, Creation: w.creation, Entry: w.entry, Unusable: w.unusable, Journaled: true, Leading: true}
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

// decided is the next step. Live reads change nothing in the world.
func (w world) decided() Action {
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

// crash forgets what is not in the journal. The next leader reads that.
func (w world) crash() world {
	w.creation, w.prepared, w.unusable, w.entry = NotRequested, false, false, NoEntry
	switch {
	case w.durable == Durable && w.broken:
		w.entry = Untrusted
	case w.durable == Durable:
		w.entry = Inherited
	case w.durable == Discarding && w.broken:
		w.entry = UntrustedDiscarding
	case w.durable == Discarding:
		w.entry = InheritedDiscarding
	}
	return w
}

// answers are the worlds after CreateVolume.
func (w world) answers() []world {
	created, lost, late, refused := w, w, w, w
	created.stored, created.working, created.creation = true, false, Created
	lost.stored, lost.working, lost.creation = true, false, Requested // it was done, and the answer got lost
	late.working, late.creation = true, Requested                     // it timed out
	unusable := created
	unusable.unusable = true
	all := []world{created, unusable, lost, late}
	if !w.stored && !w.working {
		refused.creation, refused.prepared = After(NoVolume, w.creation, true), false
		all = append(all, refused)
	}
	return all
}

// steps are the worlds after the provisioner's next step.
func (w world) steps() []world {
	next := w
	switch w.decided() {
	case Prepare, UseStored:
		next.prepared = true
	case WriteEntry:
		next.durable, next.entry, next.broken = Durable, Durable, false
	case WriteDiscarding:
		next.durable, next.entry = Discarding, Discarding
	case Adopt:
		next.creation, next.prepared = Requested, true
		next.entry = map[Entry]Entry{Inherited: Durable, Untrusted: Outdated, InheritedDiscarding: Discarding}[w.entry]
		if next.entry == Discarding {
			next.creation, next.unusable = Created, true
		}
	case Create:
		return w.answers()
	case Save:
		next.recorded, next.creation = true, NotRequested
	case AcceptRecord:
		next.creation = NotRequested
	case Discard:
		next.stored, next.data, next.creation, next.unusable = false, false, Failed, false
	case RemoveEntry:
		next.entry, next.creation, next.prepared, next.unusable = NoEntry, NotRequested, false, false
		return []world{next.flushed(), next}
	case MoveToUnresolved:
		next.durable, next.entry, next.creation, next.apart = NoEntry, NoEntry, NotRequested, true
	case Wait, ReadClaim, ReadBoth, ReadNode, Reschedule, RemoveOldFinalizer:
	}
	if w.entry == NoEntry && next.entry == NoEntry {
		next = next.flushed()
	}
	return []world{next}
}

// flushed is the world in which the removal of the entry is durable.
func (w world) flushed() world {
	w.durable, w.broken = NoEntry, false
	return w
}

// users are the worlds after somebody else's step.
func (w world) users() []world {
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
		// Set to Retain, and the object deleted. Its finalizer stays until the entry is removed,
		// unless another program leads.
		add(func(w *world) { w.recorded, w.retained = false, true })
	}
	if w.recorded && w.gone && w.durable == NoEntry { // reclaimed: nothing is deleted while there is an entry
		add(func(w *world) { w.recorded, w.stored, w.data = false, false, false })
	}
	if w.working {
		add(func(w *world) { w.stored, w.working = true, false })
		add(func(w *world) { w.working = false })
	}
	return after
}

// others are the worlds after another program has led for a while, and ended.
func (w world) others() []world {
	if w.foreign {
		return nil
	}
	idle := w
	idle.foreign, idle.broken = true, w.durable != NoEntry
	all := []world{idle.crash()}
	if !w.gone && !w.bound && !w.working { // it serves the claim, which is bound
		served := idle
		served.stored, served.recorded, served.bound, served.data = true, true, true, true
		all = append(all, served.crash())
	}
	return all
}

func (w world) all() []world {
	after := append(w.steps(), w.crash())
	for _, next := range w.steps() {
		after = append(after, next.crash())
	}
	after = append(after, w.users()...)
	return append(after, w.others()...)
}

func reachable() map[world]bool {
	seen := map[world]bool{}
	todo := []world{{}}
	for len(todo) > 0 {
		w := todo[0]
		todo = todo[1:]
		if !seen[w] {
			seen[w] = true
			todo = append(todo, w.all()...)
		}
	}
	return seen
}

func TestNoVolumeIsForgotten(t *testing.T) {
	worlds := reachable()
	for w := range worlds {
		known := w.recorded || w.retained || w.durable != NoEntry || w.apart || w.bound
		if (w.stored || w.working) && !known {
			t.Errorf("forgotten: %+v", w)
		}
	}
	t.Logf("%d worlds", len(worlds))
}

func TestVolumeWithDataIsNeverDiscarded(t *testing.T) {
	discarded := 0
	for w := range reachable() {
		if w.decided() != Discard {
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

// A volume that its user keeps must not get a PersistentVolume with the policy Delete.
func TestRetainedVolumeIsNotRecordedAgain(t *testing.T) {
	kept := 0
	for w := range reachable() {
		if !w.retained {
			continue
		}
		kept++
		if next := w.decided(); next == Adopt || next == Create || next == Save {
			t.Errorf("%v: %+v", next, w)
		}
	}
	if kept == 0 {
		t.Error("no user keeps a volume")
	}
}

func TestOnlyUnresolvedEntriesRemain(t *testing.T) {
	for w := range reachable() {
		for range 30 {
			w = w.steps()[0] // the first answer is a volume
		}
		switch {
		case w.durable != NoEntry:
			t.Errorf("an entry remains: %+v", w)
		case !w.gone && !w.bound && !w.recorded:
			t.Errorf("not served: %+v", w)
		}
	}
}

// Without the entry the same world forgets: the tests above can fail.
func TestVolumeWithoutEntryIsForgotten(t *testing.T) {
	w := world{prepared: true, entry: Durable} // remembered, and not durable
	w = w.answers()[1].crash()
	w.gone = true
	if next := w.steps()[0]; next.recorded || !next.stored || next.durable != NoEntry {
		t.Errorf("want a volume that nobody knows, got %+v", next)
	}
}
