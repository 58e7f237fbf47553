package volume

import (
	"iter"
	"slices"
	"testing"

	"github.com/exeunt-io/exeunt/pkg/blocker"
	"github.com/exeunt-io/exeunt/pkg/storage"
	"github.com/exeunt-io/exeunt/test/enumtest"
)

func TestEveryValueHasAName(t *testing.T) {
	enumtest.ExpectNames(t, Unseen, Yes)
	enumtest.ExpectNames(t, Kept, ToUnprotect)
	enumtest.ExpectNames(t, SecretUnseen, SecretMissingMaybe)
	enumtest.ExpectNames(t, JournalUnseen, JournalOpen)
	enumtest.ExpectNames(t, FeatureUnknown, FeatureOffMaybe)
	enumtest.ExpectNames(t, ServerUnseen, ServerGone)
	enumtest.ExpectNames(t, LeaderUnseen, LeaderOther)
	enumtest.ExpectNames(t, unknownDefault, onByDefault)
}

func TestFactOf(t *testing.T) {
	for _, tc := range []struct {
		holds, seen bool
		want        Fact
	}{{true, true, Yes}, {true, false, Yes}, {false, true, No}, {false, false, Unseen}} {
		if got := FactOf(tc.holds, tc.seen); got != tc.want {
			t.Errorf("FactOf(%v, %v) = %v, want %v", tc.holds, tc.seen, got, tc.want)
		}
	}
}

// controllers returns every state of a controller.
func controllers() iter.Seq[blocker.ControllerState] {
	return func(yield func(blocker.ControllerState) bool) {
		for workload := blocker.WorkloadUnseen; workload <= blocker.WorkloadReady; workload++ {
			for lease := blocker.LeaseUnseen; lease <= blocker.LeaseExpiredTwice; lease++ {
				for bits := range 4 {
					s := blocker.ControllerState{Workload: workload, Lease: lease, Uninstalled: bits&1 != 0, ReportsError: bits&2 != 0}
					if !yield(s) {
						return
					}
				}
			}
		}
	}
}

// worst returns the worst verdict.
func worst(judgments ...Judgment) blocker.Verdict {
	verdict := blocker.None
	for _, judgment := range judgments {
		verdict = max(verdict, judgment.Verdict)
	}
	return verdict
}

// isProven reports whether the controller is proven gone or reports an error.
func isProven(s blocker.ControllerState) bool {
	_, verdict := blocker.JudgeController(s)
	return verdict == blocker.Stuck
}

// blinded returns the states of the controller with less seen.
func blinded(s blocker.ControllerState) []blocker.ControllerState {
	workload, lease := s, s
	workload.Workload, lease.Lease = blocker.WorkloadUnseen, blocker.LeaseUnseen
	return []blocker.ControllerState{workload, lease}
}

func TestReclaimIsStuckOnlyWithEvidence(t *testing.T) {
	for s := range reclaimStates() {
		judgments := Reclaim(s)
		if len(judgments) == 0 {
			t.Fatalf("Reclaim(%+v) says nothing", s)
		}
		checked := s.Server == ServerOurs && (s.Shared == Yes || s.Secret == SecretMissing)
		neverAsked := s.Server == ServerOther && s.Failed
		evidence := checked || neverAsked || s.Feature == FeatureOff || s.Node == No ||
			s.Error == Yes || isProven(s.Provisioner)
		if worst(judgments...) == blocker.Stuck && !evidence {
			t.Fatalf("Reclaim(%+v) = %v without evidence", s, judgments)
		}
		silent := s.Provisioner
		silent.ReportsError = false
		alive := verdictOf(silent) == blocker.Waiting
		if worst(judgments...) == blocker.Waiting && !alive && s.Attached != Yes {
			t.Fatalf("Reclaim(%+v) = %v, but no provisioner was seen", s, judgments)
		}
	}
}

func TestUnseenFactsNeverMakeReclaimStuck(t *testing.T) {
	for s := range reclaimStates() {
		if worst(Reclaim(s)...) == blocker.Stuck {
			continue
		}
		for _, less := range lessSeen(s) {
			if judgments := Reclaim(less); worst(judgments...) == blocker.Stuck {
				t.Fatalf("Reclaim(%+v) = %v, but Reclaim(%+v) is not stuck", less, judgments, s)
			}
		}
	}
}

