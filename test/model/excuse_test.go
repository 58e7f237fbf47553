package model

import (
	"slices"
	"strings"
	"testing"

	v1 "k8s.io/api/core/v1"

	"github.com/exeunt-io/exeunt/test/model/explore"
)

// TestExcuses explores a world in which upstream's loops leak a disk.
func TestExcuses(t *testing.T) {
	world := upstreamPair(static(v1.PersistentVolumeReclaimDelete).gateOff())
	for name, tc := range map[string]struct {
		excuses          []Excuse
		broken, unneeded int
	}{
		"without an excuse the leak is reported": {nil, 2, 0},
		"an excuse covers what follows from it":  {[]Excuse{protectionRemoved}, 0, 0},
		"an excuse of another program does not":  {[]Excuse{volumeUnrecorded}, 2, 1},
		"an excuse that nothing needs is found":  {[]Excuse{protectionRemoved, deletedVolumeKept}, 0, 1},
	} {
		t.Run(name, func(t *testing.T) {
			world.Excused = tc.excuses
			exploreAll(t, explore.Limits{}, []Config{world}, func(r Result) {
				if len(r.Violations) != tc.broken || len(r.Unneeded) != tc.unneeded {
					t.Errorf("violations %v, unneeded excuses %v; want %d and %d", r.Violations, r.Unneeded, tc.broken, tc.unneeded)
				}
			})
		})
	}
}

// TestExcusesAreUpstreams explores the worlds of excuses with upstream's programs alone: what they
// do wrong beside ours, they do wrong there too. A fault may also not happen, so what is wrong in
// a world is wrong with each fault in addition.
func TestExcusesAreUpstreams(t *testing.T) {
	if !*deep {
		return
	}
	shown := map[string]bool{}
	for _, world := range besideWorlds() {
		own := slices.DeleteFunc(slices.Clone(world.Excused), func(x Excuse) bool {
			base, _, _ := strings.Cut(world.Name, ",")
			key := base + x.Rule.String()
			known := shown[key]
			shown[key] = true
			return known || x.Beside
		})
		if len(own) == 0 {
			continue
		}
		world = upstreamPair(world)
		world.Name, world.Excused, world.UntilExcused, world.Admission = world.Name+", upstream alone", own, true, true
		t.Run(world.Name, func(t *testing.T) {
			t.Parallel()
			exploreAll(t, explore.Limits{States: 3_000_000}, []Config{world}, func(r Result) {
				r.Violations = nil // the last line counts those of our programs
				count(r)
				if len(r.Unneeded) > 0 {
					t.Errorf("%d states, complete: %v; upstream's programs alone do not: %v", r.States, r.Complete, r.Unneeded)
				}
			})
		})
	}
}
