package measure

import (
	"maps"
	"slices"

	"github.com/exeunt-io/exeunt/test/bench/plan"
)

// The processes, as results name them.
const (
	Server  = "API server"
	Etcd    = "etcd"
	Loops   = "loops"
	Sidecar = "sidecar"
	Driver  = "driver"
	Load    = "load generator"
	// OtherSidecars are those of drivers that have nothing to do.
	OtherSidecars = "other sidecars"
	// Collector is the garbage collector.
	Collector = "collector"
)

// Turn is what one turn cost.
type Turn struct {
	plan.Turn
	Run    Run
	Phases []Phase
	// PeakMemory is in bytes by process: of the programs since their start, of the API server
	// since its start. RestMemory is the resident size while nothing happens, where measured.
	PeakMemory map[string]float64
	RestMemory map[string]float64 `json:",omitempty"`
}

// Run is an invocation of the program that measures.
type Run struct {
	// Began is the time of its begin, in UTC, Machine describes processor and system, Version is
	// that of our programs.
	Began, Machine, Version string
}

// Result is everything that was measured, each scenario in one run.
type Result struct {
	Turns []Turn
}

// With returns a result in which another one replaces the scenarios that it has, in the order
// of all scenarios.
func (r Result) With(other Result) Result {
	var turns []Turn
	for _, s := range plan.Scenarios() {
		source := r
		if slices.ContainsFunc(other.Turns, func(t Turn) bool { return t.Scenario.Name == s.Name }) {
			source = other
		}
		for _, turn := range source.Turns {
			if turn.Scenario.Name == s.Name {
				turns = append(turns, turn)
			}
		}
	}
	return Result{Turns: turns}
}

// Runs returns the runs in the order of their first turn.
func (r Result) Runs() []Run {
	var runs []Run
	for _, turn := range r.Turns {
		if !slices.Contains(runs, turn.Run) {
			runs = append(runs, turn.Run)
		}
	}
	return runs
}

// In returns the turns of a run.
func (r Result) In(run Run) Result {
	return Result{Turns: slices.DeleteFunc(slices.Clone(r.Turns), func(t Turn) bool { return t.Run != run })}
}

// Scenarios returns the measured scenarios in the order of their first turn.
func (r Result) Scenarios() []plan.Scenario {
	var scenarios []plan.Scenario
	for _, turn := range r.Turns {
		if !slices.ContainsFunc(scenarios, func(s plan.Scenario) bool { return s.Name == turn.Scenario.Name }) {
			scenarios = append(scenarios, turn.Scenario)
		}
	}
	return scenarios
}

// Of returns the turns of a side in a scenario.
func (r Result) Of(scenario string, side plan.Side) []Turn {
	return slices.DeleteFunc(slices.Clone(r.Turns),
		func(t Turn) bool { return t.Scenario.Name != scenario || t.Side != side })
}

// Typical returns the medians of several turns of one side, false for no turn.
func Typical(turns []Turn) (Turn, bool) {
	if len(turns) == 0 {
		return Turn{}, false
	}
	typical := Turn{Turn: turns[0].Turn}
	for i := range turns[0].Phases {
		phases := pick(turns, func(t Turn) Phase { return t.Phases[i] })
		typical.Phases = append(typical.Phases, typicalPhase(phases))
	}
	typical.PeakMemory = medians(pick(turns, func(t Turn) map[string]float64 { return t.PeakMemory }))
	if turns[0].RestMemory != nil {
		typical.RestMemory = medians(pick(turns, func(t Turn) map[string]float64 { return t.RestMemory }))
	}
	return typical, true
}

// typicalPhase returns the medians of the same phase in several rounds, and all latencies.
func typicalPhase(phases []Phase) Phase {
	typical := phases[0]
	typical.Seconds = Median(pick(phases, func(p Phase) float64 { return p.Seconds }))
	typical.CPU = medians(pick(phases, func(p Phase) map[string]float64 { return p.CPU }))
	typical.Requests = medians(pick(phases, func(p Phase) map[Request]float64 { return p.Requests }))
	typical.WatchBytes = medians(pick(phases, func(p Phase) map[string]float64 { return p.WatchBytes }))
	typical.Calls = medians(pick(phases, func(p Phase) map[string]float64 { return p.Calls }))
	typical.Latencies = slices.Concat(pick(phases, func(p Phase) []float64 { return p.Latencies })...)
	return typical
}

// pick returns one value of each element.
func pick[E, V any](elements []E, value func(E) V) []V {
	values := make([]V, 0, len(elements))
	for _, element := range elements {
		values = append(values, value(element))
	}
	return values
}

// medians returns the median of each key; a missing key is 0.
func medians[K comparable](rounds []map[K]float64) map[K]float64 {
	keys := map[K]float64{}
	for _, round := range rounds {
		maps.Copy(keys, round)
	}
	for key := range keys {
		keys[key] = Median(pick(rounds, func(m map[K]float64) float64 { return m[key] }))
	}
	return keys
}

// Phase returns the phase with the name, false for none.
func (t Turn) Phase(name string) (Phase, bool) {
	for _, phase := range t.Phases {
		if phase.Name == name {
			return phase, true
		}
	}
	return Phase{}, false
}
