package plugin_test

import (
	"testing"

	. "github.com/exeunt-io/exeunt/pkg/reclaim/plugin"
)

// Nothing is deleted or created in the storage system before the backoff has ended.
func TestStorageIsChangedOnlyByAttempts(t *testing.T) {
	for s := range states {
		decision := Decide(s)
		changes := decision.Action == DeleteVolume || decision.Action == CreateRecycler
		if changes && !decision.Action.StartsAttempt() {
			t.Errorf("%v for %+v is no attempt", decision, s)
		}
		if decision.Reason.NeedsRequeue() && decision.Action != Wait {
			t.Errorf("%v for %+v does not wait", decision, s)
		}
	}
}

func TestStartsAttempt(t *testing.T) {
	attempts := map[Action]bool{Confirm: true, DeleteVolume: true, CreateRecycler: true}
	for action := Wait; action <= ClearClaimRef; action++ {
		if got := action.StartsAttempt(); got != attempts[action] {
			t.Errorf("%v.StartsAttempt() = %v, want %v", action, got, attempts[action])
		}
	}
}

func TestWaitForOtherObjectNeedsRequeue(t *testing.T) {
	for reason, want := range map[Reason]bool{
		HandleShared: true, VolumeUsed: true, RecyclerPodUnfinished: true,
		StillClaimed: false, PolicyKeepsData: false, AlreadyReclaimed: false, ReclaimedByOther: false,
	} {
		if got := reason.NeedsRequeue(); got != want {
			t.Errorf("%s.NeedsRequeue() = %v, want %v", reason, got, want)
		}
	}
}
