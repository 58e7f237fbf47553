package main

import (
	"bytes"
	"encoding/xml"
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/exeunt-io/exeunt/test/bench/measure"
	"github.com/exeunt-io/exeunt/test/bench/plan"
)

var measuredRun = measure.Run{Began: "2026-01-02 03:04", Machine: "2 cores", Version: "v1"}

// measured returns a result with two sizes and the three sides.
func measured() measure.Result {
	var result measure.Result
	patch, conflict := measure.Request{Verb: "PATCH", Resource: "persistentvolumes", Code: 200},
		measure.Request{Verb: "PUT", Resource: "persistentvolumes", Code: 409}
	for _, s := range []plan.Scenario{
		{Name: "storm-10", Topic: plan.BySize, Kind: plan.Storm, Size: 10, Order: plan.VolumeFirst},
		{Name: "storm-100", Topic: plan.BySize, Kind: plan.Storm, Size: 100, Order: plan.VolumeFirst},
	} {
		for i, turn := range s.Turns(2) {
			phase := measure.Phase{
				Name: "bind", Volumes: s.Size, Seconds: float64(i + 1), CPU: map[string]float64{measure.Server: 12,
					measure.Load: 99},
				Requests: measure.Requests{patch: 5}, WatchBytes: map[string]float64{"persistentvolumes": 3000},
			}
			if turn.Side == plan.Upstream {
				phase.Requests[conflict] = 0.25
			}
			result.Turns = append(result.Turns, measure.Turn{Turn: turn, Run: measuredRun, Phases: []measure.Phase{phase},
				PeakMemory: map[string]float64{measure.Loops: 40e6}})
		}
	}
	return result
}

