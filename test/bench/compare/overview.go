package main

import (
	"fmt"

	"github.com/exeunt-io/exeunt/test/bench/measure"
	"github.com/exeunt-io/exeunt/test/bench/plan"
)

// overview compares the speed of the sides: one row for each phase.
func overview(result measure.Result, scenarios []plan.Scenario) *table {
	t := &table{head: []string{"scenario, phase", "unit", "ours", "upstream", "ceiling", "ours : upstream",
		"ours : ceiling"}}
	eachPhase(result, scenarios, func(label string, sides map[plan.Side]measure.Phase) {
		unit, value := "per second", measure.Phase.Rate
		if hasLatencies(sides) {
			unit, value = "ms, median", func(p measure.Phase) float64 { return measure.Median(p.Latencies) }
		}
		ours, upstream, ceiling := of(sides, plan.Ours, value), of(sides, plan.Upstream, value),
			of(sides, plan.Ceiling, value)
		t.rows = append(t.rows, []string{label, unit, number(ours), number(upstream), number(ceiling), ratio(ours, upstream),
			ratio(ours, ceiling)})
	})
	return t
}

// costs compares what the sides cost: one row for each phase.
func costs(result measure.Result, scenarios []plan.Scenario) *table {
	t := &table{head: []string{
		"scenario, phase", "CPU ms: ours", "upstream", "ceiling", "requests: ours", "upstream", "ceiling",
		"KB to watchers: ours", "upstream", "ceiling",
	}}
	eachPhase(result, scenarios, func(label string, sides map[plan.Side]measure.Phase) {
		row := []string{label + unitNote(sides)}
		for _, value := range []func(measure.Phase) float64{totalCPU, allRequests, kilobytes} {
			for _, side := range plan.AllSides {
				row = append(row, number(of(sides, side, value)))
			}
		}
		t.add(row...)
	})
	return t
}

// eachPhase calls row for each phase of each scenario.
func eachPhase(result measure.Result, scenarios []plan.Scenario,
	row func(label string, sides map[plan.Side]measure.Phase)) {
	for _, s := range scenarios {
		for _, name := range phaseNames(result, s) {
			row(s.Name+", "+name, phases(result, s.Name, name))
		}
	}
}

// hasLatencies reports whether the latency of each volume was measured.
func hasLatencies(sides map[plan.Side]measure.Phase) bool {
	for _, phase := range sides {
		if len(phase.Latencies) > 0 {
			return true
		}
	}
	return false
}

// unitNote names what costs are divided by, unless these are volumes.
func unitNote(sides map[plan.Side]measure.Phase) string {
	for _, phase := range sides {
		if phase.Unit != "" {
			return fmt.Sprintf(" (per %s)", phase.Unit)
		}
	}
	return ""
}

// totalCPU returns the CPU time of the API server, etcd and the programs: what a cluster pays.
func totalCPU(p measure.Phase) float64 {
	total := 0.0
	for process, spent := range p.CPU {
		if process != measure.Driver && process != measure.Load {
			total += spent
		}
	}
	return total
}

func allRequests(p measure.Phase) float64 { return p.Requests.Sum(nil) }

// kilobytes returns what was sent to watchers.
func kilobytes(p measure.Phase) float64 {
	total := 0.0
	for _, size := range p.WatchBytes {
		total += size / 1000
	}
	return total
}

// phaseNames returns the names of the phases of a scenario.
func phaseNames(result measure.Result, s plan.Scenario) []string {
	var names []string
	for _, side := range plan.AllSides {
		turns := result.Of(s.Name, side)
		if len(turns) == 0 {
			continue
		}
		for _, phase := range turns[0].Phases {
			names = append(names, phase.Name)
		}
		return names
	}
	return names
}

// phases returns the typical phase of each side.
func phases(result measure.Result, scenario, name string) map[plan.Side]measure.Phase {
	sides := map[plan.Side]measure.Phase{}
	for _, side := range plan.AllSides {
		turn, found := measure.Typical(result.Of(scenario, side))
		if phase, has := turn.Phase(name); found && has {
			sides[side] = phase
		}
	}
	return sides
}

// of returns a value of a side, 0 if it was not measured.
func of(sides map[plan.Side]measure.Phase, side plan.Side, value func(measure.Phase) float64) float64 {
	phase, found := sides[side]
	if !found {
		return 0
	}
	return value(phase)
}

// memoryOf returns the memory of the programs at rest and at their peak, for the scenarios that are
// about it.
func memoryOf(result measure.Result, scenarios []plan.Scenario) *table {
	t := &table{head: []string{"memory, MB", "at rest: ours", "upstream", "peak: ours", "upstream"}}
	for _, s := range scenarios {
		if s.Rest == 0 && s.Kind != plan.Start && s.Kind != plan.Memory {
			continue
		}
		for _, process := range []string{measure.Loops, measure.Sidecar, measure.Collector} {
			row := []string{s.Name + ", " + process}
			for _, memory := range []func(measure.Turn) map[string]float64{
				func(t measure.Turn) map[string]float64 { return t.RestMemory },
				func(t measure.Turn) map[string]float64 { return t.PeakMemory },
			} {
				for _, side := range []plan.Side{plan.Ours, plan.Upstream} {
					turn, _ := measure.Typical(result.Of(s.Name, side))
					row = append(row, number(memory(turn)[process]/1e6))
				}
			}
			t.add(row...)
		}
	}
	return t
}

// bothCPU returns the CPU time of all phases.
func bothCPU(turn measure.Turn) float64 {
	total := 0.0
	for _, phase := range turn.Phases {
		total += totalCPU(phase)
	}
	return total
}
