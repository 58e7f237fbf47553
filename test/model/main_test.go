package model

import (
	"flag"
	"fmt"
	"os"
	"sync"
	"testing"
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
	if *deep && os.Getenv(listOfMutants) == "" {
		explored := fmt.Sprintf("model: %d configurations, %d states, %d violations", totals.configurations, totals.states, totals.violations)
		fmt.Printf("%s, %d of %d mutants killed\n", explored, totals.killed, totals.mutants)
		if *exploredFile != "" {
			if err := os.WriteFile(*exploredFile, []byte(explored), 0o600); err != nil {
				fmt.Fprintln(os.Stderr, "model:", err)
				code = 1
			}
		}
	}
	os.Exit(code)
}
