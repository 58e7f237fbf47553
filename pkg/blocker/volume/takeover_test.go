package volume

import (
	"iter"
	"testing"

	"github.com/exeunt-io/exeunt/pkg/blocker"
)

// unclaimedStates returns every state.
func unclaimedStates() iter.Seq[UnclaimedState] {
	return func(yield func(UnclaimedState) bool) {
		for controller := range controllers() {
			for server := ServerUnseen; server <= ServerGone; server++ {
				for feature := FeatureUnknown; feature <= FeatureOffMaybe; feature++ {
					if !yield(UnclaimedState{Server: server, Feature: feature, Provisioner: controller}) {
						return
					}
				}
			}
		}
	}
}

func TestUnclaimedIsStuckOnlyWithEvidence(t *testing.T) {
	for s := range unclaimedStates() {
		got := RemoveUnclaimed(s)
		keeps := s.Server == ServerOther && s.Feature == FeatureOn
		if got.Verdict == blocker.Stuck && !keeps && !isProven(s.Provisioner) {
			t.Fatalf("RemoveUnclaimed(%+v) = %v without evidence", s, got)
		}
		if got.Verdict == blocker.Waiting && s.Server != ServerOurs {
			t.Fatalf("RemoveUnclaimed(%+v) = %v, but csi-provisioner may serve", s, got)
		}
	}
}

func TestUnseenFactsNeverMakeUnclaimedStuck(t *testing.T) {
	for s := range unclaimedStates() {
		got := RemoveUnclaimed(s)
		if got.Verdict == blocker.Stuck {
			continue
		}
		noServer, noFeature := s, s
		noServer.Server, noFeature.Feature = ServerUnseen, FeatureUnknown
		less := []UnclaimedState{noServer, noFeature}
		for _, controller := range blinded(s.Provisioner) {
			less = append(less, UnclaimedState{Server: s.Server, Feature: s.Feature, Provisioner: controller})
		}
		for _, other := range less {
			if lesser := RemoveUnclaimed(other); lesser.Verdict == blocker.Stuck {
				t.Fatalf("RemoveUnclaimed(%+v) = %v, but RemoveUnclaimed(%+v) = %v", other, lesser, s, got)
			}
		}
	}
}

func TestRemoveUnclaimed(t *testing.T) {
	alive := blocker.ControllerState{Workload: blocker.WorkloadReady, Lease: blocker.LeaseHeld}
	gone := blocker.ControllerState{Workload: blocker.WorkloadStopped, Lease: blocker.LeaseExpiredTwice}
	for name, tc := range map[string]struct {
		state UnclaimedState
		want  Judgment
	}{
		"ours":                          {UnclaimedState{ServerOurs, FeatureOn, alive}, Judgment{blocker.ControllerActs, blocker.Waiting}},
		"csi-provisioner":               {UnclaimedState{ServerOther, FeatureOn, alive}, Judgment{blocker.PhaseNotReclaimed, blocker.Stuck}},
		"csi-provisioner, gate off":     {UnclaimedState{ServerOther, FeatureOff, alive}, Judgment{blocker.PhaseNotReclaimed, blocker.Unknown}},
		"csi-provisioner by digest":     {UnclaimedState{ServerOther, FeatureUnknown, alive}, Judgment{blocker.PhaseNotReclaimed, blocker.Unknown}},
		"alive, nothing tells which":    {UnclaimedState{ServerUnseen, FeatureUnknown, alive}, Judgment{blocker.PhaseNotReclaimed, blocker.Unknown}},
		"no provisioner was seen":       {UnclaimedState{}, Judgment{blocker.ControllerUnseen, blocker.Unknown}},
		"the provisioner is gone":       {UnclaimedState{ServerGone, FeatureOn, gone}, Judgment{blocker.ControllerGone, blocker.Stuck}},
		"ours, and its pods are unseen": {UnclaimedState{ServerOurs, FeatureOn, blocker.ControllerState{}}, Judgment{blocker.ControllerUnseen, blocker.Unknown}},
	} {
		t.Run(name, func(t *testing.T) {
			if got := RemoveUnclaimed(tc.state); got != tc.want {
				t.Errorf("RemoveUnclaimed(%+v) = %v, want %v", tc.state, got, tc.want)
			}
		})
	}
}
