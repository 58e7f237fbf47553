package provision_test

import (
	"testing"

	. "github.com/exeunt-io/exeunt/pkg/provision"
)

// world is one claim, its volume, and a provisioner that decides by Decide, dies
// at any point and forgets everything then.
type world struct {
	// gone, deleting, held, bound: the claim.
	gone, deleting, held, bound bool
	// stored: the storage system has the volume; working: it may make it later.
	stored, working bool
	// recorded: the PersistentVolume exists.
	recorded bool
	// asked and prepared are the memory of the provisioner.
	asked    Asked
	prepared bool
	// lied: the driver has once said of a volume that it was not made, though it was;
	// not of the very last one, for an answer is all that anybody can go by.
	lied bool
}

func (w world) state() State {
	s := State{Holds: true, Held: w.held, Want: Wanted, Asked: w.asked}
	if w.deleting || w.bound || w.gone {
		s.Want = Unwanted
	}
	if w.recorded {
		s.Known = Recorded
	}
	if w.prepared {
		s.Prepared = Ready
	}
	return s
}

// decided is the next step, with live reads taken for granted: they change nothing
// in the world.
func (w world) decided() Action {
	s := w.state()
	for {
		switch d := Decide(s); d.Action {
		case ReadClaim:
			s.Read = ClaimRead
		case ReadBoth:
			s.Read = BothRead
		default:
			return d.Action
		}
	}
}

// crash forgets what was not written.
func (w world) crash() world {
	w.asked, w.prepared = Never, false
	if w.held {
		w.asked = Perhaps
	}
	return w
}

// finished is a claim without its last finalizer.
func (w world) finished() world {
	w.gone = w.deleting && !w.held
	return w
}

// answers are the worlds after CreateVolume.
func (w world) answers() []world {
	made, late, refused, lost := w, w, w, w
	made.stored, made.working, made.asked = true, false, Made
	lost.stored, lost.working, lost.asked = true, false, Pending // it was done, and the answer got lost
	late.working, late.asked = true, Pending                     // it timed out
	all := []world{made, lost, late}
	if w.stored {
		return all
	}
	refused.working, refused.asked, refused.prepared = false, After(Final, w.state().Want, w.asked), false
	all = append(all, refused)
	if !w.lied && w.asked != Denied {
		lie := refused
		lie.stored, lie.lied = true, true
		all = append(all, lie)
	}
	return all
}

// steps are the worlds after the provisioner's next step.
func (w world) steps() []world {
	next := w
	switch w.decided() {
	case Prepare:
		next.prepared = true
	case Hold:
		next.held = true
	case Ask:
		return w.answers()
	case Save:
		next.recorded, next.asked = true, Never
	case Discard:
		next.stored, next.asked = false, Settled
	case LetGo:
		next.held = false
		return []world{next.finished()}
	case Wait, ReadClaim, ReadBoth, Reschedule:
	}
	return []world{next}
}

// all are the worlds that can follow.
func (w world) all() []world {
	after := append(w.steps(), w.crash())
	for _, next := range w.steps() {
		after = append(after, next.crash())
	}
	if !w.deleting {
		deleted := w
		deleted.deleting = true
		after = append(after, deleted.finished())
	}
	if w.working {
		done := w
		done.stored, done.working = true, false
		failed := w
		failed.working = false
		after = append(after, done, failed)
	}
	if w.recorded && !w.bound { // by our binder, which lets go in the same write, or by upstream's
		bound := w
		bound.bound = true
		after = append(after, bound)
		bound.held = false
		after = append(after, bound.finished())
	}
	return after
}

func reachable() map[world]bool {
	seen := map[world]bool{}
	todo := []world{{}, {held: true}} // the hold may have come with the request
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

func TestNoVolumeIsForgottenWhateverDiesWhen(t *testing.T) {
	worlds := reachable()
	for w := range worlds {
		if w.gone && (w.stored || w.working) && !w.recorded {
			t.Errorf("forgotten: %+v", w)
		}
	}
	t.Logf("%d worlds", len(worlds))
}

// The end is a recorded volume, or none, once the driver answers truly.
func TestEveryClaimComesToAnEndOnceTheDriverAnswers(t *testing.T) {
	for w := range reachable() {
		for range 20 {
			w = w.steps()[0] // the first answer is a volume
		}
		switch {
		case w.deleting && !w.gone:
			t.Errorf("stuck: %+v", w)
		case !w.deleting && !w.recorded:
			t.Errorf("not served: %+v", w)
		}
	}
}

// A claim that is let go by force is lost knowingly; without that, the test above
// would pass for a Decide that never asks twice.
func TestWithoutTheHoldAVolumeIsForgotten(t *testing.T) {
	w := world{}
	w.prepared, w.held = true, true
	w = w.answers()[1].crash()
	w.held, w.deleting = false, true
	if w = w.finished(); !w.gone || !w.stored || w.recorded {
		t.Errorf("want a volume that nobody knows, got %+v", w)
	}
}
