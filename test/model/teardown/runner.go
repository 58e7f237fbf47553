package teardown

import (
	"fmt"
	"strings"

	"github.com/exeunt-io/exeunt/pkg/teardown"
	"github.com/exeunt-io/exeunt/pkg/teardown/fate"
	"github.com/exeunt-io/exeunt/pkg/teardown/inventory"
)

// look has the caches of the runners show what the API server has, but for those of a late watch.
func (w World) look(s *State) {
	for n := range s.Runners {
		r := &s.Runners[n]
		if !r.On {
			*r = Runner{}
			continue
		}
		r.see(s.API)
		if w.judge(r.View, r.Gone).work != teardown.Quiet {
			r.Clean = 0
		}
	}
}

// see has its caches show what the API server has. A claim that goes while its volume is requested is remembered.
func (r *Runner) see(a API) {
	a = r.seen(a)
	for n, set := range a.Sets {
		before := r.View.Sets[n].Claim
		gone := before.Phase == Requested && (set.Claim.Phase == NoClaim || set.Claim.Again != before.Again)
		r.Gone[n] = (r.Gone[n] || gone) && !set.Volume.Exists
	}
	r.View = a
}

// seen is what its caches show, but for those of a late watch.
func (r Runner) seen(a API) API {
	switch r.Late {
	case None:
	case Signals:
		a.Alive, a.Undefined, a.Freeze = r.View.Alive, r.View.Undefined, r.View.Freeze
	case Volumes:
		for i := range a.Sets {
			a.Sets[i].Volume = r.View.Sets[i].Volume
		}
	case Services:
		a.Service = r.View.Service
	case Claims:
		for i := range a.Sets {
			a.Sets[i].Claim, a.Sets[i].Pod = r.View.Sets[i].Claim, r.View.Sets[i].Pod
		}
	}
	return a
}

// observe returns what the decision of a runner rests on.
func (w World) observe(s State, n int) teardown.State {
	r := s.Runners[n]
	a, j := r.View.Alive, w.judge(r.View, r.Gone)
	observed := teardown.State{
		Alive: teardown.Absent, Deleting: a.Deleting, Held: a.Held, Protected: a.Protected, Word: a.Word,
		Undefined: r.View.Undefined, Freeze: r.View.Freeze, Planned: r.View.Planned, Kept: j.unmarked == 0,
		Started: a.Started, Work: j.work, Recorded: r.View.Recorded, Restored: s.Restored,
		Leading: int(s.Leader) == n, Confirmed: r.Confirmed,
	}
	if a.Exists && !a.New {
		observed.Alive = teardown.Present
	}
	switch {
	case r.Checked && r.View.Unready:
		observed.Readiness = teardown.Unready
	case r.Checked:
		observed.Readiness = teardown.Prepared
	}
	if j.work == teardown.Quiet && r.Clean >= 2 {
		observed.Work = teardown.Finished
	}
	return observed
}

func (w World) decide(s State, n int) teardown.Decision {
	if w.Decide != nil {
		return w.Decide(w.observe(s, n))
	}
	return teardown.Decide(w.observe(s, n))
}

// run adds what a runner may do next.
func (w World) run(s State, n int, add adder) {
	d := w.decide(s, n)
	says := fmt.Sprintf("runner %d: %v %v", n, d.Action, d.Reason)
	switch d.Action {
	case teardown.Wait:
		add(true, says+", and checks", func(s *State) {
			s.Runners[n].Checked = s.Runners[n].Checked || d.Reason == teardown.Checking
		})
	case teardown.End:
		add(true, says, func(s *State) { s.Runners[n].On = false })
	case teardown.Confirm:
		add(true, says, func(s *State) { s.confirm(n) })
	case teardown.Recheck:
		add(true, says, func(s *State) { w.recheck(s, n) })
	case teardown.Keep, teardown.Delete:
		for _, step := range w.judge(s.Runners[n].View, s.Runners[n].Gone).steps {
			if (step.Action == inventory.Mark) == (d.Action == teardown.Keep) {
				w.write(s, n, d, step, add)
			}
		}
	default:
		w.write(s, n, d, inventory.Step{}, add)
	}
}

// confirm reads kube-system and Alive live, and before the start the CRD.
func (s *State) confirm(n int) {
	r := &s.Runners[n]
	r.View.Alive, r.Confirmed, r.Permitted = s.API.Alive, true, s.API.Alive.permits()
	if !s.API.Alive.Started {
		r.View.Undefined = s.API.Undefined
	}
}

// recheck reads all lists live, after a quiet period in which each call ends that is not slow.
func (w World) recheck(s *State, n int) {
	for _, set := range s.API.Sets {
		if set.Call != NoCall && !set.Slow {
			return
		}
	}
	r := &s.Runners[n]
	r.Clean, r.Confirmed = r.Clean+1, false
	if j := w.judge(s.API, [2]bool{}); j.work != teardown.Quiet || j.unmarked > 0 {
		r.Clean = 0
	}
}

