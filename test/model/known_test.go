package model

import (
	"fmt"
	"os"
	"slices"
	"testing"

	"github.com/exeunt-io/exeunt/test/model/explore"
)

// TestKnownBugsAreFound explores each known bug until the model finds it, and the same world with
// our programs.
func TestKnownBugsAreFound(t *testing.T) {
	for _, bug := range KnownBugs() {
		t.Run(bug.Name, func(t *testing.T) {
			var found []string
			exploreAll(t, explore.Limits{States: 3_000_000, Until: bug.Rules}, []Config{bug.Config}, func(r Result) {
				for _, v := range r.Violations {
					found = append(found, v.Rule)
					if slices.Contains(bug.Rules, v.Rule) {
						fmt.Fprintf(os.Stderr, "found: %s, by %d states: %s\n", bug.Name, r.States, v)
					}
				}
			})
			if !slices.ContainsFunc(found, func(rule string) bool { return slices.Contains(bug.Rules, rule) }) {
				t.Errorf("the model does not find it: broken are %v, want one of %v", found, bug.Rules)
			}
		})
	}
}
