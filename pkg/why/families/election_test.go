package families_test

import (
	"strings"
	"testing"

	"github.com/exeunt-io/exeunt/pkg/why/families"
)

func TestRunsWithoutElection(t *testing.T) {
	for args, want := range map[string][2]bool{ // of a controller that elects by a flag, of another
		"":                                     {true, false},
		"--v=5 --leader-election-namespace=ns": {true, false},
		"--leader-election":                    {false, false},
		"-leader-election=true":                {false, false},
		"--leader-election=false":              {true, true},
		"--leader-elect=0":                     {true, true},
		"--enable-leader-election=x":           {false, false},
		"--leader-election=false --leader-election": {false, false},
		"$(EXTRA_ARGS)": {false, false},
	} {
		for i, controller := range []families.Controller{{ElectsByFlag: true}, {}} {
			if got := controller.RunsWithoutElection(strings.Fields(args)); got != want[i] {
				t.Errorf("%+v with %q: %v, want %v", controller, args, got, want[i])
			}
		}
	}
}
