package node_test

import (
	"reflect"
	"testing"

	. "github.com/exeunt-io/exeunt/pkg/termination/node"
	"github.com/exeunt-io/exeunt/test/enumtest"
)

func TestNames(t *testing.T) {
	enumtest.ExpectNames(t, Unserved, Unreadable)
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
		"deleted before it was protected":         {State{Owner: Ours, Deleting: true}, Decision{Wait, NotServed}},
		"#60 Karpenter's node":                    {State{Owner: Others, Deleting: true}, Decision{Wait, OwnedByOthers}},
		"#60 Karpenter's node with our finalizer": {State{Owner: Others, Protected: true}, Decision{Release, OwnedByOthers}},
		"#60 claims cannot be read":               {State{Owner: Unreadable, Protected: true, Deleting: true}, Decision{Wait, ClaimsUnreadable}},
		"#60 Karpenter comes later":               {deleting(Socket, func(s *State) { s.Owner = Others }), Decision{Wait, Draining}},
		"#58 the finalizer was stripped":          {deleting(Socket, func(s *State) { s.Protected = false }), Decision{Abandon, FinalizerStripped}},
		"#01 the first action":                    {deleting(Socket, func(s *State) { s.Begun = false }), Decision{Taint, DeletionRequested}},
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
		"#40 a volume is attached":     {deleting(Socket, func(s *State) { drained(s); s.Volumes = Attached }), Decision{Wait, AwaitingVolumeDetachment}},
		"#28 a pod may arrive late":    {deleting(Socket, func(s *State) { drained(s); s.Settled = false }), Decision{Wait, Settling}},
		"#50 drained":                  {deleting(Socket, drained), Decision{DeleteInstance, Drained}},
		"#50 drained, deleted":         {deleting(Socket, func(s *State) { drained(s); s.Deleted = true }), Decision{Wait, InstanceStops}},
		"#50 drained, deleted and off": {deleting(Socket, func(s *State) { drained(s); s.Deleted, s.Instance = true, Off }), Decision{Release, Drained}},
		"#50 drained, off":             {deleting(Socket, func(s *State) { drained(s); s.Instance = Off }), Decision{DeleteInstance, Drained}},
		"drained, no Delete, off":      {deleting(Socket, func(s *State) { drained(s); s.NoDelete, s.Instance = true, Off }), Decision{Release, Drained}},
		"drained, no Delete":           {deleting(Socket, func(s *State) { drained(s); s.NoDelete = true }), Decision{Release, MachineRuns}},
		"drained, finished pods":       {deleting(Manual, func(s *State) { drained(s); s.Pods = Finished }), Decision{Release, MachineRuns}},
		"#21 a stuck pod":              {deleting(Socket, func(s *State) { drained(s); s.Pods = Stuck }), Decision{Stop, DeadlineReached}},
		"#21 a stuck pod, manual":      {deleting(Manual, func(s *State) { drained(s); s.Pods = Stuck }), Decision{Wait, AwaitingPowerOff}},
		"#21 a stuck pod, none":        {deleting(NoProvider, func(s *State) { drained(s); s.Pods = Stuck }), Decision{HandOver, DeadlineReached}},
		"#54 drained, no answer, E":    {deleting(Socket, func(s *State) { drained(s); s.Instance, s.Ended = Unknown, true }), Decision{Stop, DeadlineReached}},
		"#54 drained, no answer, E, no Stop": {deleting(Socket, func(s *State) { drained(s); s.Instance, s.Ended, s.NoStop = Unknown, true, true }),
			Decision{Wait, InstanceUnreadable}},
		"neither Stop nor Delete": {deleting(Socket, func(s *State) { s.Ended, s.NoStop, s.NoDelete = true, true, true }), Decision{Wait, AwaitingPowerOff}},
		"#50 drained, gone":       {deleting(Socket, func(s *State) { drained(s); s.Instance = Gone }), Decision{Release, Drained}},
		"#50 drained, foreign":    {deleting(Socket, func(s *State) { drained(s); s.Instance = Foreign }), Decision{Release, MachineRuns}},
		"#54 drained, no answer":  {deleting(Socket, func(s *State) { drained(s); s.Instance = Unknown }), Decision{Wait, InstanceUnreadable}},
		"#55 drained, none":       {deleting(NoProvider, drained), Decision{HandOver, Drained}},
		"#56 drained, manual":     {deleting(Manual, drained), Decision{Release, MachineRuns}},
	}.run(t)
}

