package main

import (
	"fmt"
	"math"
	"net/http"
	"slices"

	"github.com/exeunt-io/exeunt/test/bench/measure"
	"github.com/exeunt-io/exeunt/test/bench/plan"
)

// aim is a value that our programs shall reach.
type aim struct {
	what     string
	scenario string
	phase    string
	// least and most bound the value; one of them is 0.
	least, most float64
	// beyond is the share of the ceiling's time up to which a value above most is good, too.
	beyond float64
	value  func(sides map[plan.Side]measure.Phase, ours measure.Turn) (float64, bool)
}

// aims returns all aims.
func aims() []aim {
	return slices.Concat(storageAims(), garbageAims())
}

// storageAims returns the aims of pv-controller and provisioner.
func storageAims() []aim {
	bind, reclaim := "bind", "reclaim"
	return []aim{
		{"claims bound, share of the ceiling", "storm-1000", bind, 0.75, 0, 0, against(plan.Ceiling)},
		{"claims bound, against upstream", "storm-1000", bind, 3, 0, 0, against(plan.Upstream)},
		{"volumes reclaimed, share of the ceiling", "storm-1000", reclaim, 0.8, 0, 0, against(plan.Ceiling)},
		{"volumes reclaimed, against upstream", "storm-1000", reclaim, 2, 0, 0, against(plan.Upstream)},
		{"claim first: volumes reclaimed, share of the ceiling", "claim-first-1000", reclaim, 0.8, 0, 0, against(plan.Ceiling)},
		{"claim first: volumes reclaimed, against upstream", "claim-first-1000", reclaim, 2, 0, 0, against(plan.Upstream)},
		{"default limits: claims bound, against upstream", "defaults", bind, 30, 0, 0, against(plan.Upstream)},
		{"default limits: volumes reclaimed, against upstream", "defaults", reclaim, 30, 0, 0, against(plan.Upstream)},
		{"network 2 ms: claims bound, against upstream", "network-2ms", bind, 4, 0, 0, against(plan.Upstream)},
		{"network 2 ms: volumes reclaimed, against upstream", "network-2ms", reclaim, 3, 0, 0, against(plan.Upstream)},
		{"network 5 ms: claims bound, against upstream", "network-5ms", bind, 6, 0, 0, against(plan.Upstream)},
		{"network 5 ms: volumes reclaimed, against upstream", "network-5ms", reclaim, 5, 0, 0, against(plan.Upstream)},
		{"requests to provision a volume", "storm-1000", bind, 0, 6.3, 0, requests(nil)},
		{"events among them", "storm-1000", bind, 0, 1, 0, requests(isEvent)},
		{"requests to reclaim a volume", "storm-1000", reclaim, 0, 6.2, 0, requests(nil)},
		{"claim first: requests to reclaim a volume", "claim-first-1000", reclaim, 0, 7.2, 0, requests(nil)},
		{"claim first: refused writes", "claim-first-1000", reclaim, 0, 0.001, 0, requests(measure.Request.Refused)},
		{"CreateVolume for each volume", "storm-1000", bind, 0, 1, 0, calls("CreateVolume")},
		{"DeleteVolume for each volume", "storm-1000", reclaim, 0, 1, 0, calls("DeleteVolume")},
		{"50,000 pairs: ms until a single claim is bound", "single-50000", bind, 0, 30, 0, latency},
		{"50,000 pairs: ms until a single volume is gone", "single-50000", reclaim, 0, 30, 0, latency},
		{"50,000 pairs: peak memory of pv-controller, MB", "start-50000", "start", 0, 250, 0, peak(measure.Loops)},
		{"50,000 pairs: peak memory of the provisioner, MB", limitedMemory, bind, 0, 80, 0, peak(measure.Sidecar)},
		{"50,000 pairs at rest: CPU of both programs, % of a core", "rest-50000", "rest", 0, 0.5, 0, restingCPU},
	}
}

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

// limitedMemory is the scenario whose aims are limits: more memory than that is an error.
const limitedMemory = "memory"

// OverLimit returns an error if a program took more memory than it may.
func OverLimit(result measure.Result) error {
	for _, row := range aimTable(result).rows {
		if row[1] == limitedMemory && row[4] != yes {
			return fmt.Errorf("%s: %s, wanted %s", row[0], row[3], row[2])
		}
	}
	return nil
}

// The words of the table for an aim that was reached, and for one that was not.
const yes, no = "yes", "**no**"

