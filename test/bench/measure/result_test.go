package measure_test

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	. "github.com/exeunt-io/exeunt/test/bench/measure"
	"github.com/exeunt-io/exeunt/test/bench/plan"
)

func TestResultSurvivesJSON(t *testing.T) {
	want := Result{Turns: []Turn{{
		Run:    Run{Began: "2026-01-02 03:04"},
		Turn:   plan.Turn{Scenario: plan.Scenario{Name: "storm"}, Side: plan.Ours, Round: 1},
		Phases: []Phase{{Name: "bind", Requests: Requests{{"PATCH", "persistentvolumes/status", 200}: 1.5}}},
	}}}
	text, err := json.Marshal(want)
	if err != nil {
		t.Fatal(err)
	}
	var got Result
	if err := json.Unmarshal(text, &got); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got, cmpopts.EquateEmpty()); diff != "" {
		t.Errorf("JSON (-want +got):\n%s", diff)
	}
}

func TestTypicalHasMediansOfAllRounds(t *testing.T) {
	round := func(seconds, server float64, requests Requests) Turn {
		return Turn{
			Turn:       plan.Turn{Scenario: plan.Scenario{Name: "storm"}, Side: plan.Ours},
			PeakMemory: map[string]float64{"loops": server},
			Phases: []Phase{{
				Name: "bind", Volumes: 10, Seconds: seconds, CPU: map[string]float64{"server": server},
				Requests: requests, WatchBytes: map[string]float64{"pods": server},
				Calls: map[string]float64{"CreateVolume": 1}, Latencies: []float64{seconds},
			}},
		}
	}
	often, once := Request{"PATCH", "persistentvolumes", 200}, Request{"LIST", "pods", 200}
	turns := []Turn{
		round(4, 10, Requests{often: 2}), round(1, 30, Requests{often: 4, once: 1}), round(2, 20, Requests{often: 3}),
	}
	got, found := Typical(turns)
	want := Turn{
		Turn:       plan.Turn{Scenario: plan.Scenario{Name: "storm"}, Side: plan.Ours},
		PeakMemory: map[string]float64{"loops": 20},
		Phases: []Phase{{
			Name: "bind", Volumes: 10, Seconds: 2, CPU: map[string]float64{"server": 20},
			Requests: Requests{often: 3, once: 0}, WatchBytes: map[string]float64{"pods": 20},
			Calls: map[string]float64{"CreateVolume": 1}, Latencies: []float64{4, 1, 2},
		}},
	}
	if diff := cmp.Diff(want, got); diff != "" || !found {
		t.Errorf("Typical (-want +got):\n%s", diff)
	}
	if _, found := Typical(nil); found {
		t.Error("no turn is typical")
	}
}

func TestResultFindsTurns(t *testing.T) {
	turn := func(name string, side plan.Side) Turn {
		return Turn{Turn: plan.Turn{Scenario: plan.Scenario{Name: name}, Side: side}}
	}
	result := Result{Turns: []Turn{turn("b", plan.Ours), turn("b", plan.Upstream), turn("a", plan.Ours),
		turn("b", plan.Ours)}}
	if names := result.Scenarios(); len(names) != 2 || names[0].Name != "b" || names[1].Name != "a" {
		t.Errorf("scenarios %v, want b and a", names)
	}
	if found := result.Of("b", plan.Ours); len(found) != 2 {
		t.Errorf("%d turns, want 2", len(found))
	}
}

func TestNewRunReplacesItsScenarios(t *testing.T) {
	turn := func(name, began string) Turn {
		return Turn{Turn: plan.Turn{Scenario: plan.Scenario{Name: name}}, Run: Run{Began: began}}
	}
	older := Result{Turns: []Turn{turn("storm-1000", "old"), turn("storm-1000", "old"), turn("static-10000", "old"),
		turn("no longer there", "old")}}
	result := older.With(Result{Turns: []Turn{turn("single-1000", "new"), turn("storm-1000", "new")}})
	want := []Turn{turn("storm-1000", "new"), turn("static-10000", "old"), turn("single-1000", "new")}
	if diff := cmp.Diff(want, result.Turns); diff != "" {
		t.Errorf("turns (-want +got):\n%s", diff)
	}
	if runs := result.Runs(); len(runs) != 2 || runs[0].Began != "new" || len(result.In(runs[0]).Turns) != 2 {
		t.Errorf("runs %v", runs)
	}
}
