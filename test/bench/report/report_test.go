package report_test

import (
	"encoding/xml"
	"errors"
	"io"
	"strconv"
	"strings"
	"testing"

	"github.com/exeunt-io/exeunt/test/bench/measure"
	"github.com/exeunt-io/exeunt/test/bench/plan"
	. "github.com/exeunt-io/exeunt/test/bench/report"
)

var run = measure.Run{Began: "2026-01-02 03:04", Machine: "2 cores", Version: "v1"}

// measured returns a result with two sizes and the three sides.
func measured() measure.Result {
	var result measure.Result
	patch, conflict := measure.Request{Verb: "PATCH", Resource: "persistentvolumes", Code: 200}, measure.Request{Verb: "PUT", Resource: "persistentvolumes", Code: 409}
	for _, s := range []plan.Scenario{
		{Name: "storm-10", Topic: plan.BySize, Kind: plan.Storm, Size: 10, Order: plan.VolumeFirst},
		{Name: "storm-100", Topic: plan.BySize, Kind: plan.Storm, Size: 100, Order: plan.VolumeFirst},
	} {
		for i, turn := range s.Turns(2) {
			phase := measure.Phase{
				Name: "bind", Volumes: s.Size, Seconds: float64(i + 1), CPU: map[string]float64{measure.Server: 12, measure.Load: 99},
				Requests: measure.Requests{patch: 5}, WatchBytes: map[string]float64{"persistentvolumes": 3000},
			}
			if turn.Side == plan.Upstream {
				phase.Requests[conflict] = 0.25
			}
			result.Turns = append(result.Turns, measure.Turn{Turn: turn, Run: run, Phases: []measure.Phase{phase}, PeakMemory: map[string]float64{measure.Loops: 40e6}})
		}
	}
	return result
}

func TestPageComparesSides(t *testing.T) {
	page := Measured(measured(), "performance")
	for _, want := range []string{
		"| 2026-01-02 03:04 | 2 cores | v1 | storm-10, storm-100 |",
		"## " + plan.BySize,
		// seconds: ours 1 and 6, upstream 2 and 4, ceiling 3 and 5
		"| storm-10, bind | per second | 2.86 | 3.33 | 2.50 | 0.86 | 1.14 |",
		"| storm-10, bind | 12.0 | 12.0 | 12.0 | 5.00 | 5.25 | 5.00 | 3.00 | 3.00 | 3.00 |",
		"| **refused writes** |  | 0.25 |  |",
		"| PUT persistentvolumes 409 |  | 0.25 |  |",
		"| loops | 40.0 | 40.0 | 40.0 |",
		"(performance/cost-by-size.svg)",
	} {
		if !strings.Contains(page, want) {
			t.Errorf("the page lacks %q:\n%s", want, page)
		}
	}
	if strings.Contains(page, plan.ByNetwork) {
		t.Error("the page has a topic without scenarios")
	}
}

func TestAims(t *testing.T) {
	result := measured()
	for i := range result.Turns {
		turn := &result.Turns[i]
		turn.Scenario.Name, turn.Scenario.Topic, turn.Scenario.Background = "storm-1000", plan.Large, turn.Scenario.Size
	}
	large := measured().Turns[0]
	large.Scenario.Name, large.Scenario.Topic, large.Scenario.Background = "among-200000", plan.Large, 200_000
	large.Phases[0].CPU[measure.Server] = 18
	result.Turns = append(result.Turns[:6], large)
	page := Measured(result, "performance")
	for _, want := range []string{
		"| claims bound, share of the ceiling | storm-1000 | at least 0.75 | 1.14 | yes |",
		"| claims bound, against upstream | storm-1000 | at least 3 | 0.86 | **no** |",
		"| requests to provision a volume | storm-1000 | at most 6.3 | 5.00 | yes |",
		"| cost of a volume among 200000 pairs, against that among 10 | among-200000 | at most 1.3 | 1.50 | **no** |",
	} {
		if !strings.Contains(page, want) {
			t.Errorf("the page lacks %q:\n%s", want, page)
		}
	}
	result.Turns[len(result.Turns)-1].Run.Began = "later"
	if strings.Contains(Measured(result, "performance"), "among 200000 pairs") {
		t.Error("the page compares the costs of two runs")
	}
	if strings.Contains(page, "network 2 ms") {
		t.Error("the page has an aim of a scenario that was not measured")
	}
}

func TestLatenciesStandForRates(t *testing.T) {
	phase := measure.Phase{Name: "start", Volumes: 1, Seconds: 1, Unit: "start", Latencies: []float64{40, 20, 30}, CPU: map[string]float64{measure.Server: 5}}
	s := plan.Scenario{Name: "start-50000", Topic: plan.Large, Kind: plan.Start, Background: 50_000}
	result := measure.Result{Turns: []measure.Turn{{Turn: plan.Turn{Scenario: s, Side: plan.Ours}, Phases: []measure.Phase{phase}}}}
	page := Measured(result, "performance")
	for _, want := range []string{"| start-50000, start | ms, median | 30.0 |", "| start-50000, start (per start) | 5.00 |", "| latency ms: largest | 40.0 |"} {
		if !strings.Contains(page, want) {
			t.Errorf("the page lacks %q:\n%s", want, page)
		}
	}
}

