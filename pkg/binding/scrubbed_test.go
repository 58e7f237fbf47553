package binding

import "testing"

// No claim is bound to a volume that a recycler pod scrubs. A claim that is bound already stays
// bound.
func TestNoClaimIsBoundToScrubbedVolume(t *testing.T) {
	waited := 0
	for s := range claimStates {
		if !s.VolumeScrubbed {
			continue
		}
		usable := s
		usable.VolumeScrubbed = false
		want := DecideClaim(usable)
		action := want.Action
		binds := bindsVolume(action) || bindsClaim(action) || want == (ClaimDecision{ConfirmVolume, Binding}) ||
			action == SetVolumePhaseBound || action == ProvisionVolume && s.Volume == BoundToClaim
		if binds && (!s.Completed || s.Volume != BoundToClaim) {
			want = ClaimDecision{Wait, VolumeScrubbed}
			waited++
		}
		if got := DecideClaim(s); got != want {
			t.Errorf("%v in %+v, want %v", got, s, want)
		}
	}
	if waited == 0 {
		t.Error("no claim waits: the test proves nothing")
	}
}

func TestScrubbedVolumeGetsNoPhaseForClaims(t *testing.T) {
	waited := map[VolumeAction]int{}
	for s := range volumeStates {
		if !s.Scrubbed {
			continue
		}
		usable := s
		usable.Scrubbed = false
		want := DecideVolume(usable)
		if want.Action == SetPhaseAvailable || want.Action == SetPhaseBound {
			waited[want.Action]++
			want = VolumeDecision{Leave, RecyclerPodRuns}
		}
		if got := DecideVolume(s); got != want {
			t.Errorf("%v in %+v, want %v", got, s, want)
		}
	}
	if len(waited) != 2 {
		t.Errorf("only %v wait: the test proves nothing", waited)
	}
}
