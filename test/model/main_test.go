package model

import (
	"flag"
	"fmt"
	"os"
	"regexp"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/exeunt-io/exeunt/test/model/explore"
	"github.com/exeunt-io/exeunt/test/model/mutant"
)

var (
	deep      = flag.Bool("deep", false, "explore all configurations of the model")
	only      = flag.String("only", "", "explore only the configurations whose name matches the expression")
	maxStates = flag.Int("max-states", 0, "the greatest number of states of one configuration, 0 for no limit")
	mutants   = flag.String(
		"mutants", "",
		"the name or the ID of the only mutant to run, \"named\" for all that have a name, \"none\" for none",
	)
	killedKeys = flag.String("killed", "", "the file to which the mutants are written that the model kills, a line each")
	// exploredFile is for the command unittests, which counts the mutants that it kills, too.
	exploredFile = flag.String("explored", "", "the file to which the last line is written, without the mutants")
	violations   = flag.Int("violations", 3, "after how many violations the exploration of a configuration ends")
)

// totals is what the last line of a deep run says.
var totals struct {
	sync.Mutex
	mutant.Summary
}

// count adds the result of a configuration to the totals.
func count(r Result) {
	totals.Lock()
	defer totals.Unlock()
	totals.Configurations++
	totals.States += r.States
	totals.Violations += len(r.Violations)
}

func TestMain(m *testing.M) {
	flag.Parse()
	code := m.Run()
	if *deep && os.Getenv(listOfMutants) == "" {
		if err := totals.Finish("model", *exploredFile); err != nil {
			fmt.Fprintln(os.Stderr, "model:", err)
			code = 1
		}
	}
	os.Exit(code)
}

// exploreAll explores the configurations one after the other, in one lab until it is large.
func exploreAll(t *testing.T, limits explore.Limits, configs []Config, found func(Result)) {
	t.Helper()
	exploreTolerant(t, limits, configs, func(r Result) {
		if r.Err != nil {
			t.Error(r.Err)
			return
		}
		found(r)
	})
}

// exploreTolerant explores as exploreAll does, and takes what a program cannot do for a violation.
func exploreTolerant(t *testing.T, limits explore.Limits, configs []Config, found func(Result)) {
	t.Helper()
	synctest.Test(t, func(*testing.T) {
		lab := NewLab()
		defer func() { lab.Close() }()
		for _, config := range configs {
			if lab.isLarge() {
				lab.Close()
				lab = NewLab()
			}
			began := realTime()
			result, err := lab.Explore(config, limits)
			if err != nil {
				result.Err = err
				finding := explore.Finding{Rule: "Error", Sentence: err.Error()}
				result.Violations = append(result.Violations, explore.Violation{Finding: finding})
			}
			result.Took = realTime().Sub(began)
			found(result)
		}
	})
}

// realTime returns the time of the machine: in a bubble, time.Now is that of the bubble.
func realTime() time.Time {
	var now syscall.Timeval
	if err := syscall.Gettimeofday(&now); err != nil {
		panic(err)
	}
	return time.Unix(now.Unix())
}

func TestDeep(t *testing.T) {
	if !*deep {
		return
	}
	chosen := regexp.MustCompile(*only)
	for _, group := range Groups() {
		t.Run(group.Name, func(t *testing.T) {
			t.Parallel()
			var configs []Config
			for _, config := range group.Configs {
				if chosen.MatchString(config.Name) {
					configs = append(configs, config)
				}
			}
			exploreAll(t, explore.Limits{States: *maxStates, Violations: *violations}, configs, func(r Result) { report(t, r) })
		})
	}
}

// report prints a result, and fails for what is wrong.
func report(t *testing.T, r Result) {
	t.Helper()
	count(r)
	fmt.Fprintf(
		os.Stderr, "| %s | %d | %d | %d | %d | %d | %s |\n", r.Config, r.States, r.Steps, r.Depth, r.Locals, r.Resting,
		r.Took.Round(100*time.Millisecond),
	)
	if !r.Complete && !r.Bounded && len(r.Violations) == 0 {
		t.Errorf("%s: %d states, and not all of them", r.Config, r.States)
	}
	for _, excuse := range r.Unneeded {
		t.Errorf("%s: no violation needs the excuse: %s", r.Config, excuse)
	}
	for _, v := range r.Violations {
		fmt.Fprintf(os.Stderr, "%s: %s\n", r.Config, v)
		t.Errorf("%s: %s %s", r.Config, v.Rule, v.Sentence)
	}
}
