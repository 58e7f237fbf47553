package report

import (
	"fmt"

	"github.com/exeunt-io/exeunt/bench/measure"
	"github.com/exeunt-io/exeunt/bench/plan"
)

// overview compares the sides: one row for each phase.
func overview(result measure.Result, scenarios []plan.Scenario) *table {
	t := &table{head: []string{
		"scenario, phase", "ours /s", "upstream /s", "ceiling /s", "ours : upstream", "ours : ceiling",
		"CPU ms ours", "upstream", "ceiling", "requests ours", "upstream", "ceiling",
	}}
	for _, s := range scenarios {
		for _, name := range phaseNames(result, s) {
			sides := phases(result, s, name)
			row := []string{s.Name + ", " + name + unitNote(sides)}
			each := func(value func(measure.Phase) float64) (ours, upstream, ceiling float64) {
				return of(sides, plan.Ours, value), of(sides, plan.Upstream, value), of(sides, plan.Ceiling, value)
			}
			ours, upstream, ceiling := each(measure.Phase.Rate)
			row = append(row, number(ours), number(upstream), number(ceiling), ratio(ours, upstream), ratio(ours, ceiling))
			ours, upstream, ceiling = each(TotalCPU)
			row = append(row, number(ours), number(upstream), number(ceiling))
			ours, upstream, ceiling = each(func(p measure.Phase) float64 { return p.Requests.Sum(nil) })
			t.add(append(row, number(ours), number(upstream), number(ceiling))...)
		}
	}
	return t
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

// TotalCPU returns the CPU time of the API server, etcd and the programs: what a cluster pays.
func TotalCPU(p measure.Phase) float64 {
	total := 0.0
	for process, spent := range p.CPU {
		if process != measure.Driver && process != measure.Load {
			total += spent
		}
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
func phases(result measure.Result, s plan.Scenario, name string) map[plan.Side]measure.Phase {
	sides := map[plan.Side]measure.Phase{}
	for _, side := range plan.AllSides {
		turn, found := measure.Typical(result.Of(s.Name, side))
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
