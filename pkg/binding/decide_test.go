package binding

import (
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/exeunt-io/exeunt/pkg/storage"
)

var claimCases = map[string]struct {
	state ClaimState
	want  ClaimDecision
}{
	"free volume gets the claimRef":     {ClaimState{Volume: Free, Status: StatusPending}, ClaimDecision{BindFreeVolume, Binding}},
	"volume of the claim becomes Bound": {ClaimState{Volume: BoundToClaim, Status: StatusPending}, ClaimDecision{SetVolumePhaseBound, Binding}},
	"cached volume of the claim is confirmed": {ClaimState{Volume: BoundToClaim, VolumeBound: true,
		Status: StatusPending}, ClaimDecision{ConfirmVolume, Binding}},
	"claim gets the volume name": {ClaimState{Volume: BoundToClaim, VolumeBound: true, Confirmed: true,
		Status: StatusPending}, ClaimDecision{BindClaim, Binding}},
	"claim status becomes Bound": {ClaimState{Volume: BoundToClaim, VolumeBound: true, Completed: true,
		Named: true, Status: StatusPending}, ClaimDecision{SetStatusBound, Binding}},
	"bound pair is complete": {ClaimState{Volume: BoundToClaim, VolumeBound: true, Completed: true,
		Named: true, Status: StatusBound}, ClaimDecision{Wait, IsBound}},
	"reserved volume gets the UID":        {ClaimState{Volume: Prebound, Status: StatusPending}, ClaimDecision{BindReservedVolume, Binding}},
	"named free volume gets the claimRef": {ClaimState{Named: true, Volume: Free, Status: StatusPending}, ClaimDecision{BindFreeVolume, Binding}},
	"named volume does not exist":         {ClaimState{Named: true, Status: StatusPending}, ClaimDecision{Wait, VolumeMissing}},
	"named volume does not fit":           {ClaimState{Named: true, Volume: Mismatched, Status: StatusPending}, ClaimDecision{Wait, VolumeMismatched}},
	"named volume belongs to another claim": {ClaimState{Named: true, Volume: BoundToOther, Status: StatusPending},
		ClaimDecision{Wait, VolumeBoundToOther}},
	"bound claim binds its free volume again": {ClaimState{Completed: true, Named: true, Volume: Free,
		Status: StatusBound}, ClaimDecision{BindFreeVolume, Binding}},
	"bound claim without volume name is Lost":      {ClaimState{Completed: true, Status: StatusBound}, ClaimDecision{SetStatusLost, ReferenceLost}},
	"missing volume of a bound claim is confirmed": {ClaimState{Completed: true, Named: true, Status: StatusBound}, ClaimDecision{ConfirmVolume, VolumeLost}},
	"bound claim without volume is Lost": {ClaimState{Completed: true, Named: true, Status: StatusBound,
		Confirmed: true}, ClaimDecision{SetStatusLost, VolumeLost}},
	"Lost claim stays Lost": {ClaimState{Completed: true, Named: true, Status: StatusLost}, ClaimDecision{Wait, VolumeLost}},
	"bound claim of another's volume is Lost": {ClaimState{Completed: true, Named: true, Volume: BoundToOther,
		Confirmed: true}, ClaimDecision{SetStatusLost, Misbound}},
	"deleted claim gets no volume": {ClaimState{Deleting: true, Volume: Free, Status: StatusPending}, ClaimDecision{Wait, ClaimDeleting}},
	"deleted claim is not provisioned for": {ClaimState{Deleting: true, Class: Provisionable, Dynamic: true,
		Status: StatusPending}, ClaimDecision{Wait, ClaimDeleting}},
	"deleted claim is bound to its volume": {ClaimState{Deleting: true, Volume: BoundToClaim,
		Status: StatusPending}, ClaimDecision{SetVolumePhaseBound, Binding}},
	"deleted claim gets no reserved volume": {ClaimState{Deleting: true, Volume: Prebound, Status: StatusPending}, ClaimDecision{Wait, ClaimDeleting}},
	"no volume fits a claim without class":  {ClaimState{Status: StatusPending}, ClaimDecision{Wait, NothingFits}},
	"default class is assigned":             {ClaimState{Class: DefaultExists, Status: StatusPending}, ClaimDecision{AssignClass, DefaultClass}},
	"class waits for the first consumer":    {ClaimState{Class: Delayed, Dynamic: true, Status: StatusPending}, ClaimDecision{Wait, AwaitsConsumer}},
	"reserved volume does not wait for consumer": {ClaimState{Class: Delayed, Volume: Prebound, Status: StatusPending},
		ClaimDecision{BindReservedVolume, Binding}},
	"class does not exist": {ClaimState{Class: NoSuchClass, Dynamic: true, Status: StatusPending}, ClaimDecision{Wait, ClassMissing}},
	"class without provisioner": {ClaimState{Class: NoProvisioner, Dynamic: true,
		Status: StatusPending}, ClaimDecision{Wait, ProvisionerMissing}},
	"provisioner is requested": {ClaimState{Class: Provisionable, Dynamic: true,
		Status: StatusPending}, ClaimDecision{RequestVolume, AwaitsProvisioner}},
	"requested provisioner is awaited": {ClaimState{Class: Provisionable, Dynamic: true, Requested: true,
		Status: StatusPending}, ClaimDecision{Wait, AwaitsProvisioner}},
	"in-tree plugin is requested first": {ClaimState{Class: ProvisionableHere, Dynamic: true,
		Status: StatusPending}, ClaimDecision{RequestVolume, AwaitsPlugin}},
	"requested in-tree plugin provisions": {ClaimState{Class: ProvisionableHere, Dynamic: true, Requested: true,
		Status: StatusPending}, ClaimDecision{ProvisionVolume, AwaitsPlugin}},
	"plugin finishes a recorded volume": {ClaimState{Volume: BoundToClaim, Provisioning: true,
		Status: StatusPending}, ClaimDecision{ProvisionVolume, AwaitsPlugin}},
	"finished volume of a plugin is bound": {ClaimState{Volume: BoundToClaim, Provisioning: true,
		VolumeBound: true, Confirmed: true, Status: StatusPending}, ClaimDecision{BindClaim, Binding}},
	"volume of a bound claim becomes Bound again": {ClaimState{Volume: BoundToClaim, Provisioning: true, Completed: true,
		Named: true, Status: StatusBound}, ClaimDecision{SetVolumePhaseBound, Binding}},
	"migrated-to is corrected first":            {ClaimState{MigratedToWrong: true, Volume: BoundToClaim, VolumeBound: true, Completed: true, Named: true, Status: StatusBound}, ClaimDecision{SetMigratedTo, PluginMigrated}},
	"scrubbed volume gets no claimRef":          {ClaimState{Volume: Free, VolumeScrubbed: true, Status: StatusPending}, ClaimDecision{Wait, VolumeScrubbed}},
	"scrubbed reserved volume gets no UID":      {ClaimState{Volume: Prebound, VolumeScrubbed: true, Status: StatusPending}, ClaimDecision{Wait, VolumeScrubbed}},
	"scrubbed volume of the claim waits":        {ClaimState{Volume: BoundToClaim, VolumeScrubbed: true, Status: StatusPending}, ClaimDecision{Wait, VolumeScrubbed}},
	"restored claim awaits its scrubbed volume": {ClaimState{Completed: true, Named: true, Volume: Free, VolumeScrubbed: true}, ClaimDecision{Wait, VolumeScrubbed}},
	"bound claim keeps its scrubbed volume":     {ClaimState{Completed: true, Named: true, Volume: BoundToClaim, VolumeScrubbed: true}, ClaimDecision{SetVolumePhaseBound, Binding}},
	"dynamic provisioning is disabled":          {ClaimState{Class: Provisionable, Status: StatusPending}, ClaimDecision{Wait, ProvisioningOff}},
	"wrong status becomes Pending":              {ClaimState{Status: OtherStatus}, ClaimDecision{SetStatusPending, NothingFits}},
}

