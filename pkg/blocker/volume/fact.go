package volume

import (
	"github.com/exeunt-io/exeunt/internal/enum"
	"github.com/exeunt-io/exeunt/pkg/blocker"
)

// Fact is a fact about the cluster with three values.
type Fact int

const (
	// Unseen: the fact could not be read. It counts neither as No nor as Yes.
	Unseen Fact = iota
	// No: the fact was read, and does not hold.
	No
	// Yes: the fact was read, and holds.
	Yes
)

// String returns the name of the value.
func (f Fact) String() string { return enum.Name(f, "unseen", "no", "yes") }

// FactOf returns No or Yes, or Unseen if the fact was not seen. A fact that holds in the
// part that was seen holds.
func FactOf(holds, seen bool) Fact {
	switch {
	case holds:
		return Yes
	case seen:
		return No
	}
	return Unseen
}

// Judgment is why a deletion waits, and whether the wait will end.
type Judgment struct {
	Reason  blocker.Reason
	Verdict blocker.Verdict
}

// verdictOf returns Waiting, Stuck or Unknown as the controller will act, cannot or may.
func verdictOf(controller blocker.ControllerState) blocker.Verdict {
	_, verdict := blocker.JudgeController(controller)
	return verdict
}

// isGone reports whether the controller is proven gone.
func isGone(controller blocker.ControllerState) bool {
	reason, _ := blocker.JudgeController(controller)
	return reason == blocker.ControllerGone
}
