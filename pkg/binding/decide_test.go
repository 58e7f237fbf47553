package binding

import (
	"testing"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/exeunt-io/exeunt/pkg/storage"
)

func TestDecideClaim(t *testing.T) {
	for name, tc := range map[string]struct {
		state ClaimState
		want  ClaimDecision
	}{
		"a free volume was found: it is bound first":                  {ClaimState{Volume: Free, Status: StatusPending}, ClaimDecision{BindFreeVolume, Binding}},
		"a provisioned volume refers to the claim: its phase is next": {ClaimState{Volume: BoundToClaim, Status: StatusPending}, ClaimDecision{SetVolumePhaseBound, Binding}},
		"then the claim names it":                                     {ClaimState{Volume: BoundToClaim, VolumeBound: true, Status: StatusPending}, ClaimDecision{BindClaim, Binding}},
		"then the claim's status":                                     {ClaimState{Volume: BoundToClaim, VolumeBound: true, Completed: true, Named: true, Status: StatusPending}, ClaimDecision{SetStatusBound, Binding}},
		"then there is nothing left":                                  {ClaimState{Volume: BoundToClaim, VolumeBound: true, Completed: true, Named: true, Status: StatusBound}, ClaimDecision{Wait, IsBound}},
		"a pre-bound volume gets the UID":                             {ClaimState{Volume: Prebound, Status: StatusPending}, ClaimDecision{BindReservedVolume, Binding}},
		"the named volume is free":                                    {ClaimState{Named: true, Volume: Free, Status: StatusPending}, ClaimDecision{BindFreeVolume, Binding}},
		"the named volume does not exist":                             {ClaimState{Named: true, Status: StatusPending}, ClaimDecision{Wait, VolumeMissing}},
		"the named volume cannot serve":                               {ClaimState{Named: true, Volume: Mismatched, Status: StatusPending}, ClaimDecision{Wait, VolumeMismatched}},
		"the named volume is another's":                               {ClaimState{Named: true, Volume: BoundToOther, Status: StatusPending}, ClaimDecision{Wait, VolumeBoundToOther}},
		"a bound claim whose volume came unbound is bound again":      {ClaimState{Completed: true, Named: true, Volume: Free, Status: StatusBound}, ClaimDecision{BindFreeVolume, Binding}},
		"a bound claim without name is lost":                          {ClaimState{Completed: true, Status: StatusBound}, ClaimDecision{SetStatusLost, ReferenceLost}},
		"a bound claim whose volume a cache lacks: first a live look": {ClaimState{Completed: true, Named: true, Status: StatusBound}, ClaimDecision{ConfirmVolume, VolumeLost}},
		"a bound claim whose volume is gone is lost":                  {ClaimState{Completed: true, Named: true, Status: StatusBound, Confirmed: true}, ClaimDecision{SetStatusLost, VolumeLost}},
		"a lost claim is reported once":                               {ClaimState{Completed: true, Named: true, Status: StatusLost}, ClaimDecision{Wait, VolumeLost}},
		"a bound claim whose volume is another's is lost":             {ClaimState{Completed: true, Named: true, Volume: BoundToOther, Confirmed: true}, ClaimDecision{SetStatusLost, Misbound}},
		"a claim that is being deleted gets no volume":                {ClaimState{Deleting: true, Volume: Free, Status: StatusPending}, ClaimDecision{Wait, ClaimDeleting}},
		"nor is one provisioned for it":                               {ClaimState{Deleting: true, Class: Provisionable, Dynamic: true, Status: StatusPending}, ClaimDecision{Wait, ClaimDeleting}},
		"but the one made for it is bound, so that it is reclaimed":   {ClaimState{Deleting: true, Volume: BoundToClaim, Status: StatusPending}, ClaimDecision{SetVolumePhaseBound, Binding}},
		"nor does it take the one reserved for the claim to come":     {ClaimState{Deleting: true, Volume: Prebound, Status: StatusPending}, ClaimDecision{Wait, ClaimDeleting}},
		"nothing fits and no class is set":                            {ClaimState{Status: StatusPending}, ClaimDecision{Wait, NothingFits}},
		"the default class is assigned":                               {ClaimState{Class: DefaultExists, Status: StatusPending}, ClaimDecision{AssignClass, DefaultClass}},
		"the class waits for a consumer":                              {ClaimState{Class: Delayed, Dynamic: true, Status: StatusPending}, ClaimDecision{Wait, AwaitsConsumer}},
		"the class waits, but a volume was reserved for the claim":    {ClaimState{Class: Delayed, Volume: Prebound, Status: StatusPending}, ClaimDecision{BindReservedVolume, Binding}},
		"the class does not exist":                                    {ClaimState{Class: NoSuchClass, Dynamic: true, Status: StatusPending}, ClaimDecision{Wait, ClassMissing}},
		"nobody can provision for the class":                          {ClaimState{Class: NoProvisioner, Dynamic: true, Status: StatusPending}, ClaimDecision{Wait, ProvisionerMissing}},
		"the provisioner is asked":                                    {ClaimState{Class: Provisionable, Dynamic: true, Status: StatusPending}, ClaimDecision{RequestVolume, AwaitsProvisioner}},
		"the provisioner was asked":                                   {ClaimState{Class: Provisionable, Dynamic: true, Requested: true, Status: StatusPending}, ClaimDecision{Wait, AwaitsProvisioner}},
		"a plugin here is asked: first that is noted on the claim":    {ClaimState{Class: ProvisionableHere, Dynamic: true, Status: StatusPending}, ClaimDecision{RequestVolume, AwaitsPlugin}},
		"then it makes a volume":                                      {ClaimState{Class: ProvisionableHere, Dynamic: true, Requested: true, Status: StatusPending}, ClaimDecision{ProvisionVolume, AwaitsPlugin}},
		"the plugin finishes a recorded volume before it is bound":    {ClaimState{Volume: BoundToClaim, Provisioning: true, Status: StatusPending}, ClaimDecision{ProvisionVolume, AwaitsPlugin}},
		"the volume of the plugin is finished":                        {ClaimState{Volume: BoundToClaim, Provisioning: true, VolumeBound: true, Status: StatusPending}, ClaimDecision{BindClaim, Binding}},
		"a bound claim's volume has lost its phase":                   {ClaimState{Volume: BoundToClaim, Provisioning: true, Completed: true, Named: true, Status: StatusBound}, ClaimDecision{SetVolumePhaseBound, Binding}},
		"a deleted claim loses the finalizer of an older version":     {ClaimState{OldFinalizer: true, Deleting: true, Status: StatusPending}, ClaimDecision{RemoveFinalizer, FromOldVersion}},
		"a bound claim loses the finalizer of an older version":       {ClaimState{OldFinalizer: true, Volume: BoundToClaim, VolumeBound: true, Completed: true, Named: true, Status: StatusBound}, ClaimDecision{RemoveFinalizer, FromOldVersion}},
		"who has taken over from the plugin is noted before all else": {ClaimState{MigratedToWrong: true, Volume: BoundToClaim, VolumeBound: true, Completed: true, Named: true, Status: StatusBound}, ClaimDecision{SetMigratedTo, PluginMigrated}},
		"provisioning is switched off":                                {ClaimState{Class: Provisionable, Status: StatusPending}, ClaimDecision{Wait, ProvisioningOff}},
		"a status left over from elsewhere becomes Pending":           {ClaimState{Status: OtherStatus}, ClaimDecision{SetStatusPending, NothingFits}},
	} {
		t.Run(name, func(t *testing.T) {
			if got := DecideClaim(tc.state); got != tc.want {
				t.Errorf("DecideClaim(%+v) = %v, want %v", tc.state, got, tc.want)
			}
		})
	}
}