// Only the provisioner of Exeunt checks for other volumes on the disk, and for the secret.
func TestOtherProvisionerDeletesUncheckedVolume(t *testing.T) {
	for s := range reclaimStates() {
		switch s.Server {
		case ServerOther:
			without := s
			without.Shared, without.Secret = No, SecretFine
			if got, want := Reclaim(s), Reclaim(without); !slices.Equal(got, want) {
				t.Fatalf("Reclaim(%+v) = %v, want %v", s, got, want)
			}
		case ServerUnseen, ServerGone:
			for _, judgment := range Reclaim(s) {
				if (judgment.Reason == blocker.HandleShared || judgment.Reason == blocker.SecretMissing) &&
					judgment.Verdict != blocker.Unknown {
					t.Fatalf("Reclaim(%+v) = %v", s, judgment)
				}
			}
		case ServerOurs:
		}
	}
}

// csi-provisioner never asks the driver about a Failed volume, so nothing that keeps it from
// asking matters, and nothing is promised where csi-provisioner may serve.
func TestFailedVolumeWaitsOnlyForOurProvisioner(t *testing.T) {
	for s := range reclaimStates() {
		if !s.Failed {
			continue
		}
		judgments := Reclaim(s)
		released := s
		released.Failed = false
		switch {
		case s.Server == ServerOurs && !slices.Equal(judgments, Reclaim(released)):
			t.Fatalf("Reclaim(%+v) = %v, want that of a Released volume", s, judgments)
		case s.Server == ServerOther && !slices.Equal(judgments, []Judgment{{blocker.PhaseNotReclaimed, blocker.Stuck}}):
			t.Fatalf("Reclaim(%+v) = %v, want PhaseNotReclaimed alone", s, judgments)
		case s.Server != ServerOurs && s.Error != Yes && worst(judgments...) < blocker.Unknown:
			t.Fatalf("Reclaim(%+v) = %v, but csi-provisioner may serve", s, judgments)
		}
	}
}

// reclaimStates returns every state, with the controllers that matter. An error that a controller
// reports is no input of Reclaim.
func reclaimStates() iter.Seq[ReclaimState] {
	return func(yield func(ReclaimState) bool) {
		for controller := range controllers() {
			if controller.ReportsError {
				continue
			}
			for n := range 3 * 3 * 4 * 4 * 4 * 3 * 3 * 4 * 2 {
				s := ReclaimState{
					Attached: Fact(n % 3), Shared: Fact(n / 3 % 3), Secret: Secret(n / 9 % 4), Journal: Journal(n / 36 % 4),
					Feature: Feature(n / 144 % 4), Error: Fact(n / 576 % 3), Node: Fact(n / 1728 % 3), Server: Server(n / 5184 % 4),
					Failed:      n/20736 == 1,
					Provisioner: controller,
				}
				if !yield(s) {
					return
				}
			}
		}
	}
}

// lessSeen returns the state with each fact unseen.
func lessSeen(s ReclaimState) []ReclaimState {
	all := slices.Repeat([]ReclaimState{s}, 8)
	all[0].Attached = Unseen
	all[1].Shared = Unseen
	all[2].Secret = SecretUnseen
	all[3].Journal = JournalUnseen
	all[4].Error = Unseen
	all[5].Feature = FeatureUnknown
	all[6].Node = Unseen
	all[7].Server = ServerUnseen
	for _, controller := range blinded(s.Provisioner) {
		less := s
		less.Provisioner = controller
		all = append(all, less)
	}
	return all
}

// reclaimCase is one case of TestReclaim.
type reclaimCase struct {
	change func(*ReclaimState)
	want   []Judgment
}

