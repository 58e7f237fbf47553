package model

import (
	"flag"
	"fmt"
	"os"
	"regexp"
	"testing"
	"testing/synctest"
	"time"
)

var (
	deep       = flag.Bool("deep", false, "explore all configurations of the model")
	only       = flag.String("only", "", "explore only the configurations whose name matches the expression")
	maxStates  = flag.Int("max-states", 0, "the greatest number of states of one configuration, 0 for no limit")
	mutants    = flag.String("mutants", "", "the name or the ID of the only mutant to run, \"named\" for all that have a name, \"none\" for none")
	killedKeys = flag.String("killed", "", "the file to which the mutants are written that the model kills, a line each")
	// exploredFile is for the command unittests, which counts the mutants that it kills, too.
	exploredFile = flag.String("explored", "", "the file to which the last line is written, without the mutants")
	violations   = flag.Int("violations", 3, "after how many violations the exploration of a configuration ends")
)

// explore explores the configurations one after the other, in one lab until it is large.
func explore(t *testing.T, limits Limits, configs []Config, found func(Result)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		lab := NewLab()
		defer func() { lab.Close() }()
		for _, config := range configs {
			if lab.isLarge() {
				lab.Close()
				lab = NewLab()
			}
			began := realTime()
			result, err := lab.Explore(config, limits)
			if err != nil && !limits.Tolerant {
				t.Error(err)
				return
			}
			if err != nil {
				result.Err = err
				result.Violations = append(result.Violations, Violation{Rule: "Error", Sentence: err.Error()})
			}
			result.Took = realTime().Sub(began)
			found(result)
		}
	})
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
			explore(t, Limits{States: *maxStates, Violations: *violations}, configs, func(r Result) { report(t, r) })
		})
	}
}

// report prints a result, and fails for what is wrong.
func report(t *testing.T, r Result) {
	t.Helper()
	count(r)
	fmt.Fprintf(os.Stderr, "| %s | %d | %d | %d | %d | %d | %s |\n", r.Config, r.States, r.Steps, r.Depth, r.Locals, r.Ended, r.Took.Round(100*time.Millisecond))
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