// claimStates yields every value of ClaimState.
func claimStates(yield func(ClaimState) bool) {
	for bits := range 1 << 10 {
		on := func(i int) bool { return bits>>i&1 == 1 }
		for volume := Missing; volume <= BoundToOther; volume++ {
			for class := NoClass; class <= ProvisionableHere; class++ {
				for status := OtherStatus; status <= StatusLost; status++ {
					s := ClaimState{
						Completed: on(0), Named: on(1), Deleting: on(2), VolumeBound: on(3), Dynamic: on(4),
						Requested: on(5), Confirmed: on(6), OldFinalizer: on(7), MigratedToWrong: on(8), Provisioning: on(9), Volume: volume, Class: class, Status: status,
					}
					if !yield(s) {
						return
					}
				}
			}
		}
	}
}

func bindsVolume(action ClaimAction) bool {
	return action == BindFreeVolume || action == BindReservedVolume
}

func bindsClaim(action ClaimAction) bool {
	return action == BindClaim || action == CompleteBinding
}

// A volume that refers to no claim was chosen by a controller, any other by a person.
func TestFreeVolumeIsBoundByController(t *testing.T) {
	for s := range claimStates {
		action := DecideClaim(s).Action
		free := s.Volume == Free || s.Volume == Mismatched
		if bindsVolume(action) && (action == BindFreeVolume) != free {
			t.Errorf("%v in %+v", action, s)
		}
		if bindsClaim(action) && (action == BindClaim) == s.Named {
			t.Errorf("%v in %+v", action, s)
		}
	}
}

