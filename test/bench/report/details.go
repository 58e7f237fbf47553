package report

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/exeunt-io/exeunt/test/bench/measure"
	"github.com/exeunt-io/exeunt/test/bench/plan"
)

// details returns everything about a scenario, folded.
func details(result measure.Result, s plan.Scenario) string {
	var text strings.Builder
	fmt.Fprintf(&text, "<details><summary>%s: %s</summary>\n\n", s.Name, describe(s))
	for _, name := range phaseNames(result, s) {
		text.WriteString(phaseTable(result, s, name).String())
	}
	text.WriteString(memoryTable(result, s, "peak memory, MB", func(t measure.Turn) map[string]float64 { return t.PeakMemory }).String())
	if rest := memoryTable(result, s, "memory at rest, MB", func(t measure.Turn) map[string]float64 { return t.RestMemory }); len(rest.rows) > 0 {
		text.WriteString(rest.String())
	}
	return text.String() + "</details>\n\n"
}

// describe says what happens in a scenario.
func describe(s plan.Scenario) string {
	parts := []string{string(s.Kind)}
	for _, part := range []struct {
		is   bool
		text string
	}{
		{s.Size > 0, fmt.Sprintf("%d %ss", s.Size, s.Unit())},
		{s.Policy != "", string(s.Policy)},
		{s.Inner > 0, fmt.Sprintf("%d of them own the others", s.Inner)},
		{s.Kinds > 0, fmt.Sprintf("%d kinds", s.Kinds)},
		{s.Order != "", string(s.Order)},
		{s.Others > 0, fmt.Sprintf("%d others", s.Others)},
		{s.Background > 0, fmt.Sprintf("%d pairs in the cluster", s.Background)},
		{s.DriverLatency > 0, "driver " + s.DriverLatency.String()},
		{s.NetworkDelay > 0, "network " + s.NetworkDelay.String() + " each way"},
		{s.Defaults, "default client limits"},
	} {
		if part.is {
			parts = append(parts, part.text)
		}
	}
	return strings.Join(parts, ", ")
}

// phaseTable has all values of a phase.
func phaseTable(result measure.Result, s plan.Scenario, name string) *table {
	sides := phases(result, s.Name, name)
	t := &table{head: []string{name + unitNote(sides)}}
	for _, side := range plan.AllSides {
		t.head = append(t.head, string(side))
	}
	add := func(label string, value func(measure.Phase) string) {
		row := []string{label}
		for _, side := range plan.AllSides {
			cell := ""
			if phase, found := sides[side]; found {
				cell = value(phase)
			}
			row = append(row, cell)
		}
		t.add(row...)
	}
	add("per second", func(p measure.Phase) string { return number(p.Rate()) })
	t.add(spread(result, s, name)...)
	add("seconds until all is done", func(p measure.Phase) string { return number(p.Seconds) })
	add("seconds from then to the last write", func(p measure.Phase) string { return number(p.Tail) })
	add("latency ms: median", func(p measure.Phase) string { return number(measure.Median(p.Latencies)) })
	add("latency ms: 90 %", func(p measure.Phase) string { return number(measure.Quantile(p.Latencies, 0.9)) })
	add("latency ms: 99 %", func(p measure.Phase) string { return number(measure.Quantile(p.Latencies, 0.99)) })
	add("latency ms: largest", func(p measure.Phase) string { return number(measure.Quantile(p.Latencies, 1)) })
	for _, process := range keys(sides, func(p measure.Phase) map[string]float64 { return p.CPU }) {
		add("CPU ms: "+process, func(p measure.Phase) string { return withTail(p.CPU[process], p.TailCPU[process]) })
	}
	addRequests(add, sides)
	for _, resource := range keys(sides, func(p measure.Phase) map[string]float64 { return p.WatchBytes }) {
		add("KB to watchers: "+resource, func(p measure.Phase) string { return number(p.WatchBytes[resource] / 1000) })
	}
	for _, method := range keys(sides, func(p measure.Phase) map[string]float64 { return p.Calls }) {
		add("driver: "+method, func(p measure.Phase) string { return number(p.Calls[method]) })
	}
	return t
}

// addRequests adds the requests in groups and by kind.
func addRequests(add func(string, func(measure.Phase) string), sides map[plan.Side]measure.Phase) {
	for _, group := range []struct {
		label string
		such  func(measure.Request) bool
	}{
		{"requests", nil},
		{"writes", func(r measure.Request) bool { return r.Writes() && !isEvent(r) }},
		{"events", isEvent},
		{"reads", func(r measure.Request) bool { return !r.Writes() }},
		{"refused writes", measure.Request.Refused},
	} {
		add("**"+group.label+"**", func(p measure.Phase) string { return number(p.Requests.Sum(group.such)) })
	}
	all := measure.Requests{}
	for _, phase := range sides {
		maps.Copy(all, phase.Requests)
	}
	for _, request := range all.Kinds() {
		add(request.String(), func(p measure.Phase) string { return number(p.Requests[request]) })
	}
}

// withTail writes a value and the share of the tail.
func withTail(all, tail float64) string {
	if number(tail) == "" || number(all) == "" {
		return number(all)
	}
	return fmt.Sprintf("%s (%s late)", number(all), number(tail))
}

// spread is a row with the slowest and the fastest rate of several rounds.
func spread(result measure.Result, s plan.Scenario, name string) []string {
	row := []string{"per second, slowest and fastest round"}
	for _, side := range plan.AllSides {
		var rates []float64
		for _, turn := range result.Of(s.Name, side) {
			if phase, has := turn.Phase(name); has {
				rates = append(rates, phase.Rate())
			}
		}
		cell := ""
		if len(rates) > 1 {
			cell = number(slices.Min(rates)) + " - " + number(slices.Max(rates))
		}
		row = append(row, cell)
	}
	return row
}

// keys returns the keys of a map of any side, sorted.
func keys(sides map[plan.Side]measure.Phase, values func(measure.Phase) map[string]float64) []string {
	all := map[string]float64{}
	for _, phase := range sides {
		maps.Copy(all, values(phase))
	}
	return slices.Sorted(maps.Keys(all))
}

// memoryTable has the memory of all processes.
func memoryTable(result measure.Result, s plan.Scenario, title string, memory func(measure.Turn) map[string]float64) *table {
	t := &table{head: []string{title}}
	sizes, all := map[plan.Side]map[string]float64{}, map[string]float64{}
	for _, side := range plan.AllSides {
		t.head = append(t.head, string(side))
		if turn, found := measure.Typical(result.Of(s.Name, side)); found {
			sizes[side] = memory(turn)
			maps.Copy(all, sizes[side])
		}
	}
	for _, process := range slices.Sorted(maps.Keys(all)) {
		row := []string{process}
		for _, side := range plan.AllSides {
			row = append(row, number(sizes[side][process]/1e6))
		}
		t.add(row...)
	}
	return t
}
