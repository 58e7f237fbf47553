package report

import (
	"math"
	"net/http"

	"github.com/exeunt-io/exeunt/test/bench/measure"
	"github.com/exeunt-io/exeunt/test/bench/plan"
)

// garbageAims returns the aims of the garbage collector.
func garbageAims() []aim {
	const (
		small, large           = "garbage-10000", "garbage-100000"
		smallFore, largeFore   = "garbage-foreground-10000", "garbage-foreground-100000"
		collect                = "collect"
		ofCeiling              = 1.25
		secondsFew, secondsAll = 5, 45
	)
	return []aim{
		{"10,000 dependents in the background: seconds", small, collect, 0, secondsFew, ofCeiling, seconds},
		{"10,000 dependents in the foreground: seconds", smallFore, collect, 0, secondsFew, ofCeiling, seconds},
		{"100,000 dependents in the background: seconds", large, collect, 0, secondsAll, ofCeiling, seconds},
		{"100,000 dependents in the foreground: seconds", largeFore, collect, 0, secondsAll, ofCeiling, seconds},
		{"background: requests to delete a dependent", small, collect, 0, 1, 0, requests(isOfDependent)},
		{"foreground: requests to delete a dependent", smallFore, collect, 0, 1, 0, requests(isOfDependent)},
		{"foreground: live reads of the owner in a second", smallFore, collect, 0, 1, 0, ownerReads},
		{"tree in the foreground: requests for an inner node", "garbage-tree", collect, 0, 3, 0, ofInner},
		{"100,000 dependents at rest: memory, MB", large, collect, 0, 120, 0, resting(measure.Collector)},
		{"100,000 dependents: peak memory, MB", large, collect, 0, 160, 0, peak(measure.Collector)},
		{"60 kinds: ms until a single owner is released, 99 %", "garbage-release", collect, 0, 500, 0, latencyOfMost},
	}
}

func seconds(sides map[plan.Side]measure.Phase, _ measure.Turn) (float64, bool) {
	return sides[plan.Ours].Seconds, true
}

// isOfDependent selects the requests for single dependents and their owners.
func isOfDependent(r measure.Request) bool { return r.Resource == "configmaps" && r.Verb != "LIST" }

// ownerReads returns the live reads in a second.
func ownerReads(sides map[plan.Side]measure.Phase, _ measure.Turn) (float64, bool) {
	phase := sides[plan.Ours]
	reads := phase.Requests.Sum(func(r measure.Request) bool { return isOfDependent(r) && r.Verb == http.MethodGet })
	return reads * float64(phase.Volumes) / math.Ceil(phase.Seconds), phase.Seconds > 0
}

// ofInner returns the requests for an inner node of a tree: those beyond one for each leaf, and
// beyond the patch of the root and a live read of it in each second.
func ofInner(sides map[plan.Side]measure.Phase, ours measure.Turn) (float64, bool) {
	phase, size, inner := sides[plan.Ours], float64(ours.Scenario.Size), float64(ours.Scenario.Inner)
	root := 1 + math.Ceil(phase.Seconds)
	return (phase.Requests.Sum(isOfDependent)*size - (size - inner) - root) / inner, inner > 0
}

// resting returns the memory of a process at rest in MB.
func resting(process string) valueFunc {
	return func(_ map[plan.Side]measure.Phase, ours measure.Turn) (float64, bool) {
		size, measured := ours.RestMemory[process]
		return size / 1e6, measured
	}
}

// latencyOfMost returns the latency that 99 of 100 do not exceed.
func latencyOfMost(sides map[plan.Side]measure.Phase, _ measure.Turn) (float64, bool) {
	return measure.Quantile(sides[plan.Ours].Latencies, 0.99), true
}

// memoryOf returns the memory of garbage collectors at rest and at their peak: one row for each
// scenario that measured both.
func memoryOf(result measure.Result, scenarios []plan.Scenario) *table {
	t := &table{head: []string{"memory of the collector, MB", "at rest: ours", "upstream", "peak: ours", "upstream"}}
	for _, s := range scenarios {
		row := []string{s.Name}
		for _, memory := range []func(measure.Turn) map[string]float64{
			func(t measure.Turn) map[string]float64 { return t.RestMemory },
			func(t measure.Turn) map[string]float64 { return t.PeakMemory },
		} {
			for _, side := range []plan.Side{plan.Ours, plan.Upstream} {
				turn, _ := measure.Typical(result.Of(s.Name, side))
				row = append(row, number(memory(turn)[measure.Collector]/1e6))
			}
		}
		if s.Rest > 0 {
			t.add(row...)
		}
	}
	return t
}
