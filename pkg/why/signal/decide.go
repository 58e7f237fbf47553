package signal

import (
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/exeunt-io/exeunt/internal/enum"
	"github.com/exeunt-io/exeunt/pkg/alive"
	"github.com/exeunt-io/exeunt/pkg/blocker"
	"github.com/exeunt-io/exeunt/pkg/teardown"
)

// State is what Alive and its runner say.
type State struct {
	// Deleted: the deletion of Alive was requested.
	Deleted   bool
	Protected bool
	Word      teardown.Word
	// Undefined: the CRD of Alive is being deleted, which deletes Alive although nobody requested a teardown.
	Undefined bool
	// Reported: the status says that the teardown is stopped, for a reason that the spec does not show.
	Reported bool
	// Runner and Verdict judge the runner.
	Runner  blocker.Reason
	Verdict blocker.Verdict
}

// permitted reports whether a person's permission holds.
func (s State) permitted() bool { return !s.Undefined && !s.Protected && s.Word == teardown.ValidWord }

// Decide returns what Alive waits for, and whether it will come.
func Decide(s State) (blocker.Reason, blocker.Verdict) {
	switch {
	case !s.Deleted && !s.permitted():
		return blocker.ClusterProtected, blocker.None
	case !s.Deleted:
		return blocker.TeardownArmed, blocker.None
	case !s.permitted(), s.Reported:
		return blocker.TeardownStopped, blocker.Stuck
	case s.Runner == blocker.ControllerActs:
		return blocker.TeardownRuns, s.Verdict
	}
	return s.Runner, s.Verdict
}

// Program is what runs in the namespace of a participant.
type Program int

const (
	// ProgramUnseen: nothing shows whether the participant runs.
	ProgramUnseen Program = iota
	// ProgramGone: the namespace is gone, or its workloads are switched off.
	ProgramGone
	// ProgramFails: the participant reports an error now.
	ProgramFails
	// ProgramRuns: all workloads of the namespace are ready.
	ProgramRuns
)

// String returns the name of the value.
func (p Program) String() string {
	return enum.Name(p, "ProgramUnseen", "ProgramGone", "ProgramFails", "ProgramRuns")
}

// ParticipantState is what is known of a participant that has not removed its finalizer.
type ParticipantState struct {
	// MayAct: it may clean up now. Permitted: it may once the teardown has started.
	MayAct, Permitted bool
	Program           Program
}

// DecideParticipant returns why the finalizer of a participant is still there, and whether it will go.
func DecideParticipant(s ParticipantState) (blocker.Reason, blocker.Verdict) {
	switch {
	case !s.MayAct && !s.Permitted:
		return blocker.TeardownStopped, blocker.Stuck
	case !s.MayAct:
		return blocker.TeardownRuns, blocker.Waiting
	case s.Program == ProgramFails:
		return blocker.ControllerFails, blocker.Stuck
	case s.Program == ProgramGone:
		return blocker.ControllerGone, blocker.Stuck
	case s.Program == ProgramRuns:
		return blocker.ControllerActs, blocker.Waiting
	}
	return blocker.ControllerUnseen, blocker.Unknown
}

// wordOf returns what the spec says of a person's permission. Without the right to read namespace kube-system its ID is
// "": admission has compared it when spec.confirm was written.
func wordOf(object *alive.Alive, id types.UID, now time.Time) teardown.Word {
	spec := object.Spec
	switch {
	case spec.Confirm == "", spec.ConfirmedAt.IsZero(), spec.ConfirmedAt.After(now.Add(alive.MaxAhead)):
		return teardown.NoWord
	case id != "" && spec.Confirm != id:
		return teardown.OtherWord
	case object.TimeLeft(now) == 0:
		return teardown.ExpiredWord
	}
	return teardown.ValidWord
}
