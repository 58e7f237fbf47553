package demo

import (
	"strings"
	"testing"
)

// Expected outcomes.
var (
	reclaimed = Outcome{Gate: true, Volume: "vol-1", Left: []string{}}
	leaked    = Outcome{Gate: false, Volume: "vol-1", Left: []string{"vol-1"}}
)

func TestOutcomeFollowsFromTheVolumesLeft(t *testing.T) {
	for name, tc := range map[string]struct {
		outcome Outcome
		good    bool
		verdict string
	}{
		"with the gate on nothing is left": {
			reclaimed, true, "HonorPVReclaimPolicy=true: 0 volumes left in the storage system",
		},
		"with the gate on a volume is left": {
			Outcome{Gate: true, Volume: "vol-1", Left: []string{"vol-1"}}, false,
			`HonorPVReclaimPolicy=true: 1 volume left in the storage system ["vol-1"], expected []`,
		},
		"with the gate off the volume leaks": {
			leaked, true, "HonorPVReclaimPolicy=false: 1 volume left behind in the storage system (vol-1): this is the leak",
		},
		"with the gate off nothing leaks": {
			Outcome{Volume: "vol-1"}, false,
			`HonorPVReclaimPolicy=false: 0 volumes left in the storage system [], expected ["vol-1"]`,
		},
		"with the gate off another volume is left": {
			Outcome{Volume: "vol-1", Left: []string{"vol-2"}}, false,
			`HonorPVReclaimPolicy=false: 1 volume left in the storage system ["vol-2"], expected ["vol-1"]`,
		},
		"with the gate off both are left": {
			Outcome{Volume: "vol-1", Left: []string{"vol-1", "vol-2"}}, false,
			`HonorPVReclaimPolicy=false: 2 volumes left in the storage system ["vol-1" "vol-2"], expected ["vol-1"]`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			if got := tc.outcome.AsExpected(); got != tc.good {
				t.Errorf("as expected: %v, want %v", got, tc.good)
			}
			if got := tc.outcome.Verdict(); got != tc.verdict {
				t.Errorf("verdict:\n%s\nwant:\n%s", got, tc.verdict)
			}
			if explained := tc.outcome.Why() != ""; explained != tc.good {
				t.Errorf("explained: %v, want %v", explained, tc.good)
			}
		})
	}
}

func TestErrorNamesUnexpectedRunsOnly(t *testing.T) {
	if err := unexpected([]Outcome{reclaimed, leaked}); err != nil {
		t.Errorf("unexpected = %v for expected outcomes", err)
	}
	err := unexpected([]Outcome{reclaimed, {Gate: false, Volume: "vol-1"}})
	if err == nil || !strings.Contains(err.Error(), "HonorPVReclaimPolicy=false") ||
		strings.Contains(err.Error(), "=true") {
		t.Errorf("unexpected = %v, want the second run only", err)
	}
}
