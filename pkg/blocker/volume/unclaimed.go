package volume

import "github.com/exeunt-io/exeunt/pkg/blocker"

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
