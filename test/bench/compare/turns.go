package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"time"

	"github.com/exeunt-io/exeunt/test/bench/load"
	"github.com/exeunt-io/exeunt/test/bench/measure"
	"github.com/exeunt-io/exeunt/test/bench/plan"
	"github.com/exeunt-io/exeunt/test/sandbox"
)

// options are the flags of the program.
type options struct {
	choice   plan.Choice
	rounds   int
	binaries sandbox.Binaries
	// out is the folder of results and plots.
	out string
	// profiles is the directory of profiles, empty for none.
	profiles string
	again    bool
}

// results is the file of all values.
func (o options) results() string { return filepath.Join(o.out, "results.json") }

// measureAll runs all turns and keeps those of each scenario when it ends. It goes on after an
// error.
func measureAll(ctx context.Context, o options, keep func([]measure.Turn) error) error {
	scenarios, err := plan.Choose(plan.Scenarios(), o.choice)
	if err != nil {
		return err
	}
	run := measure.Run{Began: time.Now().UTC().Format("2006-01-02 15:04"), Machine: machine()}
	if run.Version, err = version(ctx, o.binaries); err != nil {
		return err
	}
	keepRun := func(turns []measure.Turn) error {
		for i := range turns {
			turns[i].Run = run
		}
		return keep(turns)
	}
	for _, cluster := range plan.Clusters(scenarios) {
		failed := measureCluster(ctx, cluster, o, keepRun)
		if err = errors.Join(err, failed); ctx.Err() != nil {
			return err
		}
	}
	return err
}

// measureCluster runs the turns of the scenarios in a new cluster.
func measureCluster(ctx context.Context, scenarios []plan.Scenario, o options,
	keep func([]measure.Turn) error) (err error) {
	cluster, err := load.Start(ctx, load.Config{Binaries: o.binaries, Profiling: o.profiles != ""})
	if err != nil {
		return err
	}
	defer func() {
		failed := err != nil && ctx.Err() == nil // who interrupts looks at no log
		err = errors.Join(err, cluster.Stop(context.WithoutCancel(ctx), failed))
	}()
	if err := load.Define(ctx, cluster, scenarios[0].Kinds); err != nil {
		return err
	}
	pairs := 0
	for _, scenario := range scenarios {
		if scenario.Background > pairs {
			fmt.Printf("%s creating pairs %d to %d\n", now(), pairs+1, scenario.Background)
			if err := load.Fill(ctx, cluster, pairs, scenario.Background); err != nil {
				return err
			}
			pairs = scenario.Background
		}
		turns, failed := measureScenario(ctx, cluster, scenario, o)
		if ctx.Err() != nil {
			return errors.Join(err, failed) // some turns of the scenario are missing
		}
		err = errors.Join(err, failed)
		if len(turns) > 0 {
			err = errors.Join(err, keep(turns))
		}
	}
	return err
}

// measureScenario runs the turns of a scenario. A turn that fails has no result, and the others
// follow.
func measureScenario(ctx context.Context, cluster *load.Cluster, scenario plan.Scenario,
	o options) (turns []measure.Turn, err error) {
	for _, turn := range scenario.Turns(o.rounds) {
		measured, failed := load.Run(ctx, cluster, turn, o.profiles)
		if failed != nil {
			fmt.Printf("%s failed: %v\n", now(), failed)
			if err = errors.Join(err, failed); ctx.Err() != nil {
				return turns, err
			}
			continue
		}
		turns = append(turns, measured)
		fmt.Println(line(measured))
	}
	return turns, err
}

// now is the time of a line of the output.
func now() string { return time.Now().UTC().Format("15:04:05") }

// line returns what is printed of a turn while others follow.
func line(turn measure.Turn) string {
	var text strings.Builder
	fmt.Fprintf(&text, "%s %s, round %d, %s:", now(), turn.Scenario.Name, turn.Round, turn.Side)
	for _, p := range turn.Phases {
		fmt.Fprintf(&text, " %s %.1f/s, %.1f requests;", p.Name, p.Rate(), p.Requests.Sum(nil))
	}
	return strings.TrimSuffix(text.String(), ";")
}

// write writes all values, and their plots.
func write(o options, result measure.Result) error {
	files, err := Plots(result)
	if err != nil {
		return err
	}
	if files[filepath.Base(o.results())], err = json.Marshal(result); err != nil {
		return fmt.Errorf("encode results: %w", err)
	}
	if err := os.MkdirAll(o.out, 0o755); err != nil {
		return fmt.Errorf("make folder of results: %w", err)
	}
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(o.out, name), text, 0o644); err != nil {
			return fmt.Errorf("write results: %w", err)
		}
	}
	return nil
}

// read returns the values in the file, none if there is no file.
func read(file string) (result measure.Result, err error) {
	text, err := os.ReadFile(file)
	if errors.Is(err, os.ErrNotExist) {
		return result, nil
	}
	if err == nil {
		err = json.Unmarshal(text, &result)
	}
	if err != nil {
		return result, fmt.Errorf("read results in %s: %w", file, err)
	}
	return result, nil
}

// refusals returns an error if a write of our programs was refused.
func refusals(result measure.Result) error {
	var errs []error
	for _, turn := range result.Turns {
		if turn.Side == plan.Upstream {
			continue
		}
		for _, phase := range turn.Phases {
			refused := phase.Requests.Refused()
			for _, request := range refused.Kinds() {
				errs = append(errs, fmt.Errorf("%s, round %d, %s, %s: %.3f per %s were refused: %s", turn.Scenario.Name, turn.Round,
					turn.Side, phase.Name, refused[request], turn.Scenario.Unit(), request))
			}
		}
	}
	return errors.Join(errs...)
}

// machine describes processor and system, as far as /proc tells.
func machine() string {
	processor := "unknown processor"
	text, err := os.ReadFile("/proc/cpuinfo")
	if err == nil {
		for line := range strings.Lines(string(text)) {
			if key, value, _ := strings.Cut(line, ":"); strings.TrimSpace(key) == "model name" {
				processor = strings.TrimSpace(value)
			}
		}
	}
	return fmt.Sprintf("%d cores of %s", runtime.NumCPU(), processor)
}

// version returns the version of our programs.
func version(ctx context.Context, binaries sandbox.Binaries) (string, error) {
	path, err := binaries.Path("pv-controller")
	if err != nil {
		return "", err
	}
	text, err := exec.CommandContext(ctx, path, "--version").Output()
	if err != nil {
		return "", fmt.Errorf("ask for the version: %w", err)
	}
	return strings.TrimSpace(string(text)), nil
}
