package model

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"github.com/exeunt-io/exeunt/test/model/explore"
)

var (
	randomTime = flag.Duration("random", 20*time.Second, "for how long TestRandomWalks walks")
	randomSeed = flag.Uint64("random-seed", 0, "the seed of the first random walk, 0 for a new one")
	disturbed  = flag.Int("disturbances", 60, "the average number of disturbances of a random walk")
	shrinkTime = flag.Duration("shrink", 30*time.Second, "for how long the story of a failed walk is made shorter")
)

// kinds are the disturbances, as often as they are likely.
var kinds = slices.Concat(
	slices.Repeat([]Kind{User}, 8), slices.Repeat([]Kind{Interrupt}, 6),
	[]Kind{
		Crash, Crash, Lose, Lose, Fail, Fail, Deny, Deny, Undo, Stall, Stall, Hour, WrongAnswer, Switch, OldList, Backup,
		Restore,
	},
)

// tester lets rapid fail without the end of the test.
type tester struct {
	*testing.T
	failed bool
}

func (t *tester) Logf(string, ...any)   {}
func (t *tester) Log(...any)            {}
func (t *tester) Errorf(string, ...any) { t.failed = true }
func (t *tester) Error(...any)          { t.failed = true }
func (t *tester) Fatalf(string, ...any) { t.failed = true }
func (t *tester) Fatal(...any)          { t.failed = true }
func (t *tester) Fail()                 { t.failed = true }
func (t *tester) FailNow()              { t.failed = true }
func (t *tester) Failed() bool          { return t.failed }

// walks are random walks through worlds.
type walks struct {
	t *testing.T
	// rules are the rules to judge by, nil for all.
	rules []string
	// disturbances is the average number of disturbances of a walk.
	disturbances int
	// shrink is for how long a story is made shorter.
	shrink time.Duration
	// count and steps are the walks and steps so far.
	count, steps int
	// found is the broken rule of the present walk.
	found *explore.Violation
}

// walk walks through the world, by the seed. It returns the broken rule with the shortest story
// that rapid finds.
func (w *walks) walk(config Config, seed uint64) *explore.Violation {
	for name, value := range map[string]any{
		"seed": seed, "checks": 1, "steps": w.disturbances, "nofailfile": true, "shrinktime": w.shrink,
	} {
		if err := flag.Set("rapid."+name, fmt.Sprint(value)); err != nil {
			w.t.Fatal(err)
		}
	}
	w.found = nil
	rapid.Check(&tester{T: w.t}, func(t *rapid.T) { w.once(t, config, seed) })
	return w.found
}

// once walks once, in a bubble. Rapid panics to end the walk, and needs the panic outside of the bubble.
func (w *walks) once(t *rapid.T, config Config, seed uint64) {
	var panicked any
	synctest.Test(w.t, func(test *testing.T) {
		lab := NewLab()
		defer lab.Close()
		walker, err := lab.NewWalker(config, seed)
		if err != nil {
			test.Error(err)
			return
		}
		defer walker.Close()
		walker.Rules = w.rules
		if w.found != nil { // while a story is made shorter, it stays that of the first rule
			walker.Rules = []string{w.found.Rule}
		}
		defer func() { panicked = recover() }()
		w.along(t, walker)
	})
	if panicked != nil {
		panic(panicked)
	}
}

var (
	drawnAfter = rapid.Uint8Range(0, 31)
	drawnKind  = rapid.SampledFrom(kinds)
	drawnPick  = rapid.Uint8Range(0, 63)
)

// along walks along disturbances that are drawn on the way, and to rest. It fails for a broken rule.
func (w *walks) along(t *rapid.T, walker *Walker) {
	defer func() {
		w.count++
		w.steps += walker.Steps
	}()
	t.Repeat(map[string]func(*rapid.T){"disturbance": func(t *rapid.T) {
		d := Disturbance{
			After: int(drawnAfter.Draw(t, "after")), Kind: drawnKind.Draw(t, "kind"), Pick: int(drawnPick.Draw(t, "pick")),
		}
		if !walker.Disturb(d) {
			w.fail(t, walker.Violation)
		}
	}})
	if !walker.Rest() {
		w.fail(t, walker.Violation)
	}
}

func (w *walks) fail(t *rapid.T, v *explore.Violation) {
	w.found = v
	t.Fatal(v.Rule)
}

// TestRandomWalks walks through large worlds, with faults and users, each time another way.
func TestRandomWalks(t *testing.T) {
	seed, began, w := *randomSeed, time.Now(), &walks{t: t, disturbances: *disturbed, shrink: *shrinkTime}
	if seed == 0 {
		seed = uint64(rand.Uint32()) + 1
	}
	worlds := LargeWorlds()
	fmt.Fprintf(os.Stderr, "random walks from -random-seed=%d\n", seed)
	for ; time.Since(began) < *randomTime; seed++ {
		config := worlds[seed%uint64(len(worlds))]
		if v := w.walk(config, seed); v != nil {
			t.Errorf("%s, -random-seed=%d: %s", config.Name, seed, v)
			break
		}
	}
	took := time.Since(began)
	fmt.Fprintf(os.Stderr, "random walks: %d, with %d steps, in %s\n", w.count, w.steps, took.Round(time.Second))
}

// TestRandomWalksFindKnownBugs walks through large worlds in which something is known to be wrong.
func TestRandomWalksFindKnownBugs(t *testing.T) {
	for name, test := range map[string]struct {
		config Config
		rule   string
		// seed is that of the first walk.
		seed uint64
		// events is the greatest number of users' actions and faults in the story.
		events int
	}{
		"upstream adds the finalizer too late":  {upstreamPair(staticLarge()), "Leaked", 1, 20},
		"a volume is deleted with the gate off": {staticLarge().gateOff(), "Leaked", 1, 20},
	} {
		t.Run(name, func(t *testing.T) {
			w := &walks{t: t, rules: []string{test.rule}, disturbances: 15, shrink: 30 * time.Second}
			var v *explore.Violation
			seed := test.seed
			for ; v == nil && seed < test.seed+300; seed++ {
				v = w.walk(test.config, seed)
			}
			if v == nil {
				t.Fatalf("%d walks with %d steps do not find it", w.count, w.steps)
			}
			events := strings.Count(strings.Join(v.Story, "\n"), marks[false])
			t.Logf("-random-seed=%d, %d events in %d steps: %s", seed-1, events, len(v.Story), v)
			if events > test.events {
				t.Errorf("the story has %d events, want at most %d", events, test.events)
			}
		})
	}
}
