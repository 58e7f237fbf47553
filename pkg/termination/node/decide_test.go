package node_test

import (
	"reflect"
	"testing"

	. "github.com/exeunt-io/exeunt/pkg/termination/node"
	"github.com/exeunt-io/exeunt/test/enumtest"
)

func TestNames(t *testing.T) {
	enumtest.ExpectNames(t, Unserved, Others)
	enumtest.ExpectNames(t, NoProvider, Socket)
	enumtest.ExpectNames(t, NoPods, Awaited)
	enumtest.ExpectNames(t, Detached, Attached)
	enumtest.ExpectNames(t, Unknown, Shared)
	enumtest.ExpectNames(t, NoProof, Revoked)
	enumtest.ExpectNames(t, Wait, Abandon)
}

// deleting is a served node that drains, with this change.
func deleting(provider Provider, change func(*State)) State {
	s := State{Owner: Ours, Provider: provider, Pods: Awaited, Deleting: true, Protected: true, Begun: true, Instance: Running}
	if provider != Socket {
		s.Instance = Unknown
	}
	change(&s)
	return s
}

func drained(s *State) { s.Pods, s.Settled = NoPods, true }

type cases map[string]struct {
	state State
	want  Decision
}

func (c cases) run(t *testing.T) {
	t.Helper()
	for name, tc := range c {
		t.Run(name, func(t *testing.T) {
			if got := Decide(tc.state); got != tc.want {
				t.Errorf("Decide(%+v) = %v, want %v", tc.state, got, tc.want)
			}
		})
	}
}

// off is a machine that is proven to be off.
func off(instance Instance, volumes Volumes, marked bool) func(*State) {
	return func(s *State) {
		s.Pods, s.Proof, s.Instance, s.Volumes, s.Marked = NoPods, Given, instance, volumes, marked
	}
}

// ended is a node whose time E has come.
func ended(instance Instance, volumes Volumes) func(*State) {
	return func(s *State) { s.Ended, s.Instance, s.Volumes = true, instance, volumes }
}

func TestDecideBeforeAndDuringDrain(t *testing.T) {
	cases{
		"a node without a label":       {State{}, Decision{Wait, NotServed}},
		"a node with the label":        {State{Owner: Ours}, Decision{Protect, LabelSet}},
		"a protected node":             {State{Owner: Ours, Protected: true}, Decision{Wait, NotDeleted}},
		"#07 the label was removed":    {State{Protected: true}, Decision{Release, LabelRemoved}},
		"#07 removed after the DELETE": {deleting(Manual, func(s *State) { s.Owner = Unserved }), Decision{Wait, Draining}},
		"#05 an invalid label, deleted": {State{Deleting: true, Protected: true},
			Decision{Release, NotServed}},
		"deleted before it was protected": {State{Owner: Ours, Deleting: true}, Decision{Wait, NotServed}},
		"#60 Karpenter's node":            {State{Owner: Others, Protected: true, Deleting: true}, Decision{Wait, OwnedByOthers}},
		"#58 the finalizer was stripped":  {deleting(Socket, func(s *State) { s.Protected = false }), Decision{Abandon, FinalizerStripped}},
		"#01 the first action":            {deleting(Socket, func(s *State) { s.Begun = false }), Decision{Taint, DeletionRequested}},
		"#55 a silent kubelet at the DELETE": {deleting(NoProvider, func(s *State) { s.Begun, s.Silent = false, true }),
			Decision{HandOver, KubeletSilent}},
		"a silent kubelet, manual":             {deleting(Manual, func(s *State) { s.Begun, s.Silent = false, true }), Decision{Taint, DeletionRequested}},
		"pods are left":                        {deleting(Socket, func(*State) {}), Decision{Wait, Draining}},
		"none, the kubelet falls silent later": {deleting(NoProvider, func(s *State) { s.Silent = true }), Decision{Wait, Draining}},
		"none, the kubelet answers":            {deleting(NoProvider, func(s *State) { s.Begun = false }), Decision{Taint, DeletionRequested}},
	}.run(t)
}