func TestDecideClaim(t *testing.T) {
	for name, tc := range claimCases {
		t.Run(name, func(t *testing.T) {
			if got := DecideClaim(tc.state); got != tc.want {
				t.Errorf("DecideClaim(%+v) = %v, want %v", tc.state, got, tc.want)
			}
		})
	}
}

func TestReportDelay(t *testing.T) {
	const second = time.Second
	for name, tc := range map[string]struct {
		wait Waiting
		want time.Duration
	}{
		"begins to wait":                  {Waiting{}, 2 * second},
		"has waited for a second":         {Waiting{Waited: second}, second},
		"has waited for two seconds":      {Waiting{Waited: 2 * second}, 0},
		"others are served":               {Waiting{Waited: 2 * second, Served: true}, 2 * second},
		"others are served for too long":  {Waiting{Waited: 30 * second, Served: true}, 0},
		"existed at the start":            {Waiting{ExistedAtStart: true}, 0},
		"existed at start, others served": {Waiting{ExistedAtStart: true, Served: true}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			if got := AwaitsProvisioner.ReportDelay(tc.wait); got != tc.want {
				t.Errorf("ReportDelay(%+v) = %s, want %s", tc.wait, got, tc.want)
			}
			want := tc.want
			if tc.wait.Served && tc.wait.Waited >= storage.QuietWait {
				want = 0
			}
			if got := VolumeMissing.ReportDelay(tc.wait); got != want {
				t.Errorf("missing volume: ReportDelay(%+v) = %s, want %s", tc.wait, got, want)
			}
			for _, other := range []Reason{NothingFits, AwaitsConsumer, ClassMissing, ProvisionerMissing, VolumeMismatched, VolumeLost} {
				if got := other.ReportDelay(tc.wait); got != 0 {
					t.Errorf("%s: ReportDelay(%+v) = %s, want 0", other, tc.wait, got)
				}
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
						Requested: on(5), Confirmed: on(6), MigratedToWrong: on(7), Provisioning: on(8), VolumeScrubbed: on(9), Volume: volume, Class: class, Status: status,
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

// A volume that refers to no claim was chosen by a controller, any other by a user.
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

// step returns the state after the action.
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
				t.Fatalf("%+v needs too many steps: %+v", start, s)
			}
			next := step(s, DecideClaim(s).Action)
			if next == s {
				t.Fatalf("%v changes nothing in %+v", DecideClaim(s), s)
			}
			s = next
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

func TestDeletedClaimGetsNoVolume(t *testing.T) {
	for s := range claimStates {
		if s.Deleting && !s.Completed && bindsVolume(DecideClaim(s).Action) {
			t.Errorf("%v in %+v", DecideClaim(s), s)
		}
	}
}

func TestNoClaimIsBoundOnCachedVolume(t *testing.T) {
	for s := range claimStates {
		if bindsClaim(DecideClaim(s).Action) && !s.Confirmed {
			t.Errorf("%v in %+v", DecideClaim(s), s)
		}
	}
}

func TestVolumeOfAnotherClaimIsNeverBound(t *testing.T) {
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
		"unclaimed volume becomes Available":                 {VolumeState{Claim: storage.ClaimNone}, SetPhaseAvailable},
		"unclaimed Available volume is left alone":           {VolumeState{Claim: storage.ClaimNone, Phase: storage.PhaseAvailable}, Leave},
		"Bound volume without claimRef is confirmed":         {VolumeState{Claim: storage.ClaimNone, Phase: storage.PhaseBound}, ConfirmClaim},
		"Bound volume without any claim becomes Available":   {VolumeState{Claim: storage.ClaimNone, Phase: storage.PhaseBound, Confirmed: true}, SetPhaseAvailable},
		"volume that lost its claimRef wakes its claim":      {VolumeState{Claim: storage.ClaimNone, Phase: storage.PhaseBound, Owned: true}, WakeClaim},
		"recreated volume wakes its claim":                   {VolumeState{Claim: storage.ClaimNone, Phase: storage.PhasePending, Owned: true}, WakeClaim},
		"Released volume without claimRef becomes Available": {VolumeState{Claim: storage.ClaimNone, Phase: storage.PhaseReleased}, SetPhaseAvailable},
		"new volume named by its claim wakes the claim":      {VolumeState{Claim: storage.ClaimBound, Phase: storage.PhasePending}, WakeClaim},
		"free volume named by its claim wakes the claim":     {VolumeState{Claim: storage.ClaimBound, Phase: storage.PhaseAvailable}, WakeClaim},
		"deleted volume named by its claim becomes Bound":    {VolumeState{Claim: storage.ClaimBound, Phase: storage.PhasePending, DynamicDelete: true, Deleting: true}, SetPhaseBound},
		"Bound volume named by its claim is left alone":      {VolumeState{Claim: storage.ClaimBound, Phase: storage.PhaseBound}, Leave},
		"Released volume named by its claim becomes Bound":   {VolumeState{Claim: storage.ClaimBound, Phase: storage.PhaseReleased}, SetPhaseBound},
		"Failed volume named by its claim becomes Bound":     {VolumeState{Claim: storage.ClaimBound, Phase: storage.PhaseFailed}, SetPhaseBound},
		"unbound claim is woken":                             {VolumeState{Claim: storage.ClaimUnbound, Phase: storage.PhaseAvailable}, WakeClaim},
		"different volume mode is reported":                  {VolumeState{Claim: storage.ClaimUnbound, ModesDiffer: true}, ReportMismatch},
		"claim without its volume name is woken":             {VolumeState{Claim: storage.ClaimLost, Phase: storage.PhaseReleased}, WakeClaim},
		"volume of different mode wakes the claim naming it": {VolumeState{Claim: storage.ClaimBound, ModesDiffer: true}, WakeClaim},
		"unread claim is confirmed":                          {VolumeState{Claim: storage.ClaimUnread, Phase: storage.PhaseBound}, ConfirmClaim},
		"volume deleted before Bound is confirmed":           {VolumeState{Claim: storage.ClaimUnbound, Phase: storage.PhaseAvailable, DynamicDelete: true, Deleting: true}, ConfirmClaim},
		"volume deleted before Bound is released":            {VolumeState{Claim: storage.ClaimUnbound, Phase: storage.PhasePending, DynamicDelete: true, Deleting: true, Confirmed: true}, SetPhaseReleased},
		"volume deleted when Bound wakes the claim":          {VolumeState{Claim: storage.ClaimUnbound, Phase: storage.PhaseBound, DynamicDelete: true, Deleting: true, Confirmed: true}, WakeClaim},
		"static volume deleted before Bound wakes claim":     {VolumeState{Claim: storage.ClaimUnbound, Phase: storage.PhaseAvailable, Deleting: true, Confirmed: true}, WakeClaim},
		"deleted claim is confirmed":                         {VolumeState{Claim: storage.ClaimGone, Phase: storage.PhaseBound}, ConfirmClaim},
		"volume of a deleted claim is released":              {VolumeState{Claim: storage.ClaimGone, Phase: storage.PhaseBound, Confirmed: true}, SetPhaseReleased},
		"Released volume is left alone":                      {VolumeState{Claim: storage.ClaimGone, Phase: storage.PhaseReleased}, Leave},
		"Failed is not overwritten":                          {VolumeState{Claim: storage.ClaimGone, Phase: storage.PhaseFailed, Confirmed: true}, Leave},
		"dynamic volume of claim elsewhere is released":      {VolumeState{Claim: storage.ClaimElsewhere, Phase: storage.PhaseAvailable, DynamicDelete: true, Confirmed: true}, SetPhaseReleased},
		"static volume of claim elsewhere loses claimRef":    {VolumeState{Claim: storage.ClaimElsewhere, Phase: storage.PhaseAvailable, Confirmed: true}, ClearClaimRef},
		"scrubbed volume does not become Available":          {VolumeState{Claim: storage.ClaimNone, Phase: storage.PhaseReleased, Scrubbed: true}, Leave},
		"scrubbed volume named by its claim stays Released":  {VolumeState{Claim: storage.ClaimBound, Phase: storage.PhaseReleased, Scrubbed: true}, Leave},
		"scrubbed volume of a deleted claim is released":     {VolumeState{Claim: storage.ClaimGone, Phase: storage.PhaseBound, Confirmed: true, Scrubbed: true}, SetPhaseReleased},
		"claim bound elsewhere is confirmed":                 {VolumeState{Claim: storage.ClaimElsewhere, Phase: storage.PhaseAvailable}, ConfirmClaim},
	} {
		t.Run(name, func(t *testing.T) {
			if got := DecideVolume(tc.state).Action; got != tc.want {
				t.Errorf("DecideVolume(%+v) = %v, want %v", tc.state, got, tc.want)
			}
		})
	}
}

// A claim that names its volume completes the binding of the volume by itself: the volume's
// reconciler may wake it.
func TestClaimSetsPhaseOfItsVolume(t *testing.T) {
	for s := range claimStates {
		if s.Volume == BoundToClaim && s.Named && !s.VolumeBound && !s.VolumeScrubbed && !s.Provisioning && !s.MigratedToWrong {
			if got := DecideClaim(s).Action; got != SetVolumePhaseBound {
				t.Errorf("%v in %+v", got, s)
			}
		}
	}
}

// volumeStates yields every value of VolumeState.
func volumeStates(yield func(VolumeState) bool) {
	for claim := storage.ClaimNone; claim <= storage.ClaimElsewhere; claim++ {
		for phase := storage.PhasePending; phase <= storage.PhaseFailed; phase++ {
			for bits := range 1 << 6 {
				on := func(i int) bool { return bits>>i&1 == 1 }
				s := VolumeState{Claim: claim, Phase: phase, DynamicDelete: on(0), Confirmed: on(1), Deleting: on(2), ModesDiffer: on(3), Scrubbed: on(4), Owned: on(5)}
				if !yield(s) {
					return
				}
			}
		}
	}
}

func TestVolumeIsReleasedOnlyAfterLiveRead(t *testing.T) {
	for s := range volumeStates {
		action := DecideVolume(s).Action
		takesAway := action == SetPhaseReleased || action == ClearClaimRef
		neverBound := s.Deleting && s.DynamicDelete && s.Phase != storage.PhaseBound && (s.Claim == storage.ClaimUnbound || s.Claim == storage.ClaimLost)
		if takesAway && (!s.Confirmed || s.Claim != storage.ClaimGone && s.Claim != storage.ClaimElsewhere && !neverBound) {
			t.Errorf("%v in %+v", action, s)
		}
		if action == ConfirmClaim && s.Confirmed {
			t.Errorf("confirmed twice: %+v", s)
		}
	}
}

func TestMismatchNamesReason(t *testing.T) {
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

func TestDeletedBoundVolumeStaysReserved(t *testing.T) {
	claim := waitingClaim("c", "1Gi")
	for name, tc := range map[string]struct {
		phase v1.PersistentVolumePhase
		uid   types.UID
		taken bool
	}{
		"volume is Bound":            {v1.VolumeBound, claim.UID, true},
		"volume was never Bound":     {v1.VolumePending, claim.UID, false},
		"volume is reserved by name": {v1.VolumeBound, "", false},
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

func TestReservedVolumeWithUIDComesFirst(t *testing.T) {
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
		t.Errorf("a volume that is too small is reserved: %s", got.Name)
	}
}
