package differential

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// alone is locked by a scenario that changes shared objects.
var alone sync.Mutex

func TestOursMatchesUpstream(t *testing.T) {
	all, err := scenarios()
	if err != nil {
		t.Fatal(err)
	}
	intended, err := loadIntended()
	if err != nil {
		t.Fatal(err)
	}
	for _, topic := range topics(all) {
		t.Run(topic, func(t *testing.T) {
			t.Parallel()
			for _, one := range all {
				if one.topic != topic {
					continue
				}
				t.Run(one.Name, func(t *testing.T) {
					t.Parallel()
					if one.Alone {
						alone.Lock()
						defer alone.Unlock()
					}
					one.compare(t, intended.of(one.Name))
				})
			}
		})
	}
}

// compare runs a scenario on both sides at once. A difference may still disappear, so the
// outcomes are compared until only the intended differences are left.
func (s *scenario) compare(t *testing.T, intended []difference) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 3*patience)
	defer cancel()
	runs, err := s.runOnBothSides(ctx)
	if s.Alone {
		defer s.deleteClaims(ctx, t, runs)
	}
	if err != nil {
		results.add(s, failed)
		t.Fatal(err)
	}
	reconsidered := time.After(reconsidering)
	var found []difference
	for again := time.NewTicker(100 * time.Millisecond); ; {
		found = slices.DeleteFunc(compare(runs[0].outcome(), runs[1].outcome()), func(d difference) bool {
			return slices.Contains(s.Races, d.What) || d.isShortWait()
		})
		if slices.Equal(found, intended) {
			results.add(s, outcomeOf(intended))
			results.show(runs[0].outcome(), runs[1].outcome())
			again.Stop()
			return
		}
		select {
		case <-again.C:
		case <-reconsidered:
			results.add(s, failed)
			t.Fatal(explain(found, intended))
		}
	}
}

// runOnBothSides runs the scenario on both sides, and returns the run of ours first.
func (s *scenario) runOnBothSides(ctx context.Context) ([]*scenarioRun, error) {
	first := ours
	if s.Gate == "off" {
		first = oursOff
	}
	runs, errs := make([]*scenarioRun, 2), make([]error, 2)
	var running sync.WaitGroup
	for i, start := range []func() (*side, error){first, upstream} {
		running.Go(func() {
			side, err := start()
			if err != nil {
				errs[i] = fmt.Errorf("start side %s: %w", side.name, err)
				return
			}
			runs[i] = &scenarioRun{side: side, scenario: s, created: map[string]types.UID{}}
			errs[i] = runs[i].run(ctx)
		})
	}
	running.Wait()
	return runs, errors.Join(errs...)
}

// deleteClaims cleans up both sides for the next scenario with Alone.
func (s *scenario) deleteClaims(ctx context.Context, t *testing.T, runs []*scenarioRun) {
	t.Helper()
	for _, r := range runs {
		if r == nil {
			continue
		}
		if err := r.deleteClaims(ctx); err != nil {
			t.Error(err)
		}
	}
}

// explain describes unintended differences as entries for differences.yaml.
func explain(found, intended []difference) string {
	var text strings.Builder
	for _, one := range found {
		if !slices.Contains(intended, one) {
			fmt.Fprintf(&text, "\nnot intended:\n  - {what: %q, ours: %q, upstream: %q}", one.What, one.Ours, one.Upstream)
		}
	}
	for _, one := range intended {
		if !slices.Contains(found, one) {
			fmt.Fprintf(&text, "\nintended, but missing: %s", one)
		}
	}
	return text.String()
}

func topics(all []*scenario) []string {
	var names []string
	for _, one := range all {
		if !slices.Contains(names, one.topic) {
			names = append(names, one.topic)
		}
	}
	return names
}

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
