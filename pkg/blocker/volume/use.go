package volume

import "github.com/exeunt-io/exeunt/pkg/blocker"

// UseState is the observed state of the users that keep a finalizer on an object.
type UseState struct {
	// Used: an object uses this one.
	Used Fact
	// Error: a user reports an error now: its own end will not come.
	Error Fact
	// Users: the program that the users wait for. Free users, such as pods, wait for none:
	// see Standing.
	Users blocker.ControllerState
	// Standing: the users exist until somebody deletes them; no program ends the use.
	Standing bool
	// Remover is the controller that removes the finalizer.
	Remover blocker.ControllerState
}

// InUse returns why a finalizer stays that protects an object in use. used is the reason
// while the object is used.
func InUse(s UseState, used blocker.Reason) Judgment {
	reason, verdict := blocker.JudgeController(s.Remover)
	switch {
	case s.Used == Yes && s.Standing:
		return Judgment{used, blocker.Waiting}
	case reason == blocker.ControllerGone && s.Used != Unseen:
		return Judgment{reason, verdict}
	case s.Used == No:
		return Judgment{reason, verdict}
	case s.Used == Unseen:
		return Judgment{used, blocker.Unknown}
	case s.Error == Yes:
		return Judgment{blocker.ControllerFails, blocker.Stuck}
	case isGone(s.Users):
		return Judgment{blocker.ControllerGone, blocker.Stuck}
	}
	return Judgment{used, usersVerdict(s)}
}

// usersVerdict returns Waiting if a program was seen alive that ends the use.
func usersVerdict(s UseState) blocker.Verdict {
	if s.Error != Unseen && (verdictOf(s.Users) == blocker.Waiting || verdictOf(s.Remover) == blocker.Waiting) {
		return blocker.Waiting
	}
	return blocker.Unknown
}
