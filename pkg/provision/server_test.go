package provision_test

import (
	"testing"

	"github.com/exeunt-io/exeunt/pkg/provision"
	"github.com/exeunt-io/exeunt/pkg/storage"
)

func TestANodeChoosesItselfOnlyForAClaimThatIsForAnyNode(t *testing.T) {
	for bits := range 16 {
		for _, server := range []provision.Server{provision.ThisProcess, provision.NoProcess, provision.OtherProcess} {
			for _, room := range []provision.Room{provision.NotAsked, provision.Enough, provision.TooLittle} {
				c := provision.Choice{Wanted: bits&1 != 0, Immediate: bits&2 != 0, Allowed: bits&4 != 0, Classed: bits&8 != 0, Server: server, Room: room}
				open := c.Wanted && c.Immediate && c.Allowed && c.Server == provision.NoProcess
				want := provision.Leave
				switch {
				case c.Wanted && c.Server == provision.NoProcess && !c.Classed:
					want = provision.ComeBack
				case open && room == provision.NotAsked:
					want = provision.AskRoom
				case open && room == provision.TooLittle:
					want = provision.ComeBack
				case open:
					want = provision.Choose
				}
				if got := provision.DecideChoice(c); got != want {
					t.Errorf("DecideChoice(%+v) = %v, want %v", c, got, want)
				}
			}
		}
	}
}

func TestServerOf(t *testing.T) {
	for chosen, want := range map[string]provision.Server{"": provision.NoProcess, "mine": provision.ThisProcess, "yours": provision.OtherProcess} {
		if got := provision.ServerOf(chosen, "mine"); got != want {
			t.Errorf("ServerOf(%q) = %v, want %v", chosen, got, want)
		}
	}
}

func TestClaimOfAnotherProcessIsLeftAlone(t *testing.T) {
	for known := storage.RecordAbsent; known <= storage.RecordConflict; known++ {
		s := provision.State{Journaled: true, Leading: true, Want: provision.Unserved, Record: known}
		if got := provision.Decide(s).Action; got != provision.Wait {
			t.Errorf("Decide(%+v) = %v, want Wait", s, got)
		}
	}
}
