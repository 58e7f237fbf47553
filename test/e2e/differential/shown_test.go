package differential

import (
	"strings"
	"testing"
)

// Events and phase changes that both sides must have shown for the same object in the same
// scenario.
var promised = []string{
	"claim event Normal FailedBinding",
	"claim event Warning FailedBinding",
	"claim event Warning VolumeMismatch",
	"claim event Warning ClaimLost",
	"claim event Warning ClaimMisbound",
	"claim event Normal WaitForFirstConsumer",
	"claim event Normal WaitForPodScheduled",
	"claim event Normal ExternalProvisioning",
	"claim event Warning ProvisioningFailed",
	"claim event Normal ProvisioningSucceeded",
	"volume event Warning VolumeMismatch",
	"volume event Warning VolumeFailedDelete",
	"volume event Warning VolumeFailedRecycle",
	"volume event Normal VolumeRecycled",
	"claim from Pending to Bound",
	"claim from Pending to Lost",
	"claim from Bound to Lost",
	"claim from Lost to Bound",
	"volume from Pending to Available",
	"volume from Pending to Bound",
	"volume from Pending to Released",
	"volume from Available to Bound",
	"volume from Bound to Released",
	"volume from Released to Available",
	"volume from Released to Failed",
	"volume from Failed to Available",
}

// It runs after the scenarios.
func TestBothSidesShowEveryReasonAndPhase(t *testing.T) {
	for _, what := range promised {
		t.Run(what, func(t *testing.T) {
			if !results.shown[what] {
				t.Error("no scenario shows this on both sides")
			}
		})
	}
}

// show records the events and phases that both sides have shown for the same object.
func (t *tally) show(ours, upstream outcome) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for what, value := range ours {
		if upstream[what] != value {
			continue
		}
		kind, _, _ := strings.Cut(what, " ")
		if _, event, found := strings.Cut(what, " words of "); found {
			for _, words := range strings.Split(value, wordsSeparator) {
				t.shown[kind+" "+event+": "+words] = true
			}
			continue
		}
		if _, event, found := strings.Cut(what, " event "); found {
			t.shown[kind+" event "+event] = true
		}
		if strings.HasSuffix(what, " phases") {
			phases := strings.Split(value, ", ")
			for i := range phases[1:] {
				t.shown[kind+" from "+phases[i]+" to "+phases[i+1]] = true
			}
		}
	}
}
