package model

import (
	"testing"

	"github.com/exeunt-io/exeunt/test/model/explore"
)

// TestProgramEndsForJournalOfLaterLeader: a program that finds the journal of a later leader ends itself, which
// is nothing that is stuck, and leads again in a later term.
func TestProgramEndsForJournalOfLaterLeader(t *testing.T) {
	exploreAll(t, explore.Limits{}, []Config{scene("journal of a later leader", nil, []creation{newClass(remove), newClaim("data", class), newJournal(3)})}, func(r Result) { report(t, r) })
}
