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
	if *deep {
		fmt.Printf("model: %d configurations, %d states, %d violations, %d of %d mutants killed\n",
			totals.configurations, totals.states, totals.violations, totals.killed, totals.mutants)
	}
	os.Exit(code)
}