func TestDecideDrained(t *testing.T) {
	cases{
		"#40 a volume is attached":  {deleting(Socket, func(s *State) { drained(s); s.Volumes = Attached }), Decision{Wait, AwaitingVolumeDetachment}},
		"#28 a pod may arrive late": {deleting(Socket, func(s *State) { drained(s); s.Settled = false }), Decision{Wait, Settling}},
		"#50 drained":               {deleting(Socket, drained), Decision{DeleteInstance, Drained}},
		"#50 drained, deleted":      {deleting(Socket, func(s *State) { drained(s); s.Deleted = true }), Decision{Release, Drained}},
		"#50 drained, gone":         {deleting(Socket, func(s *State) { drained(s); s.Instance = Gone }), Decision{Release, Drained}},
		"#50 drained, foreign":      {deleting(Socket, func(s *State) { drained(s); s.Instance = Foreign }), Decision{Release, MachineRuns}},
		"#54 drained, no answer":    {deleting(Socket, func(s *State) { drained(s); s.Instance = Unknown }), Decision{Wait, InstanceUnreadable}},
		"#55 drained, none":         {deleting(NoProvider, drained), Decision{HandOver, Drained}},
		"#56 drained, manual":       {deleting(Manual, drained), Decision{Release, MachineRuns}},
	}.run(t)
}

func TestDecideEnded(t *testing.T) {
	cases{
		"#41 stranded volumes":       {deleting(Socket, func(s *State) { drained(s); s.Volumes = Stranded }), Decision{Stop, DeadlineReached}},
		"#42 E":                      {deleting(Socket, ended(Running, Attached)), Decision{Stop, DeadlineReached}},
		"#54 E, provider unreadable": {deleting(Socket, ended(Unknown, Attached)), Decision{Stop, DeadlineReached}},
		"#42 E, stopping":            {deleting(Socket, ended(Stopping, Attached)), Decision{Wait, InstanceStops}},
		"#43 E, Stop is unsupported": {deleting(Socket, func(s *State) { ended(Running, Attached)(s); s.NoStop = true }),
			Decision{Wait, DisksAttached}},
		"#43 E, Stop is unsupported, nothing attached": {deleting(Socket, func(s *State) { ended(Running, Detached)(s); s.NoStop = true }),
			Decision{DeleteInstance, DeadlineReached}},
		"#52 E, never seen": {deleting(Socket, ended(Unseen, Attached)), Decision{Wait, InstanceUnknown}},
		"#57 E, foreign":    {deleting(Socket, ended(Foreign, Attached)), Decision{Wait, InstanceForeign}},
		"#57 E, shared":     {deleting(Socket, ended(Shared, Detached)), Decision{Wait, InstanceShared}},
		"#55 E, none":       {deleting(NoProvider, ended(Unknown, Attached)), Decision{HandOver, DeadlineReached}},
		"#56 E, manual":     {deleting(Manual, ended(Unknown, Attached)), Decision{Wait, AwaitingPowerOff}},
		"#43 E, deleted": {deleting(Socket, func(s *State) { ended(Running, Detached)(s); s.NoStop, s.Deleted = true, true }),
			Decision{Wait, InstanceStops}},
	}.run(t)
}

func TestDecideOff(t *testing.T) {
	cases{
		"#51 off at any time":   {deleting(Socket, func(s *State) { s.Instance, s.Proof = Off, Begun }), Decision{Confirm, ProofIncomplete}},
		"#51 before the DELETE": {State{Owner: Ours, Protected: true, Instance: Gone, Proof: Given}, Decision{Wait, NotDeleted}},
		"#51 off before the first action": {deleting(Socket, func(s *State) { off(Off, Attached, false)(s); s.Begun = false }),
			Decision{Taint, DeletionRequested}},
		"#42 proof, pods":             {deleting(Socket, func(s *State) { off(Off, Attached, false)(s); s.Pods = Unawaited }), Decision{Clean, MachineOff}},
		"#42 proof, kept pods":        {deleting(Socket, func(s *State) { off(Off, Attached, false)(s); s.Pods = Kept }), Decision{MarkOutOfService, MachineOff}},
		"#42 proof, attached":         {deleting(Socket, off(Off, Attached, false)), Decision{MarkOutOfService, MachineOff}},
		"#45 not begun":               {deleting(Socket, off(Off, Attached, true)), Decision{Wait, DetachNotStarted}},
		"#44 off, detaching":          {deleting(Socket, off(Off, Detaching, true)), Decision{Wait, AwaitingVolumeDetachment}},
		"#44 gone, detaching":         {deleting(Socket, off(Gone, Detaching, true)), Decision{Release, MachineOff}},
		"#42 detached":                {deleting(Socket, off(Off, Detached, true)), Decision{DeleteInstance, MachineOff}},
		"#42 detached, deleted":       {deleting(Socket, func(s *State) { off(Off, Detached, true)(s); s.Deleted = true }), Decision{Release, MachineOff}},
		"#42 awaited pods":            {deleting(Socket, func(s *State) { off(Off, Detached, true)(s); s.Pods = Awaited }), Decision{Clean, MachineOff}},
		"#41 proof, stranded":         {deleting(Socket, off(Off, Stranded, false)), Decision{MarkOutOfService, MachineOff}},
		"#41 proof, stranded, marked": {deleting(Socket, off(Off, Stranded, true)), Decision{Wait, DetachNotStarted}},
		"#56 manual, detaching":       {deleting(Manual, off(Unknown, Detaching, false)), Decision{Release, MachineOff}},
		"#56 manual, attached":        {deleting(Manual, off(Unknown, Attached, true)), Decision{Wait, DetachNotStarted}},
		"#53 the machine runs again": {deleting(Socket, func(s *State) { off(Running, Detaching, true)(s); s.Proof = Revoked }),
			Decision{Unmark, InstanceCameBack}},
		"#53 stopped again": {deleting(Socket, func(s *State) { off(Running, Attached, false)(s); s.Proof, s.Ended = Revoked, true }),
			Decision{Stop, DeadlineReached}},
	}.run(t)
}

