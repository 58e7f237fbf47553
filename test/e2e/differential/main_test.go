package differential

import (
	"flag"
	"fmt"
	"os"
	"sync"
	"testing"
	"time"
)

const (
	// patience bounds every wait, and reconsidering how long the end of a scenario
	// may differ from what is intended; they are met only by what never comes.
	patience      = 30 * time.Second
	reconsidering = 15 * time.Second
	// atOnce is how many scenarios run at once: they wait far more than they work.
	atOnce = "24"
)

// The sides, started by the first scenario that needs them.
var (
	ours     = lazily(side{name: "ours", honor: true})
	oursOff  = lazily(side{name: "ours-off"})
	upstream = lazily(side{name: "upstream", upstream: true})
)

var (
	started   []*side
	startedMu sync.Mutex
)

// lazily starts a side once, when it is first asked for.
func lazily(s side) func() (*side, error) {
	return sync.OnceValues(func() (*side, error) {
		err := s.start()
		if err == nil {
			startedMu.Lock()
			started = append(started, &s)
			startedMu.Unlock()
		}
		return &s, err
	})
}

func TestMain(m *testing.M) {
	flag.Parse()
	if err := flag.Set("test.parallel", atOnce); err != nil {
		panic(err)
	}
	code := m.Run()
	for _, s := range started {
		if err := s.finish(); err != nil {
			fmt.Fprintf(os.Stderr, "side %s: %v\n", s.name, err)
			code = 1
		}
	}
	if err := report(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	os.Exit(code)
}
