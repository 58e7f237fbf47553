package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/exeunt-io/exeunt/test/bench/measure"
	"github.com/exeunt-io/exeunt/test/bench/plan"
)

// refusing returns a turn in which a write was refused.
func refusing(side plan.Side) measure.Turn {
	return measure.Turn{
		Turn: plan.Turn{Scenario: plan.Scenario{Name: "storm-1000", Topic: plan.BySize}, Side: side, Round: 1},
		Phases: []measure.Phase{{Name: "bind", Volumes: 10, Seconds: 2,
			Requests: measure.Requests{{Verb: "PATCH", Resource: "persistentvolumes", Code: 422}: 0.5}}},
	}
}

func TestOnlyOwnRefusedWritesFail(t *testing.T) {
	for side, fails := range map[plan.Side]bool{plan.Ours: true, plan.Ceiling: true, plan.Upstream: false} {
		err := refusals(measure.Result{Turns: []measure.Turn{refusing(side)}})
		if (err != nil) != fails {
			t.Errorf("refusals of %s: %v", side, err)
		}
		if fails && !strings.Contains(err.Error(), "PATCH persistentvolumes 422") {
			t.Errorf("the error does not name the request: %v", err)
		}
	}
}

func TestPlotsAreDrawnAgainFromResults(t *testing.T) {
	o := options{out: t.TempDir()}
	small, large := refusing(plan.Ours), refusing(plan.Ours)
	small.Scenario.Size, large.Scenario.Size, large.Scenario.Name = 1_000, 5_000, "storm-5000"
	if err := write(o, measure.Result{Turns: []measure.Turn{small, large}}); err != nil {
		t.Fatal(err)
	}
	plot := filepath.Join(o.out, "bound-by-size.svg")
	first, err := os.ReadFile(plot)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(plot); err != nil {
		t.Fatal(err)
	}
	if err := run(t.Context(), []string{"--again", "--out=" + o.out}); err != nil {
		t.Fatal(err)
	}
	if second, err := os.ReadFile(plot); err != nil || string(second) != string(first) {
		t.Errorf("drawn again, %v:\n%s\ninstead of\n%s", err, second, first)
	}
}

func TestFolderHasEachScenarioWhenItEnds(t *testing.T) {
	o := options{out: t.TempDir()}
	other := refusing(plan.Ours)
	other.Scenario.Name = "storm-5000"
	all := kept{o: o, older: measure.Result{Turns: []measure.Turn{refusing(plan.Upstream)}}}
	for _, turn := range []measure.Turn{refusing(plan.Ours), other} {
		if err := all.add([]measure.Turn{turn}); err != nil {
			t.Fatal(err)
		}
		result, err := read(o.results())
		if err != nil || len(result.Of(turn.Scenario.Name, plan.Ours)) != 1 ||
			len(result.Of("storm-1000", plan.Upstream)) != 0 {
			t.Errorf("after %s: %+v, %v", turn.Scenario.Name, result, err)
		}
	}
	if got := len(all.result.Scenarios()); got != 2 {
		t.Errorf("%d scenarios were measured", got)
	}
}

func TestUnreadableResultsEndTheRunAtOnce(t *testing.T) {
	dir := t.TempDir()
	results := filepath.Join(dir, "results.json")
	if err := os.WriteFile(results, []byte("no JSON"), 0o600); err != nil {
		t.Fatal(err)
	}
	err := run(t.Context(), []string{"--bin-dir=" + dir, "--out=" + dir})
	if err == nil || !strings.Contains(err.Error(), results) {
		t.Errorf("run returned %v", err)
	}
	if text, err := os.ReadFile(results); err != nil || string(text) != "no JSON" {
		t.Errorf("the file has %q, %v", text, err)
	}
}

func TestFlags(t *testing.T) {
	o, err := parse([]string{"--full", "--only=storm", "--rounds=5", "--limit=7"})
	if err != nil || !o.choice.Full || o.choice.Only != "storm" || o.choice.Limit != 7 || o.rounds != 5 {
		t.Errorf("parsed %+v, %v", o, err)
	}
	for _, bad := range [][]string{{"--rounds=0"}, {"storm"}, {"--unknown"}} {
		if _, err := parse(bad); err == nil {
			t.Errorf("%v returned no error", bad)
		}
	}
}