// write sends a write. It takes effect at once, or late if the runner leads no longer.
func (w World) write(s State, n int, d teardown.Decision, step inventory.Step, add adder) {
	r := s.Runners[n]
	sent := Write{Sent: true, Complete: d.Phase == teardown.Complete, Permitted: r.Permitted, Action: d.Action}
	if name := step.Name; name != "" {
		sent.Set, sent.Pod, sent.Balancer = setOf(name), step.Kind == "Pod", step.Kind == "Service"
		sent.Service = r.View.Service
		seen := r.View.Sets[sent.Set]
		sent.Seen.Claim, sent.Seen.Pod, sent.Seen.Volume = seen.Claim, seen.Pod, seen.Volume
	} else {
		sent.Alive = r.View.Alive
	}
	if w.refuses(s.API, int(sent.Set), step) {
		return
	}
	says := fmt.Sprintf("runner %d: %v %s %s", n, d.Action, step.Kind, step.Name)
	add(true, says, func(s *State) {
		s.Runners[n].Confirmed, s.Runners[n].Permitted = false, false
		w.save(s, n, d.Action)
		if int(s.Leader) != n {
			s.Broken |= NotLeader
		}
		w.effect(s, sent)
	})
	add(false, says+", late", func(s *State) {
		if s.Left.LateWrites > 0 && !s.Late.Sent {
			s.Left.LateWrites--
			w.save(s, n, d.Action)
			s.Late, s.Late.Late = sent, true
			s.Runners[n].Confirmed, s.Runners[n].Permitted = false, false
			s.takeOver(1 - n)
		}
	})
}

// refuses reports whether a volume that is read live forbids the step: a user has kept it, or its watch is late.
func (w World) refuses(a API, n int, step inventory.Step) bool {
	kept := len(step.Volumes) > 0 && w.live(a, n) != fate.DeleteClaim
	volume := a.Sets[n].Volume
	unseen := len(step.Unseen) > 0 && volume.Exists && step.Unseen[0] == nameOfVolume(n, volume.Again)
	return kept && !w.Unread || unseen && !w.Unseen
}

// setOf returns the number in the name of an object.
func setOf(name string) uint8 { return name[strings.IndexAny(name, "01")] - '0' }

// save writes down the plan, and before something is deleted and into the report what is new: requests, and which claims
// went without an answer.
func (w World) save(s *State, n int, action teardown.Action) {
	if action != teardown.SavePlan && action != teardown.Delete && action != teardown.Record {
		return
	}
	for i, gone := range s.Runners[n].Gone {
		set, seen := &s.API.Sets[i], s.Runners[n].View.Sets[i]
		set.Unknown = set.Unknown || gone
		set.Recorded = !w.Unrecorded && !seen.Volume.Exists && (set.Recorded || seen.Claim.Phase == Requested)
	}
}

// effect is what a write does if its guards hold.
func (w World) effect(s *State, sent Write) {
	before := s.API
	set, alive := &s.API.Sets[sent.Set], &s.API.Alive
	same := *alive == sent.Alive
	switch sent.Action {
	case teardown.WriteFreeze:
		s.API.Freeze = max(s.API.Freeze, teardown.Written)
	case teardown.Unfreeze:
		s.API.Freeze = teardown.NoFreeze
	case teardown.SavePlan:
		s.API.Planned = true
	case teardown.Keep:
		if set.Volume == sent.Seen.Volume {
			set.Volume.Label, set.Volume.Deletable = true, false
		}
	case teardown.Start:
		alive.Started = alive.Started || same
	case teardown.Delete:
		w.delete(&s.API, sent)
	case teardown.Record:
		s.API.Recorded = sent.Complete
	case teardown.Release:
		alive.Held = alive.Held && !same
	default:
	}
	if s.API != before {
		w.judgeWrite(s, before, sent)
	}
}

// delete deletes an object of the version that was seen.
func (w World) delete(a *API, sent Write) {
	set := &a.Sets[sent.Set]
	switch {
	case sent.Balancer:
		// A load balancer that is made meanwhile is no change of the object.
		seen := sent.Service
		seen.Balancer, seen.Must = a.Service.Balancer, a.Service.Must
		a.Service.Deleting = a.Service.Deleting || a.Service == seen || w.Unguarded && a.Service.Exists
	case sent.Pod && set.Pod == sent.Seen.Pod:
		set.Pod.Terminating = true
	case !sent.Pod && set.Claim == sent.Seen.Claim:
		set.Claim.Deleting = true
		set.Unknown = set.Claim.Phase == Requested
	}
}

// takeOver makes a runner the leader.
func (s *State) takeOver(n int) {
	s.Leader = uint8(n)
	s.begin(n)
}

// begin begins a runner. Its caches are new, and the record shows which requests have lost their claim.
func (s *State) begin(n int) {
	r := Runner{On: true, View: s.API}
	for i, set := range s.API.Sets {
		r.Gone[i] = set.Recorded && set.Claim.Phase == NoClaim && !set.Volume.Exists
	}
	s.Runners[n] = r
}