// step returns the state after the action was carried out.
func step(s ClaimState, action ClaimAction) ClaimState {
	switch action {
	case BindFreeVolume, BindReservedVolume:
		s.Volume = BoundToClaim
	case SetVolumePhaseBound:
		s.VolumeBound = true
	case BindClaim, CompleteBinding:
		s.Completed, s.Named = true, true
	case SetStatusBound:
		s.Status = StatusBound
	case SetStatusPending:
		s.Status = StatusPending
	case SetStatusLost:
		s.Status = StatusLost
	case ConfirmVolume:
		s.Confirmed = true
	case AssignClass:
		s.Class = ProvisionableHere
	case ProvisionVolume:
		s.Volume, s.VolumeBound = BoundToClaim, true
	case RemoveFinalizer:
		s.OldFinalizer = false
	case SetMigratedTo:
		s.MigratedToWrong = false
	case RequestVolume:
		s.Requested = true
	case Wait:
	}
	return s
}

func TestEveryClaimSettlesAfterAtMostEightSteps(t *testing.T) {
	for start := range claimStates {
		s, steps := start, 0
		for ; DecideClaim(s).Action != Wait; steps++ {
			if steps == 8 {
				t.Fatalf("%+v does not settle: %+v", start, s)
			}
			next := step(s, DecideClaim(s).Action)
			if next == s {
				t.Fatalf("%v changes nothing in %+v", DecideClaim(s), s)
			}
			s = next
		}
	}
}

func TestFinalizerOfOldVersionIsAlwaysRemoved(t *testing.T) {
	for s := range claimStates {
		if got := DecideClaim(s).Action == RemoveFinalizer; got != s.OldFinalizer {
			t.Errorf("%v in %+v", DecideClaim(s), s)
		}
	}
}

func TestPluginProvisionsOnlyForUnboundClaims(t *testing.T) {
	for s := range claimStates {
		recorded := s.Volume == BoundToClaim && s.Provisioning && !s.VolumeBound
		wanted := s.Requested && s.Dynamic && !s.Deleting && !s.Named && s.Volume != BoundToClaim
		if DecideClaim(s).Action == ProvisionVolume && (s.Completed || !recorded && !wanted) {
			t.Errorf("provisioned in %+v", s)
		}
	}
}

func TestNoClaimIsBoundToUnfinishedPluginVolume(t *testing.T) {
	for s := range claimStates {
		action := DecideClaim(s).Action
		if s.Volume == BoundToClaim && s.Provisioning && !s.VolumeBound && !s.Completed && (action == SetVolumePhaseBound || bindsClaim(action)) {
			t.Errorf("%v in %+v", DecideClaim(s), s)
		}
	}
}

func TestAClaimThatIsBeingDeletedTakesNoVolume(t *testing.T) {
	for s := range claimStates {
		if s.Deleting && !s.Completed && bindsVolume(DecideClaim(s).Action) {
			t.Errorf("%v in %+v", DecideClaim(s), s)
		}
	}
}

