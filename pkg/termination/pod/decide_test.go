package pod_test

import (
	"testing"

	. "github.com/exeunt-io/exeunt/pkg/termination/pod"
	"github.com/exeunt-io/exeunt/test/enumtest"
)

func TestNames(t *testing.T) {
	enumtest.ExpectNames(t, Ordinary, Mirror)
	enumtest.ExpectNames(t, Running, ContainersEnded)
	enumtest.ExpectNames(t, Early, Proven)
	enumtest.ExpectNames(t, Open, ByPause)
	enumtest.ExpectNames(t, Untried, Refused)
	enumtest.ExpectNames(t, Leave, Remove)
}

func TestDecide(t *testing.T) {
	for name, tc := range map[string]struct {
		state State
		want  Decision
	}{
		"#10 a pod is evicted":                                   {State{}, Decision{Evict, ToEvict}},
		"#11 a blocked pod waits":                                {State{Answer: Blocked}, Decision{Wait, BudgetBlocks}},
		"#11 one eviction of a budget at a time":                 {State{Gate: ByBudget}, Decision{Wait, BudgetInUse}},
		"#12 at L an eviction is tried":                          {State{Moment: FromL}, Decision{Evict, DeadlineNear}},
		"#12 at L a blocked pod is deleted":                      {State{Moment: FromL, Answer: Blocked}, Decision{Delete, DeadlineNear}},
		"#12 L passes an eviction in flight":                     {State{Moment: FromL, Gate: ByBudget}, Decision{Evict, DeadlineNear}},
		"#13 do-not-disrupt keeps a pod":                         {State{Gate: ByAnnotation}, Decision{Wait, DoNotDisrupt}},
		"#13 do-not-disrupt ends at L":                           {State{Gate: ByAnnotation, Moment: FromL}, Decision{Evict, DeadlineNear}},
		"#14 a refused pod waits":                                {State{Answer: Refused}, Decision{Wait, EvictionRefused}},
		"#14 at L a refused pod is deleted":                      {State{Answer: Refused, Moment: FromL}, Decision{Delete, DeadlineNear}},
		"#15 a pause delays an eviction":                         {State{Gate: ByPause}, Decision{Wait, RequestsPause}},
		"#15 at L a pod is deleted in spite of a pause":          {State{Gate: ByPause, Moment: FromL}, Decision{Delete, DeadlineNear}},
		"#16 an ending namespace deletes the pod":                {State{Gate: ByNamespace}, Decision{Wait, NamespaceEnds}},
		"#16 at L the pod of an ending namespace is deleted":     {State{Gate: ByNamespace, Moment: FromL}, Decision{Delete, DeadlineNear}},
		"#20 a pod that ends in time is awaited":                 {State{End: InTime, Moment: FromShortening}, Decision{Wait, Terminating}},
		"#20 a pod that ends too late is awaited before P - 5 s": {State{End: BeyondP, Moment: FromL}, Decision{Wait, TerminatingBeyond}},
		"#20 a pod that ends too late is shortened at P - 5 s":   {State{End: BeyondP, Moment: FromShortening}, Decision{Shorten, TerminatingBeyond}},
		"#20 a pod of a DaemonSet is not shortened":              {State{Kind: Daemon, End: BeyondP, Moment: FromShortening}, Decision{Wait, TerminatingBeyond}},
		"#21 an overdue pod is not awaited":                      {State{End: Overdue}, Decision{Leave, KubeletStuck}},
		"#22 a pod that only a finalizer keeps is not awaited":   {State{End: ContainersEnded}, Decision{Leave, ForeignFinalizer}},
		"#23 a finished pod is left":                             {State{End: Finished, Moment: FromL}, Decision{Leave, ContainersFinished}},
		"#23 a static pod is left":                               {State{Kind: Mirror, Moment: FromL}, Decision{Leave, StaticPod}},
		"#23 a finished pod is removed after the proof":          {State{End: Finished, Moment: Proven}, Decision{Remove, MachineOff}},
		"#23 a static pod is removed after the proof":            {State{Kind: Mirror, Moment: Proven}, Decision{Remove, MachineOff}},
		"#24 a DaemonSet waits for the others":                   {State{Kind: Daemon, Gate: ByOrder}, Decision{Wait, OrderKeeps}},
		"#24 a DaemonSet's pod goes with the node":               {State{Kind: Daemon, Moment: Proven}, Decision{Leave, GoesWithNode}},
		"#24 a DaemonSet's pod with a volume is removed":         {State{Kind: Daemon, Moment: Proven, Volume: true}, Decision{Remove, MachineOff}},
		"#25 a pod that would return is left":                    {State{Returns: true, Moment: FromL}, Decision{Leave, WouldReturn}},
		"#25 a pod that would return and is deleted is awaited":  {State{Returns: true, End: InTime}, Decision{Wait, Terminating}},
		"#26 a critical pod waits for the ordinary ones":         {State{Kind: Critical, Gate: ByOrder}, Decision{Wait, OrderKeeps}},
		"#26 a critical pod does not wait after L":               {State{Kind: Critical, Gate: ByOrder, Moment: FromL}, Decision{Evict, DeadlineNear}},
		"#42 a pod whose machine is off is removed":              {State{End: InTime, Moment: Proven}, Decision{Remove, MachineOff}},
	} {
		t.Run(name, func(t *testing.T) {
			if got := Decide(tc.state); got != tc.want {
				t.Errorf("Decide(%+v) = %v, want %v", tc.state, got, tc.want)
			}
		})
	}
}