func reclaimCases() map[string]reclaimCase {
	gone := blocker.ControllerState{Workload: blocker.WorkloadStopped, Lease: blocker.LeaseExpiredTwice}
	return map[string]reclaimCase{
		"driver deletes":   {func(*ReclaimState) {}, []Judgment{{blocker.DriverDeletes, blocker.Waiting}}},
		"driver refuses":   {func(s *ReclaimState) { s.Error = Yes }, []Judgment{{blocker.DriverRefuses, blocker.Stuck}}},
		"events unseen":    {func(s *ReclaimState) { s.Error = Unseen }, []Judgment{{blocker.DriverDeletes, blocker.Unknown}}},
		"provisioner gone": {func(s *ReclaimState) { s.Provisioner = gone }, []Judgment{{blocker.DriverMissing, blocker.Stuck}}},
		"provisioner unseen": {func(s *ReclaimState) { s.Provisioner = blocker.ControllerState{} },
			[]Judgment{{blocker.ControllerUnseen, blocker.Unknown}}},
		"attached, gone": {func(s *ReclaimState) { s.Attached, s.Provisioner = Yes, gone },
			[]Judgment{{blocker.VolumeAttached, blocker.Waiting}, {blocker.DriverMissing, blocker.Stuck}}},
		"attached, old error":     {func(s *ReclaimState) { s.Attached, s.Error = Yes, Yes }, []Judgment{{blocker.VolumeAttached, blocker.Waiting}}},
		"handle shared":           {func(s *ReclaimState) { s.Shared = Yes }, []Judgment{{blocker.HandleShared, blocker.Stuck}}},
		"secret missing":          {func(s *ReclaimState) { s.Secret = SecretMissing }, []Judgment{{blocker.SecretMissing, blocker.Stuck}}},
		"shared, csi-provisioner": {func(s *ReclaimState) { s.Shared, s.Server = Yes, ServerOther }, []Judgment{{blocker.DriverDeletes, blocker.Waiting}}},
		"secret, csi-provisioner": {func(s *ReclaimState) { s.Secret, s.Server = SecretMissing, ServerOther },
			[]Judgment{{blocker.DriverDeletes, blocker.Waiting}}},
		"volumes unseen by csi-provisioner": {func(s *ReclaimState) { s.Shared, s.Secret, s.Server = Unseen, SecretUnseen, ServerOther }, []Judgment{{blocker.DriverDeletes, blocker.Waiting}}},
		"shared, server unseen":             {func(s *ReclaimState) { s.Shared, s.Server = Yes, ServerUnseen }, []Judgment{{blocker.HandleShared, blocker.Unknown}}},
		"secret, server unseen": {func(s *ReclaimState) { s.Secret, s.Server = SecretMissing, ServerUnseen },
			[]Judgment{{blocker.SecretMissing, blocker.Unknown}}},
		"shared, server unseen, refuses": {func(s *ReclaimState) { s.Shared, s.Server, s.Error = Yes, ServerUnseen, Yes },
			[]Judgment{{blocker.DriverRefuses, blocker.Stuck}}},
		"shared, server gone":   {func(s *ReclaimState) { s.Shared, s.Server, s.Provisioner = Yes, ServerGone, gone }, []Judgment{{blocker.HandleShared, blocker.Unknown}, {blocker.DriverMissing, blocker.Stuck}}},
		"entry open":            {func(s *ReclaimState) { s.Journal = JournalOpen }, []Judgment{{blocker.JournalEntry, blocker.Waiting}}},
		"entry open, no leader": {func(s *ReclaimState) { s.Journal, s.Provisioner = JournalOpen, blocker.ControllerState{} }, []Judgment{{blocker.JournalEntry, blocker.Unknown}}},
		"entry unresolved":      {func(s *ReclaimState) { s.Journal = JournalUnresolved }, []Judgment{{blocker.DriverDeletes, blocker.Waiting}}},
		"unresolved, refuses": {func(s *ReclaimState) { s.Journal, s.Error = JournalUnresolved, Yes },
			[]Judgment{{blocker.DriverRefuses, blocker.Stuck}}},
		"node gone":           {func(s *ReclaimState) { s.Node = No }, []Judgment{{blocker.NodeGone, blocker.Stuck}}},
		"node perhaps away":   {func(s *ReclaimState) { s.Node = Unseen }, []Judgment{{blocker.DriverDeletes, blocker.Unknown}}},
		"feature off":         {func(s *ReclaimState) { s.Feature = FeatureOff }, []Judgment{{blocker.FeatureOff, blocker.Stuck}}},
		"feature perhaps off": {func(s *ReclaimState) { s.Feature = FeatureOffMaybe }, []Judgment{{blocker.FeatureOff, blocker.Unknown}}},
		"perhaps off, refuses": {func(s *ReclaimState) { s.Feature, s.Error = FeatureOffMaybe, Yes },
			[]Judgment{{blocker.DriverRefuses, blocker.Stuck}}},
		"failed": {func(s *ReclaimState) { s.Failed = true }, []Judgment{{blocker.DriverDeletes, blocker.Waiting}}},
		"failed, csi-provisioner": {func(s *ReclaimState) { s.Failed, s.Server = true, ServerOther },
			[]Judgment{{blocker.PhaseNotReclaimed, blocker.Stuck}}},
		"failed, server unseen": {func(s *ReclaimState) { s.Failed, s.Server = true, ServerUnseen },
			[]Judgment{{blocker.PhaseNotReclaimed, blocker.Unknown}}},
		"failed, server unseen, refuses": {func(s *ReclaimState) { s.Failed, s.Server, s.Error = true, ServerUnseen, Yes }, []Judgment{{blocker.DriverRefuses, blocker.Stuck}}},
		"failed, server gone":            {func(s *ReclaimState) { s.Failed, s.Server, s.Provisioner = true, ServerGone, gone }, []Judgment{{blocker.PhaseNotReclaimed, blocker.Unknown}, {blocker.DriverMissing, blocker.Stuck}}},
		"feature unknown":                {func(s *ReclaimState) { s.Feature = FeatureUnknown }, []Judgment{{blocker.DriverDeletes, blocker.Waiting}}},
	}
}

