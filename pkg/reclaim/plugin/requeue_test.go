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
