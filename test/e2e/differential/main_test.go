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
	// patience bounds every wait, reconsidering the time until the outcome of a scenario is
	// the intended one. Waits that end well are far shorter.
	patience      = 30 * time.Second
	reconsidering = 15 * time.Second
	// atOnce is the number of scenarios at a time. Scenarios mostly wait.
	atOnce = "24"
)

// The sides. The first scenario that needs a side starts it.
var (
	ours     = lazily(side{name: "ours", honor: true})
	oursOff  = lazily(side{name: "ours-off"})
	upstream = lazily(side{name: "upstream", upstream: true})
)

var (
	started   []*side
	startedMu sync.Mutex
)

// lazily returns a function that starts the side on its first call.
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