func TestAnotherClaimsVolumeIsNeverBound(t *testing.T) {
	for s := range claimStates {
		action := DecideClaim(s).Action
		writes := bindsVolume(action) || action == SetVolumePhaseBound || bindsClaim(action) || action == SetStatusBound
		if writes && (s.Volume == BoundToOther || s.Volume == Missing || s.Volume == Mismatched && !s.Completed) {
			t.Errorf("%v in %+v", DecideClaim(s), s)
		}
	}
}

func TestDecideVolume(t *testing.T) {
	for name, tc := range map[string]struct {
		state VolumeState
		want  VolumeAction
	}{
		"nobody claims it":                                     {VolumeState{Claim: storage.ClaimNone}, SetPhaseAvailable},
		"nobody claims it and it says so":                      {VolumeState{Claim: storage.ClaimNone, Phase: storage.PhaseAvailable}, Leave},
		"the reference was cleared by an administrator":        {VolumeState{Claim: storage.ClaimNone, Phase: storage.PhaseReleased}, SetPhaseAvailable},
		"the claim names it":                                   {VolumeState{Claim: storage.ClaimBound, Phase: storage.PhaseAvailable}, SetPhaseBound},
		"the claim names no volume yet":                        {VolumeState{Claim: storage.ClaimUnbound, Phase: storage.PhaseAvailable}, WakeClaim},
		"the claim's mode differs":                             {VolumeState{Claim: storage.ClaimUnbound, ModesDiffer: true}, ReportMismatch},
		"the claim lost the volume's name":                     {VolumeState{Claim: storage.ClaimLost, Phase: storage.PhaseReleased}, WakeClaim},
		"the claim's mode differs, and it names the volume":    {VolumeState{Claim: storage.ClaimBound, ModesDiffer: true}, SetPhaseBound},
		"the claim was not read":                               {VolumeState{Claim: storage.ClaimUnread, Phase: storage.PhaseBound}, ConfirmClaim},
		"deleted before it was bound: first a live look":       {VolumeState{Claim: storage.ClaimUnbound, Phase: storage.PhaseAvailable, DynamicDelete: true, Deleting: true}, ConfirmClaim},
		"deleted before it was bound: reclaimed":               {VolumeState{Claim: storage.ClaimUnbound, Phase: storage.PhasePending, DynamicDelete: true, Deleting: true, Confirmed: true}, SetPhaseReleased},
		"deleted in the middle of the binding: it is finished": {VolumeState{Claim: storage.ClaimUnbound, Phase: storage.PhaseBound, DynamicDelete: true, Deleting: true, Confirmed: true}, WakeClaim},
		"a person's volume deleted before it was bound":        {VolumeState{Claim: storage.ClaimUnbound, Phase: storage.PhaseAvailable, Deleting: true, Confirmed: true}, WakeClaim},
		"the cache says the claim is gone: first a live look":  {VolumeState{Claim: storage.ClaimGone, Phase: storage.PhaseBound}, ConfirmClaim},
		"the claim is gone":                                    {VolumeState{Claim: storage.ClaimGone, Phase: storage.PhaseBound, Confirmed: true}, SetPhaseReleased},
		"the claim is gone and it is Released":                 {VolumeState{Claim: storage.ClaimGone, Phase: storage.PhaseReleased}, Leave},
		"Failed is not overwritten":                            {VolumeState{Claim: storage.ClaimGone, Phase: storage.PhaseFailed, Confirmed: true}, Leave},
		"made for a claim that took another volume":            {VolumeState{Claim: storage.ClaimElsewhere, Phase: storage.PhaseAvailable, DynamicDelete: true, Confirmed: true}, SetPhaseReleased},
		"a static or Retain loser is given back, its data too": {VolumeState{Claim: storage.ClaimElsewhere, Phase: storage.PhaseAvailable, Confirmed: true}, ClearClaimRef},
		"but only after a live look":                           {VolumeState{Claim: storage.ClaimElsewhere, Phase: storage.PhaseAvailable}, ConfirmClaim},
	} {
		t.Run(name, func(t *testing.T) {
			if got := DecideVolume(tc.state).Action; got != tc.want {
				t.Errorf("DecideVolume(%+v) = %v, want %v", tc.state, got, tc.want)
			}
		})
	}
}