func TestReclaim(t *testing.T) {
	alive := blocker.ControllerState{Workload: blocker.WorkloadReady, Lease: blocker.LeaseHeld}
	quiet := ReclaimState{Attached: No, Shared: No, Secret: SecretFine, Journal: JournalEmpty, Feature: FeatureOn,
		Error: No, Node: Yes, Server: ServerOurs, Provisioner: alive}
	for name, tc := range reclaimCases() {
		t.Run(name, func(t *testing.T) {
			s := quiet
			tc.change(&s)
			if got := Reclaim(s); !slices.Equal(got, tc.want) {
				t.Errorf("Reclaim(%+v) = %v, want %v", s, got, tc.want)
			}
		})
	}
}

func TestStageOfOnEveryState(t *testing.T) {
	for s := range states() {
		stage := StageOf(s)
		keeps := s.Policy != storage.PolicyDelete
		switch {
		case !s.Deleting && keeps && stage != Kept:
			t.Errorf("StageOf(%+v) = %v, but no deletion was requested", s, stage)
		case stage == ToReclaim && (keeps || !s.Phase.Released() || s.Claim == storage.ClaimBound):
			t.Errorf("StageOf(%+v) = %v, but the disk is not to be deleted", s, stage)
		case s.Deleting && s.Claim == storage.ClaimBound && stage != Claimed:
			t.Errorf("StageOf(%+v) = %v, but its claim exists", s, stage)
		case s.Deleting && stage == Kept:
			t.Errorf("StageOf(%+v) = %v, but the volume is being deleted", s, stage)
		case stage == Unclaimed && (!s.Deleting || keeps || s.Claim != storage.ClaimNone || s.Phase == storage.PhaseBound ||
			s.Phase.Released()):
			t.Errorf("StageOf(%+v) = %v, but another program acts first", s, stage)
		}
	}
}

func states() iter.Seq[State] {
	return func(yield func(State) bool) {
		for policy := storage.PolicyUnknown; policy <= storage.PolicyDelete; policy++ {
			for phase := storage.PhasePending; phase <= storage.PhaseFailed; phase++ {
				for claim := storage.ClaimNone; claim <= storage.ClaimElsewhere; claim++ {
					for bits := range 4 {
						s := State{Policy: policy, Phase: phase, Claim: claim, Deleting: bits&1 != 0, Marked: bits&2 != 0}
						if !yield(s) {
							return
						}
					}
				}
			}
		}
	}
}

func TestStageOf(t *testing.T) {
	for name, tc := range map[string]struct {
		state State
		want  Stage
	}{
		"bound, deleted":            {State{storage.PolicyDelete, storage.PhaseBound, true, storage.ClaimBound, true}, Claimed},
		"bound, claim unseen":       {State{storage.PolicyDelete, storage.PhaseBound, true, storage.ClaimUnread, true}, ClaimUnseen},
		"bound, claim gone":         {State{storage.PolicyDelete, storage.PhaseBound, true, storage.ClaimGone, true}, ToRelease},
		"released":                  {State{storage.PolicyDelete, storage.PhaseReleased, false, storage.ClaimGone, false}, ToReclaim},
		"released, claim unseen":    {State{storage.PolicyDelete, storage.PhaseReleased, true, storage.ClaimUnread, true}, ToReclaim},
		"released, Retain":          {State{storage.PolicyRetain, storage.PhaseReleased, false, storage.ClaimGone, false}, Kept},
		"released, Retain, deleted": {State{storage.PolicyRetain, storage.PhaseReleased, true, storage.ClaimGone, true}, ToUnprotect},
		"already reclaimed":         {State{storage.PolicyDelete, storage.PhaseReleased, true, storage.ClaimGone, false}, ToUnprotect},
		"available, deleted":        {State{storage.PolicyDelete, storage.PhaseAvailable, true, storage.ClaimNone, true}, Unclaimed},
		"available, Retain":         {State{storage.PolicyRetain, storage.PhaseAvailable, true, storage.ClaimNone, true}, ToUnprotect},
		"available, claim gone":     {State{storage.PolicyDelete, storage.PhaseAvailable, true, storage.ClaimGone, true}, ToUnprotect},
	} {
		t.Run(name, func(t *testing.T) {
			if got := StageOf(tc.state); got != tc.want {
				t.Errorf("StageOf(%+v) = %v, want %v", tc.state, got, tc.want)
			}
		})
	}
}
