package report

import (
	"cmp"
	"slices"
	"time"

	"github.com/exeunt-io/exeunt/test/bench/measure"
	"github.com/exeunt-io/exeunt/test/bench/plan"
)

// plotSpec says what a plot of a topic shows.
type plotSpec struct {
	topic, file string
	plot        Plot // without series
	// x is the position of a scenario, y the value of a turn.
	x func(plan.Scenario) float64
	y func(measure.Turn) float64
	// also is a scenario of another topic that has a point, too.
	also string
}

// plotSpecs returns all plots.
func plotSpecs() []plotSpec {
	size := func(s plan.Scenario) float64 { return float64(s.Size) }
	network := func(s plan.Scenario) float64 { return float64(s.NetworkDelay) / float64(time.Millisecond) }
	driver := func(s plan.Scenario) float64 { return s.DriverLatency.Seconds() }
	pairs := func(s plan.Scenario) float64 { return float64(s.Background) }
	const volumes, perSecond, cpu, delay = "volumes", "per second", "CPU ms per volume", "ms each way"
	const inCluster = "pairs of volume and claim in the cluster"
	const undisturbed = "storm-1000" // neither network nor driver delays it
	return []plotSpec{
		{plan.BySize, "cost-by-size.svg", Plot{Title: "CPU time of API server, etcd and programs, both phases", XLabel: volumes, YLabel: cpu, Log: true}, size, bothCPU, ""},
		{plan.BySize, "bound-by-size.svg", Plot{Title: "Claims bound", XLabel: volumes, YLabel: perSecond, Log: true}, size, rateOf("bind"), ""},
		{plan.BySize, "reclaimed-by-size.svg", Plot{Title: "Volumes reclaimed", XLabel: volumes, YLabel: perSecond, Log: true}, size, rateOf("reclaim"), ""},
		{plan.BySize, "memory-by-size.svg", Plot{Title: "Peak memory of both programs", XLabel: volumes, YLabel: "MB", Log: true}, size, memory, ""},
		{plan.ByLatency, "bound-by-latency.svg", Plot{Title: "Claims bound", XLabel: "seconds for each call of the driver", YLabel: perSecond}, driver, rateOf("bind"), undisturbed},
		{plan.ByNetwork, "bound-by-delay.svg", Plot{Title: "Claims bound", XLabel: delay, YLabel: perSecond}, network, rateOf("bind"), undisturbed},
		{plan.ByNetwork, "reclaimed-by-delay.svg", Plot{Title: "Volumes reclaimed", XLabel: delay, YLabel: perSecond}, network, rateOf("reclaim"), undisturbed},
		{plan.Large, "cost-by-pairs.svg", Plot{Title: "CPU time of a volume among many pairs", XLabel: inCluster, YLabel: cpu, Log: true}, pairs, only(plan.Storm, bothCPU), ""},
		{plan.Large, "memory-by-pairs.svg", Plot{Title: "Peak memory of both programs after their start", XLabel: inCluster, YLabel: "MB", Log: true}, pairs, only(plan.Start, memory), ""},
		{plan.Large, "start-by-pairs.svg", Plot{Title: "Start, until a claim is bound", XLabel: inCluster, YLabel: "ms", Log: true}, pairs, only(plan.Start, latencyOf("start")), ""},
		{plan.Large, "bound-by-pairs.svg", Plot{Title: "Single claim bound", XLabel: inCluster, YLabel: "ms, median", Log: true}, pairs, only(plan.Single, latencyOf("bind")), ""},
		{plan.Large, "gone-by-pairs.svg", Plot{Title: "Single volume gone", XLabel: inCluster, YLabel: "ms, median", Log: true}, pairs, only(plan.Single, latencyOf("reclaim")), ""},
	}
}

// only returns a value of scenarios of a kind, 0 for others.
func only(kind plan.Kind, value func(measure.Turn) float64) func(measure.Turn) float64 {
	return func(turn measure.Turn) float64 {
		if turn.Scenario.Kind != kind {
			return 0
		}
		return value(turn)
	}
}

// latencyOf returns the median latency in a phase.
func latencyOf(name string) func(measure.Turn) float64 {
	return func(turn measure.Turn) float64 {
		phase, _ := turn.Phase(name)
		return measure.Median(phase.Latencies)
	}
}

// plotsOf returns the plots of a topic.
func plotsOf(topic string) []plotSpec {
	return slices.DeleteFunc(plotSpecs(), func(p plotSpec) bool { return p.topic != topic })
}

// draw returns the plot with the lines of all sides, false unless a line has two points.
func (p plotSpec) draw(result measure.Result) (Plot, bool) {
	plot, drawn := p.plot, false
	for _, side := range plan.AllSides {
		series := Series{Name: string(side)}
		for _, s := range p.scenarios(result) {
			turn, found := measure.Typical(result.Of(s.Name, side))
			if !found {
				continue
			}
			if y := p.y(turn); y > 0 {
				series.Points = append(series.Points, Point{X: p.x(s), Y: y})
			}
		}
		slices.SortFunc(series.Points, func(a, b Point) int { return cmp.Compare(a.X, b.X) })
		drawn = drawn || len(series.Points) > 1
		plot.Series = append(plot.Series, series)
	}
	return plot, drawn
}

// scenarios returns the measured scenarios that have a point.
func (p plotSpec) scenarios(result measure.Result) []plan.Scenario {
	return slices.DeleteFunc(result.Scenarios(), func(s plan.Scenario) bool { return s.Topic != p.topic && s.Name != p.also })
}

// rateOf returns the rate of a phase.
func rateOf(name string) func(measure.Turn) float64 {
	return func(turn measure.Turn) float64 {
		phase, _ := turn.Phase(name)
		return phase.Rate()
	}
}

// bothCPU returns the CPU time of all phases.
func bothCPU(turn measure.Turn) float64 {
	total := 0.0
	for _, phase := range turn.Phases {
		total += TotalCPU(phase)
	}
	return total
}

// memory returns the peak memory of both programs in MB.
func memory(turn measure.Turn) float64 {
	return (turn.PeakMemory[measure.Loops] + turn.PeakMemory[measure.Sidecar]) / 1e6
}
