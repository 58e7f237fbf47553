package main

import "testing"

// A journal entry of a claim that is gone may wait for ten minutes, anything else may not.
func TestOnlyJournalEntriesMayWaitLong(t *testing.T) {
	found := []finding{{"text", nil}}
	for name, tc := range map[string]struct {
		left left
		none bool
		long bool
	}{
		"nothing":           {left{unresolved: 1, unrecorded: 1}, true, true},
		"entries":           {left{open: found}, false, true},
		"entries and stuck": {left{open: found, stuck: found}, false, false},
		"leaked":            {left{leaked: found}, false, false},
	} {
		t.Run(name, func(t *testing.T) {
			if got := tc.left.none(); got != tc.none {
				t.Errorf("none = %t, want %t", got, tc.none)
			}
			if got := tc.left.patience() == noAnswer; got != tc.long {
				t.Errorf("patience = %v", tc.left.patience())
			}
		})
	}
}

func TestProgressOfEntriesIsSeen(t *testing.T) {
	one, two := left{open: []finding{{"a", nil}}}, left{open: []finding{{"b", nil}}}
	if one.fingerprint() == two.fingerprint() {
		t.Error("another entry changes nothing")
	}
}
