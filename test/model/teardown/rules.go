package teardown

import (
	"fmt"

	"github.com/exeunt-io/exeunt/pkg/teardown"
	"github.com/exeunt-io/exeunt/test/model/explore"
)

// Rules is a set of rules.
type Rules uint16

const (
	// DiskLost: a disk is deleted that somebody wanted to live.
	DiskLost Rules = 1 << iota
	// Unasked: something is written but a status, and nobody deleted Alive.
	Unasked
	// Unpermitted: something is deleted although the permission holds neither now nor when Alive was read last.
	Unpermitted
	// NotStarted: something is deleted before the start, or before the plan is saved.
	NotStarted
	// Unmarked: the teardown starts before a kept volume is marked.
	Unmarked
	// KeptClaim: the claim of a marked volume is deleted.
	KeptClaim
	// Unfrozen: the freeze is removed after the start.
	Unfrozen
	// NotLeader: a runner decides to write although another one leads.
	NotLeader
	// OutOfOrder: a claim of the infrastructure, or its pod, goes before what may depend on it.
	OutOfOrder
	// FalseComplete: our finalizer goes, and something to delete is there, or the record does not say Complete.
	FalseComplete
	// Hangs: nothing happens any more, and the teardown is permitted and not at its end.
	Hangs
	// Hindered: nothing happens any more, nothing was started, and the freeze is there.
	Hindered
	// Hidden: Alive is gone, the record says Complete, the freeze is there, and something to delete as well.
	Hidden
	// BalancerLost: a load balancer is deleted that somebody wanted to live.
	BalancerLost
	// AmidCall: a claim is deleted while its volume is made, before two minutes.
	AmidCall
)

var ruleNames = []string{"DiskLost", "Unasked", "Unpermitted", "NotStarted", "Unmarked", "KeptClaim", "Unfrozen", "NotLeader",
	"OutOfOrder", "FalseComplete", "Hangs", "Hindered", "Hidden", "BalancerLost", "AmidCall"}

// findings returns the rules of the set, with the state after the step.
func (r Rules) findings(says string, after State) (found []explore.Finding) {
	if r == 0 {
		return nil
	}
	sentence := fmt.Sprintf("%s: %+v", says, after)
	for i, name := range ruleNames {
		if r&(1<<i) != 0 {
			found = append(found, explore.Finding{Rule: name, Sentence: sentence})
		}
	}
	return found
}

// judgeWrite notes the rules that the effect of a write breaks.
func (w World) judgeWrite(s *State, before API, sent Write) {
	s.Broken |= Unasked.broken(!s.Asked)
	switch sent.Action {
	case teardown.Delete:
		s.Broken |= w.judgeDelete(before, sent) | Unpermitted.broken(s.Restored)
	case teardown.Start:
		s.Broken |= Unmarked.broken(s.unmarked(before, sent))
	case teardown.Unfreeze:
		s.Broken |= Unfrozen.broken(before.Alive.Started && !sent.Late)
	case teardown.Release:
		s.Broken |= FalseComplete.broken(!before.Recorded || before.remains())
	default:
	}
}

// broken returns the rule if it is broken, no rule otherwise.
func (r Rules) broken(is bool) Rules {
	if is {
		return r
	}
	return 0
}

// judgeDelete judges the deletion of an object.
func (w World) judgeDelete(before API, sent Write) Rules {
	set := before.Sets[sent.Set]
	return Unpermitted.broken(!sent.Permitted && !before.Alive.permits()) |
		NotStarted.broken(before.Alive.Exists && (!before.Alive.Started || !before.Planned)) |
		KeptClaim.broken(!sent.Pod && !sent.Balancer && set.Volume.Label && !sent.Late) |
		AmidCall.broken(!sent.Pod && !sent.Balancer && set.Claim.Phase == Requested && set.Call != NoCall && !set.Slow) |
		OutOfOrder.broken(w.Lowest && !sent.Balancer && sent.Set == 1 && before.Sets[0].left())
}

// unmarked reports whether a kept volume is not marked. A user may have set the policy of the first one while the start
// was on its way, or its watch was late.
func (s *State) unmarked(before API, sent Write) bool {
	unseen := sent.Late || s.Runners[0].Late == Volumes || s.Runners[1].Late == Volumes
	for n, set := range before.Sets {
		if set.Must && !set.Volume.Label && (n > 0 || !unseen) {
			return true
		}
	}
	return false
}

// left reports whether claim, pod or volume is there, but for a marked volume and its claim.
func (s Set) left() bool {
	return s.Pod.Exists || !s.Volume.Label && (s.Claim.Phase != NoClaim || s.Volume.Exists)
}

// remains reports whether something to delete is there, and is not named as unknown.
func (a API) remains() bool {
	for _, s := range a.Sets {
		if (s.Disk && !s.Must && !s.Volume.Label || s.Call != NoCall) && !s.Unknown {
			return true
		}
	}
	return a.Bucket || a.Service.remains()
}

// AtRest returns what is wrong with a state in which nothing happens any more.
func (w World) AtRest(s State, _ bool) []explore.Finding {
	a := s.API.Alive
	freeze := s.API.Freeze
	broken := Hangs.broken(a.permits() && !a.New && !s.mayRest()) |
		Hindered.broken(a.Exists && !a.Started && freeze != teardown.NoFreeze && s.Runners[s.Leader].On) |
		Hidden.broken(!a.Exists && s.API.Recorded && freeze == teardown.InForce && s.API.remains())
	return broken.findings("at rest", s)
}

// mayRest reports whether something keeps a permitted teardown from its end: the cluster is not ready, our finalizer was
// stripped, or nothing shows what became of a claim.
func (s State) mayRest() bool {
	a, gone := s.API, s.Runners[s.Leader].Gone
	unknown := a.Sets[0].Unknown || a.Sets[1].Unknown || gone[0] || gone[1]
	return s.Restored || a.Undefined || a.Unready || !a.Alive.Held || unknown
}