func TestUpdateKeepsWhatPeopleWrote(t *testing.T) {
	first, err := Update("", "old numbers")
	if err != nil {
		t.Fatal(err)
	}
	second, err := Update("Before.\n"+first+"Findings.\n", "new numbers")
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"Before.\n# Performance", "new numbers", "Findings.\n"} {
		if !strings.Contains(second, want) {
			t.Errorf("the page lacks %q:\n%s", want, second)
		}
	}
	if strings.Contains(second, "old numbers") {
		t.Error("the page has the old numbers")
	}
	if _, err := Update("a page without markers", "numbers"); err == nil {
		t.Error("a page without markers returned no error")
	}
}

func TestPlotsAreWellFormed(t *testing.T) {
	plots := Plots(measured())
	if len(plots) == 0 {
		t.Fatal("there are no plots")
	}
	for name, plot := range plots {
		lines := 0
		for decoder := xml.NewDecoder(strings.NewReader(plot)); ; {
			token, err := decoder.Token()
			if errors.Is(err, io.EOF) {
				break
			}
			if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			if start, is := token.(xml.StartElement); is && start.Name.Local == "polyline" {
				lines++
				checkInside(t, name, start.Attr[0].Value)
			}
		}
		if lines != len(plan.AllSides) {
			t.Errorf("%s has %d lines, want %d", name, lines, len(plan.AllSides))
		}
	}
}

// checkInside checks that the points of a line are in the picture.
func checkInside(t *testing.T, name, points string) {
	t.Helper()
	for _, point := range strings.Fields(points) {
		for _, text := range strings.Split(point, ",") {
			if value, err := strconv.ParseFloat(text, 64); err != nil || value < 0 || value > 640 {
				t.Errorf("%s: the point %s is outside", name, point)
			}
		}
	}
}

func TestPlotNeedsTwoPoints(t *testing.T) {
	result := measured()
	result.Turns = result.Turns[:6] // one size
	if plots := Plots(result); len(plots) != 0 {
		t.Errorf("one size has %d plots", len(plots))
	}
}

// collected returns a result of garbage collectors: ours needs 6 seconds, the ceiling 5.
func collected(name string, inner int, requests measure.Requests) measure.Result {
	var result measure.Result
	s := plan.Scenario{Name: name, Topic: plan.Cascades, Kind: plan.Cascade, Policy: plan.Foreground, Size: 1000, Inner: inner, Kinds: 60, Rest: 1}
	for side, seconds := range map[plan.Side]float64{plan.Ours: 6, plan.Ceiling: 5} {
		phase := measure.Phase{Name: "collect", Volumes: 1000, Unit: "dependent", Seconds: seconds, Requests: requests, Latencies: []float64{100, 600}}
		memory := map[string]float64{measure.Collector: 50e6}
		result.Turns = append(result.Turns, measure.Turn{Turn: plan.Turn{Scenario: s, Side: side, Round: 1}, Run: run, Phases: []measure.Phase{phase}, PeakMemory: memory, RestMemory: memory})
	}
	return result
}

func TestGarbageAims(t *testing.T) {
	deletion, read := measure.Request{Verb: "DELETE", Resource: "configmaps", Code: 200}, measure.Request{Verb: "GET", Resource: "configmaps", Code: 200}
	list := measure.Request{Verb: "LIST", Resource: "configmaps", Code: 200}
	for name, want := range map[string]string{
		"garbage-10000":            "| 10,000 dependents in the background: seconds | garbage-10000 | at most 6.25 | 6.00 | yes |",
		"garbage-100000":           "| 100,000 dependents in the background: seconds | garbage-100000 | at most 45 | 6.00 | yes |",
		"garbage-foreground-10000": "| foreground: live reads of the owner in a second | garbage-foreground-10000 | at most 1 | 2.00 | **no** |",
		"garbage-tree":             "| tree in the foreground: requests for an inner node | garbage-tree | at most 3 | 1.50 | yes |",
		"garbage-release":          "| 60 kinds: ms until a single owner is released, 99 % | garbage-release | at most 500 | 595.00 | **no** |",
	} {
		page := Measured(collected(name, 10, measure.Requests{deletion: 1, read: 0.012, list: 9}), "performance")
		if !strings.Contains(page, want) {
			t.Errorf("the page lacks %q:\n%s", want, page)
		}
		if memory := "| " + name + " | 50.0 |  | 50.0 |  |"; !strings.Contains(page, memory) {
			t.Errorf("the page lacks %q:\n%s", memory, page)
		}
	}
}