// answer returns the word for it.
func answer(reached bool) string {
	if reached {
		return yes
	}
	return no
}

// aimTable says which aims were reached. Aims of scenarios that were not measured are left out.
func aimTable(result measure.Result) *table {
	t := &table{head: []string{"aim", "scenario", "wanted", "measured", "reached"}}
	for _, a := range aims() {
		ours, found := measure.Typical(result.Of(a.scenario, plan.Ours))
		if !found {
			continue
		}
		sides := phases(result, a.scenario, a.phase)
		if value, measured := a.value(sides, ours); measured {
			t.rows = append(t.rows, a.row(sides, value))
		}
	}
	for _, run := range result.Runs() {
		t.rows = append(t.rows, growth(result.In(run))...)
	}
	return t
}

// row says whether the aim was reached.
func (a aim) row(sides map[plan.Side]measure.Phase, value float64) []string {
	wanted, reached := fmt.Sprintf("at least %g", a.least), value >= a.least
	if a.most > 0 {
		const rounding = 0.005
		most := a.most
		if ceiling := a.beyond * of(sides, plan.Ceiling, func(p measure.Phase) float64 { return p.Seconds }); ceiling > most {
			most = math.Round(ceiling*100) / 100
		}
		wanted, reached = fmt.Sprintf("at most %g", most), value <= most+rounding
	}
	return []string{a.what, a.scenario, wanted, fmt.Sprintf("%.2f", value), answer(reached)}
}

// growth compares the cost of a volume in the largest and the smallest cluster of one run.
func growth(result measure.Result) [][]string {
	const most = 1.3
	among := func(s plan.Scenario) bool { return s.Topic == plan.Large && s.Kind == plan.Storm }
	var smallest, largest plan.Scenario
	for _, s := range result.Scenarios() {
		if !among(s) {
			continue
		}
		if smallest.Name == "" || s.Background < smallest.Background {
			smallest = s
		}
		if s.Background > largest.Background {
			largest = s
		}
	}
	small, found := measure.Typical(result.Of(smallest.Name, plan.Ours))
	large, also := measure.Typical(result.Of(largest.Name, plan.Ours))
	if !found || !also || smallest.Name == largest.Name || bothCPU(small) == 0 {
		return nil
	}
	value := bothCPU(large) / bothCPU(small)
	what := fmt.Sprintf("cost of a volume among %d pairs, against that among %d", largest.Background, smallest.Background)
	return [][]string{{what, largest.Name, fmt.Sprintf("at most %g", most), fmt.Sprintf("%.2f", value),
		answer(value <= most)}}
}

// valueFunc returns a value of an aim, false if it was not measured.
type valueFunc = func(map[plan.Side]measure.Phase, measure.Turn) (float64, bool)

// against returns the rate of our programs as a multiple of that of a side.
func against(side plan.Side) valueFunc {
	return func(sides map[plan.Side]measure.Phase, _ measure.Turn) (float64, bool) {
		other := of(sides, side, measure.Phase.Rate)
		if other == 0 {
			return 0, false
		}
		return of(sides, plan.Ours, measure.Phase.Rate) / other, true
	}
}

// requests returns the requests of our programs that such selects, per volume.
func requests(such func(measure.Request) bool) valueFunc {
	return func(sides map[plan.Side]measure.Phase, _ measure.Turn) (float64, bool) {
		return sides[plan.Ours].Requests.Sum(such), true
	}
}

func isEvent(r measure.Request) bool { return r.Resource == "events" }

// calls returns the calls of the driver, per volume.
func calls(method string) valueFunc {
	return func(sides map[plan.Side]measure.Phase, _ measure.Turn) (float64, bool) {
		return sides[plan.Ours].Calls[method], true
	}
}

func latency(sides map[plan.Side]measure.Phase, _ measure.Turn) (float64, bool) {
	return measure.Median(sides[plan.Ours].Latencies), true
}

// peak returns the peak memory of a process in MB.
func peak(process string) valueFunc {
	return func(_ map[plan.Side]measure.Phase, ours measure.Turn) (float64, bool) {
		return ours.PeakMemory[process] / 1e6, true
	}
}

// restingCPU returns the CPU time of both programs in percent: costs at rest are per second.
func restingCPU(sides map[plan.Side]measure.Phase, _ measure.Turn) (float64, bool) {
	spent := sides[plan.Ours].CPU
	return (spent[measure.Loops] + spent[measure.Sidecar]) / 10, true
}