// states calls yield for every state: 3.5 million.
func states(yield func(State)) {
	var s State
	fields := reflect.ValueOf(&s).Elem()
	flags := []*bool{&s.Deleting, &s.Protected, &s.Begun, &s.Silent, &s.Ended, &s.Settled, &s.NoStop, &s.Marked, &s.Deleted}
	if fields.NumField() != 6+len(flags) {
		panic("a field of State is not enumerated")
	}
	for s.Owner = range Others + 1 {
		for s.Provider = range Socket + 1 {
			for s.Pods = range Awaited + 1 {
				for s.Volumes = range Attached + 1 {
					for s.Instance = range Shared + 1 {
						for s.Proof = range Revoked + 1 {
							for bits := range 1 << len(flags) {
								for i, flag := range flags {
									*flag = bits>>i&1 == 1
								}
								yield(s)
							}
						}
					}
				}
			}
		}
	}
}

func TestNothingIsForcedBeforeProof(t *testing.T) {
	states(func(s State) {
		if a := Decide(s).Action; (a == Clean || a == MarkOutOfService) && s.Proof != Given {
			t.Errorf("forced: %+v", s)
		}
	})
}

func TestMachineWithVolumeIsNotDeleted(t *testing.T) {
	states(func(s State) {
		if Decide(s).Action == DeleteInstance && (s.Volumes != Detached || s.Provider != Socket ||
			s.Instance == Foreign || s.Instance == Shared || s.Instance == Unseen) {
			t.Errorf("deleted: %+v", s)
		}
	})
}

func TestMachineIsStoppedOnlyForDeadline(t *testing.T) {
	states(func(s State) {
		idle := s.Settled && s.Pods != Awaited
		if Decide(s).Action == Stop && (!s.Ended && !idle || s.Provider != Socket || s.NoStop ||
			s.Instance == Foreign || s.Instance == Shared || s.Instance == Unseen) {
			t.Errorf("stopped: %+v", s)
		}
	})
}

func TestOnlyDeletedNodesOfOursAreTouched(t *testing.T) {
	states(func(s State) {
		a := Decide(s).Action
		if s.Owner == Others && a != Wait || !s.Deleting && a != Wait && a != Protect && a != Release ||
			!s.Protected && a != Wait && a != Protect && a != Abandon ||
			s.Owner == Unserved && !s.Begun && a != Wait && a != Release {
			t.Errorf("%v: %+v", a, s)
		}
	})
}

// Promise 3: whatever pods, volumes and the kubelet do, a machine that is the node's is stopped from E.
func TestMachineIsStoppedFromE(t *testing.T) {
	states(func(s State) {
		if s.Owner == Others || !s.Deleting || !s.Protected || !s.Begun || s.Provider != Socket || !s.Ended || s.NoStop ||
			s.Proof == Given || s.Proof == Begun || s.Marked || s.Instance != Running && s.Instance != Unknown {
			return
		}
		if a := Decide(s).Action; a != Stop && (a != DeleteInstance && a != Release && a != Wait || s.Volumes != Detached || s.Pods == Awaited) {
			t.Errorf("%v: %+v", Decide(s), s)
		}
	})
}

// A finalizer of ours that nothing removes is the worst way to wait: each state has an end, or names what it waits for.
func TestNodeIsReleasedOnceNothingIsLeft(t *testing.T) {
	states(func(s State) {
		nothing := s.Pods != Awaited && s.Pods != Unawaited && s.Volumes == Detached && s.Settled && !s.Marked
		if s.Owner == Others || !s.Deleting || !s.Protected || !s.Begun || !nothing {
			return
		}
		switch d := Decide(s); d.Action {
		case Release, HandOver, DeleteInstance:
		case Wait:
			if s.Provider != Socket || s.Instance != Unknown || s.Deleted {
				t.Errorf("%v: %+v", d, s)
			}
		default:
			t.Errorf("%v: %+v", d, s)
		}
	})
}
