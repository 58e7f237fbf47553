package model

import (
	"strings"
	"testing"
	"time"

	"github.com/exeunt-io/exeunt/test/model/explore"
)

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
