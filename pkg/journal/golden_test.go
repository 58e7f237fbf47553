package journal_test

import (
	"encoding/json"
	"os"
	"testing"

	. "github.com/exeunt-io/exeunt/pkg/journal"
)

// testdata/entries.json was written before requests could have a payload.
func TestEntriesOfEarlierVersionsAreReadTheSame(t *testing.T) {
	text, err := os.ReadFile("testdata/entries.json")
	if err != nil {
		t.Fatal(err)
	}
	var golden map[string]string
	if err := json.Unmarshal(text, &golden); err != nil {
		t.Fatal(err)
	}
	discarding, unresolved := newEntry(2), newEntry(3)
	discarding.State, discarding.Handle = Discarding, "vol-0123"
	unresolved.CustodyBroken, unresolved.Unresolved = true, &Unresolved{Reason: "secret gone", Since: 17, Finish: true}
	unresolved.Superseded = []Request{newEntry(3).Request}
	unresolved.Superseded[0].AccessibilityRequirements = nil
	for name, want := range map[string]Entry{"requested": newEntry(1), "discarding": discarding, "unresolved": unresolved} {
		t.Run(name, func(t *testing.T) {
			got, err := Decode(want.UID, golden[name])
			if err != nil {
				t.Fatal(err)
			}
			same(t, got, want)
		})
	}
}
