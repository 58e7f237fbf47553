package provision_test

import (
	"testing"

	"github.com/exeunt-io/exeunt/pkg/provision"
)

func TestNodeSelectsItselfForClaimsWithoutNode(t *testing.T) {
	for bits := range 16 {
		for _, server := range []provision.Server{provision.ThisProcess, provision.NoProcess, provision.OtherProcess} {
			for capacity := provision.CapacityUnknown; capacity <= provision.CapacityShort; capacity++ {
				s := provision.NodeState{Wanted: bits&1 != 0, Immediate: bits&2 != 0, Allowed: bits&4 != 0, ClassKnown: bits&8 != 0,
					Server: server, Capacity: capacity}
				needed := s.Wanted && s.Immediate && s.Allowed && s.Server == provision.NoProcess
				want := provision.SkipClaim
				switch {
				case s.Wanted && s.Server == provision.NoProcess && !s.ClassKnown:
					want = provision.RetryLater
				case needed && capacity == provision.CapacityUnknown:
					want = provision.CheckCapacity
				case needed && capacity == provision.CapacityShort:
					want = provision.RetryLater
				case needed:
					want = provision.SelectNode
				}
				if got := provision.DecideNode(s); got != want {
					t.Errorf("DecideNode(%+v) = %v, want %v", s, got, want)
				}
			}
		}
	}
}

func TestNodeSelectionEnumsHaveDistinctNames(t *testing.T) {
	names := map[string]bool{}
	for capacity := provision.CapacityUnknown; capacity <= provision.CapacityShort; capacity++ {
		names[capacity.String()] = true
	}
	for action := provision.SkipClaim; action <= provision.SelectNode; action++ {
		names[action.String()] = true
	}
	if len(names) != 7 || provision.Capacity(9).String() != "Capacity(9)" ||
		provision.NodeAction(9).String() != "NodeAction(9)" {
		t.Errorf("names: %v", names)
	}
}