// states calls yield for every state.
func states(yield func(State)) {
	for kind := range Mirror + 1 {
		for end := range ContainersEnded + 1 {
			for moment := range Proven + 1 {
				for gate := range ByPause + 1 {
					for answer := range Refused + 1 {
						for bits := range 4 {
							yield(State{kind, end, moment, gate, answer, bits&1 != 0, bits&2 != 0})
						}
					}
				}
			}
		}
	}
}

func TestBeforeLOnlyEvictionsAndOnlyThroughAnOpenGate(t *testing.T) {
	states(func(s State) {
		d := Decide(s)
		if s.Moment == Early && d.Action != Wait && d.Action != Leave && (d.Action != Evict || s.Gate != Open || s.Answer != Untried) {
			t.Errorf("Decide(%+v) = %v", s, d)
		}
	})
}

func TestRemovedOnlyAfterProof(t *testing.T) {
	states(func(s State) {
		if (Decide(s).Action == Remove) && s.Moment != Proven {
			t.Errorf("removed: %+v", s)
		}
	})
}

func TestAfterProofNothingIsAwaited(t *testing.T) {
	states(func(s State) {
		if d := Decide(s); s.Moment == Proven && d.Action != Remove && d.Action != Leave {
			t.Errorf("Decide(%+v) = %v", s, d)
		}
	})
}

func TestRunningPodIsDeletedFromL(t *testing.T) {
	states(func(s State) {
		d := Decide(s)
		due := s.Moment == FromL || s.Moment == FromShortening
		if due && s.End == Running && s.Kind != Mirror && !s.Returns && d.Action != Evict && d.Action != Delete {
			t.Errorf("Decide(%+v) = %v", s, d)
		}
		if due && d.Action == Evict && s.Answer != Untried {
			t.Errorf("evicted again: %+v", s)
		}
	})
}

func TestTerminatingPodIsDeletedAgainOnlyNearP(t *testing.T) {
	states(func(s State) {
		d := Decide(s)
		if d.Action == Shorten && (s.End != BeyondP || s.Moment != FromShortening || s.Kind == Daemon) ||
			(d.Action == Evict || d.Action == Delete) && s.End != Running {
			t.Errorf("Decide(%+v) = %v", s, d)
		}
	})
}

func TestEveryDecisionIsKnown(t *testing.T) {
	states(func(s State) { enumtest.ExpectKnown(t, Decide(s).Action) })
}