func TestDecideEnded(t *testing.T) {
	cases{
		"#41 stranded volumes":       {deleting(Socket, func(s *State) { drained(s); s.Volumes = Stranded }), Decision{Stop, DeadlineReached}},
		"#17 E, a DELETE is refused": {deleting(Socket, func(s *State) { ended(Running, Detached)(s); s.Pods = Awaited }), Decision{Stop, DeadlineReached}},
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
		"#42 proof, pods":             {deleting(Socket, func(s *State) { off(Off, Attached, false)(s); s.Pods = Stuck }), Decision{Clean, MachineOff}},
		"#42 proof, kept pods":        {deleting(Socket, func(s *State) { off(Off, Attached, false)(s); s.Pods = Kept }), Decision{MarkOutOfService, MachineOff}},
		"#42 proof, attached":         {deleting(Socket, off(Off, Attached, false)), Decision{MarkOutOfService, MachineOff}},
		"#45 not begun":               {deleting(Socket, off(Off, Attached, true)), Decision{Wait, DetachNotStarted}},
		"#44 off, detaching":          {deleting(Socket, off(Off, Detaching, true)), Decision{Wait, AwaitingVolumeDetachment}},
		"#44 gone, detaching":         {deleting(Socket, off(Gone, Detaching, true)), Decision{Release, MachineOff}},
		"#42 detached":                {deleting(Socket, off(Off, Detached, true)), Decision{DeleteInstance, MachineOff}},
		"#42 detached, deleted":       {deleting(Socket, func(s *State) { off(Off, Detached, true)(s); s.Deleted = true }), Decision{Release, MachineOff}},
		"#42 finished pods":           {deleting(Socket, func(s *State) { off(Off, Detached, true)(s); s.Pods = Finished }), Decision{Clean, MachineOff}},
		"#42 detached, no Delete":     {deleting(Socket, func(s *State) { off(Off, Detached, true)(s); s.NoDelete = true }), Decision{Release, MachineOff}},
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

// states calls yield for every state: 8 million.
func states(yield func(State)) {
	var s State
	if fields := reflect.TypeFor[State]().NumField(); fields != 6+10 {
		panic("a field of State is not enumerated")
	}
	for s.Owner = range Unreadable + 1 {
		for s.Provider = range Socket + 1 {
			for s.Pods = range Awaited + 1 {
				for s.Volumes = range Attached + 1 {
					for s.Instance = range Shared + 1 {
						for s.Proof = range Revoked + 1 {
							flags(s, yield)
						}
					}
				}
			}
		}
	}
}

func flags(s State, yield func(State)) {
	for bits := range 1 << 10 {
		has := func(bit int) bool { return bits>>bit&1 == 1 }
		s.Deleting, s.Protected, s.Begun, s.Silent, s.Ended = has(0), has(1), has(2), has(3), has(4)
		s.Settled, s.NoStop, s.Marked, s.Deleted, s.NoDelete = has(5), has(6), has(7), has(8), has(9)
		yield(s)
	}
}

func TestNothingIsForcedBeforeProof(t *testing.T) {
	states(func(s State) {
		if a := Decide(s).Action; (a == Clean || a == MarkOutOfService) && s.Proof != Given {
			t.Fatalf("forced: %+v", s)
		}
	})
}

func unidentified(s State) bool {
	return s.Instance == Foreign || s.Instance == Shared || s.Instance == Unseen
}

func TestMachineWithVolumeIsNotDeleted(t *testing.T) {
	states(func(s State) {
		if Decide(s).Action == DeleteInstance && (s.Volumes != Detached || s.Provider != Socket || unidentified(s) || s.Deleted || s.NoDelete) {
			t.Fatalf("deleted: %+v", s)
		}
	})
}

func TestMachineIsStoppedOnlyForDeadline(t *testing.T) {
	states(func(s State) {
		idle := s.Settled && s.Pods != Awaited
		if Decide(s).Action == Stop && (!s.Ended && !idle || s.Provider != Socket || s.NoStop || unidentified(s)) {
			t.Fatalf("stopped: %+v", s)
		}
	})
}

func TestOnlyDeletedNodesOfOursAreTouched(t *testing.T) {
	states(func(s State) {
		a := Decide(s).Action
		others := !s.Begun && s.Owner != Ours
		if others && a != Wait && a != Release || !s.Begun && s.Owner == Unreadable && a != Wait ||
			(!s.Begun || s.Owner == Ours) && !s.Deleting && a != Wait && a != Protect && a != Release ||
			!s.Protected && a != Wait && a != Protect && a != Abandon {
			t.Fatalf("%v: %+v", a, s)
		}
	})
}

// A finalizer that we added before we knew of the owner would keep the owner's node for ever.
func TestNodeOfOthersIsLetGo(t *testing.T) {
	states(func(s State) {
		if s.Owner == Others && !s.Begun && s.Protected != (Decide(s).Action == Release) {
			t.Fatalf("%v: %+v", Decide(s), s)
		}
	})
}

// Promise 3: whatever pods, volumes and the kubelet do, a machine that is the node's is stopped from E.
func TestMachineIsStoppedFromE(t *testing.T) {
	states(func(s State) {
		if !s.Deleting || !s.Protected || !s.Begun || s.Provider != Socket || !s.Ended || s.NoStop ||
			s.Proof == Given || s.Proof == Begun || s.Marked || s.Instance != Running && s.Instance != Unknown {
			return
		}
		ends := s.Volumes == Detached && s.Pods != Awaited && s.Pods != Stuck && s.Settled && (s.Instance == Running || s.NoDelete)
		if a := Decide(s).Action; a != Stop && !ends {
			t.Fatalf("%v: %+v", Decide(s), s)
		}
	})
}

// With a provider a Node is released only once no container of a pod that others replace can run.
func TestNodeWithStuckPodIsNotReleasedBeforeProof(t *testing.T) {
	states(func(s State) {
		if Decide(s).Action == Release && s.Deleting && s.Begun && s.Provider != NoProvider && s.Proof != Given &&
			(s.Pods == Stuck || s.Pods == Awaited || s.Volumes != Detached) {
			t.Fatalf("%v: %+v", Decide(s), s)
		}
	})
}

// A finalizer of ours that nothing removes is the worst way to wait: each state has an end, or names what it waits for.
func TestNodeIsReleasedOnceNothingIsLeft(t *testing.T) {
	states(func(s State) {
		nothing := (s.Pods == NoPods || s.Pods == Kept) && s.Volumes == Detached && s.Settled && !s.Marked
		if !s.Deleting || !s.Protected || !s.Begun || !nothing {
			return
		}
		stops := s.Deleted && (s.Instance == Running || s.Instance == Stopping)
		switch d := Decide(s); d.Action {
		case Release, HandOver, DeleteInstance:
		case Stop:
			if s.Instance != Unknown {
				t.Fatalf("%v: %+v", d, s)
			}
		case Wait:
			if s.Provider != Socket || s.Instance != Unknown && !stops {
				t.Fatalf("%v: %+v", d, s)
			}
		default:
			t.Fatalf("%v: %+v", d, s)
		}
	})
}
