package provision_test

import (
	"testing"

	. "github.com/exeunt-io/exeunt/pkg/provision"
)

func TestGivesUpNode(t *testing.T) {
	for name, tc := range map[string]struct {
		state      State
		unsuitable bool
		want       bool
	}{
		"unsuitable node of a first request":   {State{Want: Wanted}, true, true},
		"unsuitable node of a settled request": {State{Want: Wanted, Stored: true, Creation: Failed}, true, true},
		"unsuitable node, nothing stored":      {State{Want: Wanted, Creation: Requested}, true, true},
		"open request is sent again":           {State{Want: Wanted, Stored: true, Creation: Requested}, true, false},
		"request is open for long":             {State{Want: Wanted, Stored: true, Creation: Requested, LongRequested: true}, true, true},
		"request that failed once is open":     {State{Want: Wanted, Stored: true, Creation: FailedOnce}, true, false},
		"suitable node":                        {State{Want: Wanted}, false, false},
		"unwanted volume":                      {State{Want: Unwanted}, true, false},
	} {
		t.Run(name, func(t *testing.T) {
			if got := GivesUpNode(tc.state, tc.unsuitable); got != tc.want {
				t.Errorf("GivesUpNode(%+v, %v) = %v, want %v", tc.state, tc.unsuitable, got, tc.want)
			}
		})
	}
}