func TestAVolumeIsReleasedOnlyAfterALiveReadOfItsClaim(t *testing.T) {
	for claim := storage.ClaimNone; claim <= storage.ClaimElsewhere; claim++ {
		for phase := storage.PhasePending; phase <= storage.PhaseFailed; phase++ {
			for bits := range 16 {
				s := VolumeState{Claim: claim, Phase: phase, DynamicDelete: bits&1 == 1, Confirmed: bits&2 == 2, Deleting: bits&4 == 4, ModesDiffer: bits&8 == 8}
				action := DecideVolume(s).Action
				takesAway := action == SetPhaseReleased || action == ClearClaimRef
				neverBound := s.Deleting && s.DynamicDelete && phase != storage.PhaseBound && (claim == storage.ClaimUnbound || claim == storage.ClaimLost)
				if takesAway && (!s.Confirmed || claim != storage.ClaimGone && claim != storage.ClaimElsewhere && !neverBound) {
					t.Errorf("%v in %+v", action, s)
				}
				if action == ConfirmClaim && s.Confirmed {
					t.Errorf("confirms for ever: %+v", s)
				}
			}
		}
	}
}

func TestMismatchSaysWhyTheNamedVolumeCannotServe(t *testing.T) {
	claim := waitingClaim("c", "1Gi")
	if why := Mismatch(freeVolume("a", "1Gi"), claim); why != "" {
		t.Errorf("a fitting volume: %q", why)
	}
	for name, volume := range map[string]*v1.PersistentVolume{
		"too small":   freeVolume("a", "1Mi"),
		"other class": freeVolume("a", "1Gi", inClass("slow")),
	} {
		if Mismatch(volume, claim) == "" {
			t.Errorf("%s: no reason given", name)
		}
	}
}

func TestReservedFinishesABindingThatHadBegunBeforeTheVolumeWasDeleted(t *testing.T) {
	claim := waitingClaim("c", "1Gi")
	for name, tc := range map[string]struct {
		phase v1.PersistentVolumePhase
		uid   types.UID
		taken bool
	}{
		"the volume says Bound":               {v1.VolumeBound, claim.UID, true},
		"the volume was never bound":          {v1.VolumePending, claim.UID, false},
		"reserved by name, and not bound yet": {v1.VolumeBound, "", false},
	} {
		t.Run(name, func(t *testing.T) {
			volume := freeVolume("a", "1Gi", func(v *v1.PersistentVolume) {
				v.Spec.ClaimRef = &v1.ObjectReference{Namespace: "ns", Name: "c", UID: tc.uid}
				v.DeletionTimestamp, v.Status.Phase = &metav1.Time{}, tc.phase
			})
			if got := ReservedVolume([]*v1.PersistentVolume{volume}, claim); (got != nil) != tc.taken {
				t.Errorf("Reserved = %v, want taken: %v", got, tc.taken)
			}
		})
	}
}

func TestReservedPrefersTheVolumeThatNamesTheUID(t *testing.T) {
	claim := waitingClaim("c", "1Gi")
	refer := func(uid string) func(*v1.PersistentVolume) {
		return func(v *v1.PersistentVolume) {
			v.Spec.ClaimRef = &v1.ObjectReference{Namespace: "ns", Name: "c"}
			if uid != "" {
				v.Spec.ClaimRef.UID = claim.UID
			}
		}
	}
	byName, byUID := freeVolume("a", "1Gi", refer("")), freeVolume("b", "5Gi", refer("c"))
	if got := ReservedVolume([]*v1.PersistentVolume{byName, byUID}, claim); got != byUID {
		t.Errorf("Reserved = %v, want %s", got, byUID.Name)
	}
	if got := ReservedVolume([]*v1.PersistentVolume{freeVolume("a", "1Mi", refer(""))}, claim); got != nil {
		t.Errorf("a volume that is too small was taken: %s", got.Name)
	}
}
