package volume

import (
	"slices"

	"github.com/exeunt-io/exeunt/internal/enum"
	"github.com/exeunt-io/exeunt/pkg/blocker"
)

// Server is who provisions for a driver: the provisioner of Exeunt honors annotations and
// finalizers that upstream's does not know.
type Server int

const (
	// ServerUnseen: who provisions for the driver is not visible.
	ServerUnseen Server = iota
	// ServerOurs: the provisioner of Exeunt leads.
	ServerOurs
	// ServerOther: another program leads, and no provisioner of Exeunt runs.
	ServerOther
	// ServerGone: the provisioner is proven gone.
	ServerGone
)

// String returns the name of the value.
func (s Server) String() string { return enum.Name(s, "unseen", "ours", "other", "gone") }

// ServerOf returns who provisions for a driver. leader is the holder of the leader Lease
// while it is held; programs are the containers that run a provisioner of the driver.
func ServerOf(controller blocker.ControllerState, leader Leader, programs []Program) Server {
	ours := slices.ContainsFunc(programs, Program.IsOurs)
	upstream := slices.ContainsFunc(programs, Program.IsUpstream)
	ready := controller.Workload == blocker.WorkloadReady && !controller.IsIdle()
	switch {
	case isGone(controller):
		return ServerGone
	case leader == LeaderOurs, leader == LeaderUnseen && ours && ready:
		return ServerOurs
	case ours, controller.Workload == blocker.WorkloadUnseen, controller.Lease == blocker.LeaseUnseen:
		return ServerUnseen // ours may stand by, or lead elsewhere
	case leader == LeaderOther, upstream && ready:
		return ServerOther
	}
	return ServerUnseen
}

// Leader is who holds the leader Lease of a provisioner.
type Leader int

const (
	// LeaderUnseen: no held Lease was seen.
	LeaderUnseen Leader = iota
	// LeaderOurs: the identity is one of Exeunt's.
	LeaderOurs
	// LeaderOther: the identity is another program's.
	LeaderOther
)

// String returns the name of the value.
func (l Leader) String() string { return enum.Name(l, "unseen", "ours", "other") }

// Late returns whether the disk of a volume stays behind that was deleted before it got the
// provisioner's finalizer, and whose claim exists. The verdict is None if the provisioner of
// Exeunt leads: it marks the volume, and deletes the disk once the claim is gone.
func Late(s Server) Judgment {
	switch s {
	case ServerOurs:
		return Judgment{blocker.TooLateToProtect, blocker.None}
	case ServerOther, ServerGone:
		return Judgment{blocker.TooLateToProtect, blocker.Stuck}
	case ServerUnseen:
	}
	return Judgment{blocker.TooLateToProtect, blocker.Unknown}
}

// Takeover returns why the disk stays of a volume that the provisioner of Exeunt has marked, and
// that no other provisioner deletes.
func Takeover(s Server) Judgment {
	switch s {
	case ServerOurs:
		return Judgment{blocker.ControllerActs, blocker.Waiting}
	case ServerOther, ServerGone:
		return Judgment{blocker.TooLateToProtect, blocker.Stuck}
	case ServerUnseen:
	}
	return Judgment{blocker.ControllerUnseen, blocker.Unknown}
}

// UnclaimedState is the observed state of a volume in the stage [Unclaimed] that has the
// provisioner's finalizer. There is nothing to reclaim: the provisioner of Exeunt removes the
// finalizer, csi-provisioner removes it only if the policy keeps the disk, or its gate is off.
type UnclaimedState struct {
	Server  Server
	Feature Feature
	// Provisioner is the program that removes the finalizer.
	Provisioner blocker.ControllerState
}

// RemoveUnclaimed returns why the provisioner's finalizer stays.
func RemoveUnclaimed(s UnclaimedState) Judgment {
	reason, verdict := blocker.JudgeController(s.Provisioner)
	switch {
	case verdict == blocker.Stuck || s.Server == ServerOurs:
		return Judgment{reason, verdict}
	case s.Server == ServerOther && s.Feature == FeatureOn:
		return Judgment{blocker.PhaseNotReclaimed, blocker.Stuck}
	case reason == blocker.ControllerUnseen && s.Server != ServerOther:
		return Judgment{reason, verdict}
	}
	return Judgment{blocker.PhaseNotReclaimed, blocker.Unknown}
}
