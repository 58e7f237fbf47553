package provision_test

import (
	"testing"

	"github.com/exeunt-io/exeunt/pkg/provision"
	"github.com/exeunt-io/exeunt/pkg/storage"
)

func TestServerOf(t *testing.T) {
	for selected, want := range map[string]provision.Server{"": provision.NoProcess, "mine": provision.ThisProcess,
		"yours": provision.OtherProcess} {
		if got := provision.ServerOf(selected, "mine"); got != want {
			t.Errorf("ServerOf(%q) = %v, want %v", selected, got, want)
		}
		if got := provision.ServerOf(selected, ""); got != provision.ThisProcess {
			t.Errorf("a process for all nodes does not serve %q: %v", selected, got)
		}
	}
}

func TestClaimOfOtherProcessIsLeftAlone(t *testing.T) {
	for known := storage.RecordAbsent; known <= storage.RecordConflict; known++ {
		s := provision.State{Journaled: true, Leading: true, Want: provision.Unserved, Record: known}
		if got := provision.Decide(s).Action; got != provision.Wait {
			t.Errorf("Decide(%+v) = %v, want Wait", s, got)
		}
	}
}
