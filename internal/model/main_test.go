package model

import (
	"flag"
	"fmt"
	"os"
	"sync"
	"testing"

	"github.com/exeunt-io/exeunt/internal/model/mutant"
)

// totals is what the last line of a deep run says.
var totals struct {
	sync.Mutex
	configurations, states, violations, killed, mutants int
}

// count adds the result of a configuration to the totals.
func count(r Result) {
	totals.Lock()
	defer totals.Unlock()
	totals.configurations++
	totals.states += r.States
	totals.violations += len(r.Violations)
}

func TestMain(m *testing.M) {
	flag.Parse()
	code := m.Run()
	if *deep {
		fmt.Printf("model: %d configurations, %d states, %d violations, %d of %d mutants killed\n",
			totals.configurations, totals.states, totals.violations, totals.killed, totals.mutants)
	}
	os.Exit(code)
}

// judge reports whether the worlds show that the mutant is wrong, and in which world.
func judge(t *testing.T, m mutant.Mutant, worlds []Config, sizes map[string]int) (killed bool, by string) {
	t.Helper()
	mutant.Select(m.ID)
	defer mutant.Select(0)
	for _, config := range worlds {
		explore(t, Limits{States: 2*sizes[config.Name] + 1000, Violations: 1, Tolerant: true}, []Config{config}, func(r Result) {
			switch {
			case len(r.Violations) > 0:
				killed, by = true, fmt.Sprintf("%s: %s", r.Config, r.Violations[0].Sentence)
			case !r.Complete:
				killed, by = true, fmt.Sprintf("%s: more than %d states, and no end", r.Config, r.States)
			}
		})
		if killed {
			return true, by
		}
	}
	return false, ""
}

// reach returns, for each world, which mutants it reaches, and the number of its states.
func reach(t *testing.T, worlds []Config) (reached map[string]map[int]bool, sizes map[string]int) {
	t.Helper()
	reached, sizes = map[string]map[int]bool{}, map[string]int{}
	for _, config := range worlds {
		here := map[int]bool{}
		var lock sync.Mutex // the goroutines of a program record at the same time
		mutant.Record(func(id int) {
			lock.Lock()
			defer lock.Unlock()
			here[id] = true
		})
		explore(t, Limits{}, []Config{config}, func(r Result) { sizes[config.Name] = r.States })
		reached[config.Name] = here
	}
	mutant.Record(nil)
	return reached, sizes
}

// isChosen reports whether the flag "mutants" names the mutant.
func isChosen(m mutant.Mutant) bool {
	return *mutants == "" || *mutants == m.Name || *mutants == "named" && m.Name != ""
}

// TestMutants runs every mutant that a small world reaches, in a binary of "make mutants".
func TestMutants(t *testing.T) {
	if !*deep || len(mutant.All()) == 0 {
		return
	}
	worlds := mutantWorlds()
	reached, sizes := reach(t, worlds)
	for i, m := range mutant.All() {
		if i%*shards != *shard || !isChosen(m) {
			continue
		}
		var mine []Config
		for _, config := range worlds {
			if reached[config.Name][m.ID] {
				mine = append(mine, config)
			}
		}
		if len(mine) == 0 {
			fmt.Printf("unreached: %s\n", m)
			continue
		}
		totals.mutants++
		killed, by := judge(t, m, mine, sizes)
		if killed {
			totals.killed++
			fmt.Printf("killed: %s: %s\n", m, by)
		} else {
			fmt.Printf("SURVIVES: %s\n", m)
		}
	}
}
