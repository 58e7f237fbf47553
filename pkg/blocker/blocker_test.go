package blocker_test

import (
	"encoding/json"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/exeunt-io/exeunt/pkg/blocker"
	"github.com/exeunt-io/exeunt/test/enumtest"
)

func TestNames(t *testing.T) {
	enumtest.ExpectNames(t, blocker.Gone, blocker.Stuck)
	enumtest.ExpectNames(t, blocker.WorkloadUnseen, blocker.WorkloadReady)
	enumtest.ExpectNames(t, blocker.LeaseUnseen, blocker.LeaseExpiredTwice)
	enumtest.ExpectNames(t, blocker.ClaimExists, blocker.Recreated)
}

func TestEveryReasonHasCompleteRow(t *testing.T) {
	for _, reason := range blocker.Reasons() {
		if row := reason.Describe(); row.Name == "" || row.Meaning == "" || row.Look == "" || row.Force == "" {
			t.Errorf("the row of reason %d is incomplete: %+v", int(reason), row)
		}
	}
	if last := blocker.Reasons()[len(blocker.Reasons())-1]; last != blocker.Recreated {
		t.Errorf("the last row is %v, want Recreated", last)
	}
}

func TestReportSurvivesJSON(t *testing.T) {
	report := blocker.Report{
		Object: blocker.Object{Kind: "PersistentVolume", Name: "pv", UID: "u"}, Verdict: blocker.Stuck,
		Blockers: []blocker.Blocker{{Reason: blocker.DriverRefuses, Verdict: blocker.Stuck}},
	}.Normalized()
	text, err := json.Marshal(report)
	if err != nil {
		t.Fatal(err)
	}
	var read blocker.Report
	if err := json.Unmarshal(text, &read); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(report, read); diff != "" {
		t.Errorf("read back, the report differs:\n%s", diff)
	}
	const want = `{"object":{"kind":"PersistentVolume","namespace":"","name":"pv","uid":"u"},"verdict":"stuck","since":"","deadline":null,"blockers":[` +
		`{"object":{"kind":"","namespace":"","name":"","uid":""},"finalizer":"","reason":"DriverRefuses","holder":"","verdict":"stuck",` +
		`"since":"","evidence":[],"next":"","blockers":[]}],"incomplete":[]}`
	if string(text) != want {
		t.Errorf("the report is written as\n%s\nwant\n%s", text, want)
	}
}

func TestWorstVerdictOfTree(t *testing.T) {
	tree := []blocker.Blocker{
		{Verdict: blocker.Waiting, Blockers: []blocker.Blocker{{Verdict: blocker.Waiting}, {Verdict: blocker.Stuck}}},
		{Verdict: blocker.Unknown},
	}
	if got := blocker.Worst(tree); got != blocker.Stuck {
		t.Errorf("Worst() = %v, want stuck", got)
	}
	if got := blocker.Worst(nil); got != blocker.None {
		t.Errorf("Worst(nil) = %v, want none", got)
	}
	var verdicts []blocker.Verdict
	for root := range blocker.Roots(tree) {
		verdicts = append(verdicts, root.Verdict)
	}
	if want := []blocker.Verdict{blocker.Waiting, blocker.Stuck, blocker.Unknown}; !slices.Equal(verdicts, want) {
		t.Errorf("Roots() have the verdicts %v, want %v", verdicts, want)
	}
}

func TestControllerIsStuckOnlyWithEvidence(t *testing.T) {
	for workload := blocker.WorkloadUnseen; workload <= blocker.WorkloadReady; workload++ {
		for lease := blocker.LeaseUnseen; lease <= blocker.LeaseExpiredTwice; lease++ {
			for bits := range 4 {
				state := blocker.ControllerState{Workload: workload, Lease: lease, Uninstalled: bits&1 != 0,
					ReportsError: bits&2 != 0}
				reason, verdict := blocker.JudgeController(state)
				expectEvidence(t, state, reason, verdict)
			}
		}
	}
}

func expectEvidence(t *testing.T, state blocker.ControllerState, reason blocker.Reason, verdict blocker.Verdict) {
	t.Helper()
	noReplica := state.Workload == blocker.WorkloadAbsent || state.Workload == blocker.WorkloadStopped
	noLeader := state.Lease == blocker.LeaseAbsent || state.Lease == blocker.LeaseExpiredTwice
	switch {
	case verdict == blocker.Stuck && reason == blocker.ControllerGone && (!noReplica || !noLeader):
		t.Errorf("%+v is called gone", state)
	case verdict == blocker.Stuck && reason == blocker.ControllerFails && !state.ReportsError &&
		state.Workload != blocker.WorkloadCrashing:
		t.Errorf("%+v is called failing without an error", state)
	case verdict == blocker.Waiting && state.Workload != blocker.WorkloadReady &&
		state.Workload != blocker.WorkloadStarting && state.Lease != blocker.LeaseHeld:
		t.Errorf("%+v is called waiting, and nothing was seen alive", state)
	case verdict == blocker.Waiting && state.Workload == blocker.WorkloadReady && state.Lease == blocker.LeaseExpiredTwice:
		t.Errorf("%+v is called waiting, and nobody leads", state)
	case verdict == blocker.Waiting && state.Workload == blocker.WorkloadDegraded:
		t.Errorf("%+v is called waiting, and a container reports an error", state)
	}
}

