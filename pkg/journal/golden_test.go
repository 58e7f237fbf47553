package journal_test

import (
	"encoding/json"
	"os"
	"reflect"
	"testing"

	. "github.com/exeunt-io/exeunt/pkg/journal"
)

// goldenEntries returns the entries of the files in testdata, which were written before
// requests could have a payload.
func goldenEntries() map[string]Entry {
	discarding, unresolved := newEntry(2), newEntry(3)
	discarding.State, discarding.Handle = Discarding, "vol-0123"
	unresolved.CustodyBroken, unresolved.Unresolved = true, &Unresolved{Reason: "secret gone", Since: 17, Finish: true}
	unresolved.Superseded = []Request{newEntry(3).Request}
	unresolved.Superseded[0].AccessibilityRequirements = nil
	return map[string]Entry{"requested": newEntry(1), "discarding": discarding, "unresolved": unresolved}
}

// golden returns a file of testdata.
func golden[T any](t *testing.T, file string) map[string]T {
	t.Helper()
	text, err := os.ReadFile("testdata/" + file)
	if err != nil {
		t.Fatal(err)
	}
	var entries map[string]T
	if err := json.Unmarshal(text, &entries); err != nil {
		t.Fatal(err)
	}
	return entries
}

func TestEntriesOfEarlierVersionsAreReadTheSame(t *testing.T) {
	texts := golden[string](t, "entries.json")
	for name, want := range goldenEntries() {
		t.Run(name, func(t *testing.T) {
			got, err := Decode(want.UID, texts[name])
			if err != nil {
				t.Fatal(err)
			}
			same(t, got, want)
		})
	}
}

// An earlier version reads entries again after a rollback. It ignores unknown fields of a
// request, and would create another volume without them.
func TestEntriesAreWrittenAsByEarlierVersions(t *testing.T) {
	texts := golden[any](t, "plain.json")
	for name, entry := range goldenEntries() {
		t.Run(name, func(t *testing.T) {
			text, err := json.Marshal(entry)
			if err != nil {
				t.Fatal(err)
			}
			var got any
			if err := json.Unmarshal(text, &got); err != nil {
				t.Fatal(err)
			}
			if !reflect.DeepEqual(got, texts[name]) {
				t.Errorf("the entry is written as\n%v, want\n%v", got, texts[name])
			}
		})
	}
}