func TestTablesCompareSides(t *testing.T) {
	tables := Tables(measured())
	for _, want := range []string{
		"| 2026-01-02 03:04 | 2 cores | v1 | storm-10, storm-100 |",
		"## " + plan.BySize,
		// seconds: ours 1 and 6, upstream 2 and 4, ceiling 3 and 5
		"| storm-10, bind | per second | 2.86 | 3.33 | 2.50 | 0.86 | 1.14 |",
		"| storm-10, bind | 12.0 | 12.0 | 12.0 | 5.00 | 5.25 | 5.00 | 3.00 | 3.00 | 3.00 |",
	} {
		if !strings.Contains(tables, want) {
			t.Errorf("the tables lack %q:\n%s", want, tables)
		}
	}
	if strings.Contains(tables, plan.ByNetwork) {
		t.Error("the tables have a topic without scenarios")
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
	tables := Tables(result)
	for _, want := range []string{
		"| claims bound, share of the ceiling | storm-1000 | at least 0.75 | 1.14 | yes |",
		"| claims bound, against upstream | storm-1000 | at least 3 | 0.86 | **no** |",
		"| requests to provision a volume | storm-1000 | at most 6.3 | 5.00 | yes |",
		"| cost of a volume among 200000 pairs, against that among 10 | among-200000 | at most 1.3 | 1.50 | **no** |",
	} {
		if !strings.Contains(tables, want) {
			t.Errorf("the tables lack %q:\n%s", want, tables)
		}
	}
	result.Turns[len(result.Turns)-1].Run.Began = "later"
	if strings.Contains(Tables(result), "among 200000 pairs") {
		t.Error("the tables compare the costs of two runs")
	}
	if strings.Contains(tables, "network 2 ms") {
		t.Error("the tables have an aim of a scenario that was not measured")
	}
}

func TestLatenciesStandForRates(t *testing.T) {
	phase := measure.Phase{Name: "start", Volumes: 1, Seconds: 1, Unit: "start", Latencies: []float64{40, 20, 30},
		CPU: map[string]float64{measure.Server: 5}}
	s := plan.Scenario{Name: "start-50000", Topic: plan.Large, Kind: plan.Start, Background: 50_000}
	result := measure.Result{Turns: []measure.Turn{{Turn: plan.Turn{Scenario: s, Side: plan.Ours},
		Phases: []measure.Phase{phase}}}}
	tables := Tables(result)
	for _, want := range []string{"| start-50000, start | ms, median | 30.0 |",
		"| start-50000, start (per start) | 5.00 |"} {
		if !strings.Contains(tables, want) {
			t.Errorf("the tables lack %q:\n%s", want, tables)
		}
	}
}

func TestLimitOfMemory(t *testing.T) {
	for size, over := range map[float64]bool{79e6: false, 81e6: true} {
		s := plan.Scenario{Name: "memory", Topic: plan.Large, Kind: plan.Memory}
		turn := measure.Turn{Turn: plan.Turn{Scenario: s, Side: plan.Ours},
			PeakMemory: map[string]float64{measure.Loops: 200e6, measure.Sidecar: size}}
		result := measure.Result{Turns: []measure.Turn{turn}}
		if err := OverLimit(result); (err != nil) != over {
			t.Errorf("%g bytes: %v", size, err)
		}
		if tables := Tables(result); !strings.Contains(tables, "| memory, loops |  |  | 200 |  |") {
			t.Errorf("the tables lack the memory:\n%s", tables)
		}
	}
	if err := OverLimit(measured()); err != nil {
		t.Error(err)
	}
}

func TestPlotsAreWellFormed(t *testing.T) {
	plots, err := Plots(measured())
	if err != nil || len(plots) != 1 {
		t.Fatalf("there are %d plots, %v", len(plots), err)
	}
	for name, plot := range plots {
		texts := map[string]bool{}
		for decoder := xml.NewDecoder(bytes.NewReader(plot)); ; {
			token, err := decoder.Token()
			if errors.Is(err, io.EOF) {
				break
			}
			if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			if text, is := token.(xml.CharData); is {
				texts[strings.TrimSpace(string(text))] = true
			}
		}
		for _, want := range []string{"ours", "upstream", "ceiling", "10", "100", "volumes"} {
			if !texts[want] {
				t.Errorf("%s lacks the text %q: %v", name, want, texts)
			}
		}
	}
}

func TestPlotNeedsTwoPositions(t *testing.T) {
	result := measured()
	for i := range result.Turns {
		result.Turns[i].Scenario.Size = 1
	}
	if plots, err := Plots(result); err != nil || len(plots) != 0 {
		t.Errorf("one size has %d plots, %v", len(plots), err)
	}
}

// collected returns a result of garbage collectors: ours needs 6 seconds, the ceiling 5.
func collected(name string, inner int, requests measure.Requests) measure.Result {
	var result measure.Result
	s := plan.Scenario{Name: name, Topic: plan.Cascades, Kind: plan.Cascade, Policy: plan.Foreground, Size: 1000,
		Inner: inner, Kinds: 60, Rest: 1}
	for side, seconds := range map[plan.Side]float64{plan.Ours: 6, plan.Ceiling: 5} {
		phase := measure.Phase{Name: "collect", Volumes: 1000, Unit: "dependent", Seconds: seconds, Requests: requests,
			Latencies: []float64{100, 600}}
		memory := map[string]float64{measure.Collector: 50e6}
		result.Turns = append(result.Turns, measure.Turn{Turn: plan.Turn{Scenario: s, Side: side, Round: 1}, Run: measuredRun,
			Phases: []measure.Phase{phase}, PeakMemory: memory, RestMemory: memory})
	}
	return result
}

func TestGarbageAims(t *testing.T) {
	deletion, read := measure.Request{Verb: "DELETE", Resource: "configmaps", Code: 200},
		measure.Request{Verb: "GET", Resource: "configmaps", Code: 200}
	list := measure.Request{Verb: "LIST", Resource: "configmaps", Code: 200}
	for name, want := range map[string]string{
		"garbage-10000":            "| 10,000 dependents in the background: seconds | garbage-10000 | at most 6.25 | 6.00 | yes |",
		"garbage-100000":           "| 100,000 dependents in the background: seconds | garbage-100000 | at most 45 | 6.00 | yes |",
		"garbage-foreground-10000": "| foreground: live reads of the owner in a second | garbage-foreground-10000 | at most 1 | 2.00 | **no** |",
		"garbage-tree":             "| tree in the foreground: requests for an inner node | garbage-tree | at most 3 | 1.50 | yes |",
		"garbage-release":          "| 60 kinds: ms until a single owner is released, 99 % | garbage-release | at most 500 | 595.00 | **no** |",
	} {
		tables := Tables(collected(name, 10, measure.Requests{deletion: 1, read: 0.012, list: 9}))
		if !strings.Contains(tables, want) {
			t.Errorf("the tables lack %q:\n%s", want, tables)
		}
		if memory := "| " + name + ", collector | 50.0 |  | 50.0 |  |"; !strings.Contains(tables, memory) {
			t.Errorf("the tables lack %q:\n%s", memory, tables)
		}
	}
}
