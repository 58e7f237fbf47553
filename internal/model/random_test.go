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
)

var (
	randomTime = flag.Duration("random", 20*time.Second, "for how long TestRandomWalks walks")
	randomSeed = flag.Uint64("random-seed", 0, "the seed of the first random walk, 0 for a new one")
	disturbed  = flag.Int("disturbances", 60, "the average number of disturbances of a random walk")
	shrinkTime = flag.Duration("shrink", 30*time.Second, "for how long the story of a failed walk is made shorter")
)

// kinds are the disturbances, as often as they are likely.
var kinds = slices.Concat(
	slices.Repeat([]Kind{User}, 8), slices.Repeat([]Kind{Interrupt}, 6), []Kind{Crash, Crash, Lose, Lose, Fail, Fail, Stall, Stall, Hour},
)

// drawWalk draws a walk. A shorter list of disturbances is a simpler walk.
func drawWalk(t *rapid.T) Walk {
	w := Walk{Seed: rapid.Uint64().Draw(t, "seed")}
	after, kind, pick := rapid.IntRange(0, 30), rapid.SampledFrom(kinds), rapid.IntRange(0, 63)
	t.Repeat(map[string]func(*rapid.T){"disturbance": func(t *rapid.T) {
		w.Disturbances = append(w.Disturbances, Disturbance{After: after.Draw(t, "after"), Kind: kind.Draw(t, "kind"), Pick: pick.Draw(t, "pick")})
	}})
	return w
}

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
	// count and steps are the walks and steps so far, without those that make a story shorter.
	count, steps int
}

// walk walks through the world, by the seed. It returns the broken rule with the shortest story
// that rapid finds.
func (w *walks) walk(config Config, seed uint64) *Violation {
	for name, value := range map[string]any{"seed": seed, "checks": 1, "steps": *disturbed, "nofailfile": true, "shrinktime": *shrinkTime} {
		if err := flag.Set("rapid."+name, fmt.Sprint(value)); err != nil {
			w.t.Fatal(err)
		}
	}
	var found *Violation
	rapid.Check(&tester{T: w.t}, func(t *rapid.T) {
		walked := w.once(config, drawWalk(t))
		if found == nil {
			w.count++
			w.steps += walked.Steps
		}
		v := walked.Violation
		if v == nil || w.rules != nil && !slices.Contains(w.rules, v.Rule) || found != nil && found.Rule != v.Rule {
			return
		}
		found = v
		t.Fatal(v.Rule)
	})
	return found
}

func (w *walks) once(config Config, walk Walk) (walked Walked) {
	synctest.Test(w.t, func(t *testing.T) {
		lab := NewLab()
		defer lab.Close()
		var err error
		if walked, err = lab.Walk(config, walk); err != nil {
			t.Error(err)
		}
	})
	return walked
}

// TestRandomWalks walks through large worlds, with faults and users, each time another way.
func TestRandomWalks(t *testing.T) {
	seed, began, w := *randomSeed, time.Now(), &walks{t: t}
	if seed == 0 {
		seed = rand.Uint64() >> 32
	}
	worlds := Crowds()
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

var _ = strings.Join