func TestJudgeController(t *testing.T) {
	for name, tc := range map[string]struct {
		state   blocker.ControllerState
		reason  blocker.Reason
		verdict blocker.Verdict
	}{
		"nothing seen": {blocker.ControllerState{}, blocker.ControllerUnseen, blocker.Unknown},
		"outside, without workload and Lease": {blocker.ControllerState{Workload: blocker.WorkloadAbsent,
			Lease: blocker.LeaseAbsent}, blocker.ControllerUnseen, blocker.Unknown},
		"outside, with a Lease": {blocker.ControllerState{Workload: blocker.WorkloadAbsent,
			Lease: blocker.LeaseHeld}, blocker.ControllerActs, blocker.Waiting},
		"pods not listed, old Lease":        {blocker.ControllerState{Lease: blocker.LeaseExpiredTwice}, blocker.ControllerUnseen, blocker.Unknown},
		"Leases not listed, scaled to zero": {blocker.ControllerState{Workload: blocker.WorkloadStopped}, blocker.ControllerUnseen, blocker.Unknown},
		"scaled to zero, never had a Lease": {blocker.ControllerState{Workload: blocker.WorkloadStopped,
			Lease: blocker.LeaseAbsent}, blocker.ControllerGone, blocker.Stuck},
		"scaled to zero, Lease expired just now": {blocker.ControllerState{Workload: blocker.WorkloadStopped,
			Lease: blocker.LeaseExpired}, blocker.ControllerUnseen, blocker.Unknown},
		"uninstalled, Lease expired twice": {blocker.ControllerState{Workload: blocker.WorkloadAbsent,
			Lease: blocker.LeaseExpiredTwice}, blocker.ControllerGone, blocker.Stuck},
		"uninstalled with its namespace, no Lease": {blocker.ControllerState{Workload: blocker.WorkloadAbsent,
			Lease: blocker.LeaseAbsent, Uninstalled: true}, blocker.ControllerGone, blocker.Stuck},
		"crash loop": {blocker.ControllerState{Workload: blocker.WorkloadCrashing,
			Lease: blocker.LeaseExpired}, blocker.ControllerFails, blocker.Stuck},
		"crash loop, Leases unseen": {blocker.ControllerState{Workload: blocker.WorkloadCrashing}, blocker.ControllerFails, blocker.Unknown},
		"crash loop, a leader elsewhere": {blocker.ControllerState{Workload: blocker.WorkloadCrashing,
			Lease: blocker.LeaseHeld}, blocker.ControllerFails, blocker.Unknown},
		"ready, and nobody leads for long": {blocker.ControllerState{Workload: blocker.WorkloadReady,
			Lease: blocker.LeaseExpiredTwice}, blocker.ControllerUnseen, blocker.Unknown},
		"ready, without elections": {blocker.ControllerState{Workload: blocker.WorkloadReady,
			Lease: blocker.LeaseAbsent}, blocker.ControllerActs, blocker.Waiting},
		"starting, old Lease": {blocker.ControllerState{Workload: blocker.WorkloadStarting,
			Lease: blocker.LeaseExpiredTwice}, blocker.ControllerActs, blocker.Waiting},
		"a container beside it crashes": {blocker.ControllerState{Workload: blocker.WorkloadDegraded,
			Lease: blocker.LeaseHeld}, blocker.ControllerFails, blocker.Unknown},
		"one replica of two ready": {blocker.ControllerState{Workload: blocker.WorkloadReady,
			Lease: blocker.LeaseExpired}, blocker.ControllerActs, blocker.Waiting},
		"outside and silent, reports an error": {blocker.ControllerState{Workload: blocker.WorkloadAbsent, Lease: blocker.LeaseAbsent, ReportsError: true}, blocker.ControllerFails, blocker.Stuck},
	} {
		t.Run(name, func(t *testing.T) {
			if reason, verdict := blocker.JudgeController(tc.state); reason != tc.reason || verdict != tc.verdict {
				t.Errorf("JudgeController(%+v) = %v, %v, want %v, %v", tc.state, reason, verdict, tc.reason, tc.verdict)
			}
		})
	}
}
