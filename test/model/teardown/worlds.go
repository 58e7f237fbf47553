package teardown

import (
	"github.com/exeunt-io/exeunt/pkg/teardown"
	"github.com/exeunt-io/exeunt/test/model/explore"
)

// World is a world to explore: two claims with a pod each, of which the second is kept.
type World struct {
	Name string
	// Requested: the volume of the first claim is being made. Its pod holds the claim until the plan is saved: nothing
	// would show the disk of a claim that went amid its call before.
	// Lowest: the second claim is not kept, and its namespace is infrastructure.
	Requested, Lowest bool
	// Idle: the second claim has no pod. Static: an administrator made its volume, with the policy Delete. Shared: both
	// volumes stand for one disk.
	Idle, Static, Shared bool
	// Service: there is a Service with a load balancer.
	Service bool
	Left    Left
	// Decide replaces the real decision in tests of the model.
	Decide func(teardown.State) teardown.Decision
	// Defects of the runner, for tests of the model. Unread: a volume is not read live, Unseen: not if no watch shows it.
	// Flat: there is one wave. Unsaved: an abort leaves the policy of what is Terminating. Unguarded: a Service is deleted
	// whatever it has become. Unrecorded: the record has no requests.
	Unread, Unseen, Flat, Unsaved, Unguarded, Unrecorded bool
}

// Initial is a protected cluster.
func (w World) Initial() State {
	bound := Set{Claim: Claim{Phase: Bound}, Pod: Pod{Exists: true}, Volume: Volume{Exists: true, Deletable: true}, Disk: true}
	kept := bound
	kept.Volume.Deletable, kept.Must = false, true
	s := State{Left: w.Left}
	s.API = API{Alive: Alive{Exists: true, Held: true, Protected: true, Participant: true}, Bucket: true, Sets: [2]Set{bound, kept}}
	if w.Static || w.Shared {
		s.API.Sets[1].Volume.Deletable = true
	}
	if s.API.Sets[0].Must = w.Shared; w.Idle {
		s.API.Sets[1].Pod = Pod{}
	}
	if w.Service {
		s.API.Service = Service{Exists: true, Held: true, Balancer: true}
	}
	if w.Lowest {
		s.API.Sets[1].Volume.Deletable, s.API.Sets[1].Must = true, false
	}
	if w.Requested {
		s.API.Sets[0] = Set{Claim: Claim{Phase: Requested}, Pod: Pod{Exists: true}, Call: Sent}
	}
	s.takeOver(0)
	return s
}

// Key is the state itself, however it was reached.
func (w World) Key(s State) State { return s.unbroken() }

// Steps are those of the runners and of everybody else.
func (w World) Steps(s State) ([]explore.Step[State], error) {
	var steps []explore.Step[State]
	add := func(free bool, says string, change func(*State)) {
		before := s.unbroken()
		after := before
		change(&after)
		w.look(&after)
		if after == before {
			return
		}
		found := explore.Step[State]{Says: says, After: after, Free: free}
		found.Broken = after.Broken.findings(says, after)
		found.Ends = after.Broken&^KeptClaim != 0 // behind a deleted claim the disk may be lost
		steps = append(steps, found)
	}
	for n := range s.Runners {
		if s.Runners[n].On {
			w.run(s, n, add)
		}
	}
	w.cluster(s, add)
	w.users(s, add)
	w.faults(s, add)
	return steps, nil
}

// left is what may happen in each world: a person permits the teardown and deletes Alive. Change says what else.
func left(change func(*Left)) Left {
	l := Left{Permits: 1, Deletes: 1}
	change(&l)
	return l
}

// Worlds are the worlds that are explored.
func Worlds() []World {
	return []World{
		{Name: "stopped, expired and resumed",
			Left: left(func(l *Left) { l.Permits, l.Protects, l.Expires, l.Crashes = 2, 1, 1, 1 })},
		{Name: "two runners",
			Left: left(func(l *Left) { l.Permits, l.Protects, l.Takeovers, l.LateWrites = 2, 1, 1, 1 })},
		{Name: "policies", Left: left(func(l *Left) { l.Retains, l.Labels, l.SetsDelete, l.Crashes = 1, 1, 1, 1 })},
		{Name: "policies and a late watch",
			Left: left(func(l *Left) { l.Retains, l.Labels, l.SetsDelete, l.Stalls = 1, 1, 1, 1 })},
		{Name: "a late watch", Left: left(func(l *Left) { l.Protects, l.DeletesClaim, l.Stalls = 1, 1, 1 })},
		{Name: "the CRD is deleted", Left: left(func(l *Left) { l.DeletesDefinition, l.Stalls, l.Crashes = 1, 1, 1 })},
		{Name: "a status by hand", Left: left(func(l *Left) { l.StatusEdits, l.Refuses, l.Crashes = 1, 1, 1 })},
		{Name: "the freeze is removed", Left: left(func(l *Left) { l.Unfreezes, l.DeletesClaim, l.Crashes = 1, 1, 1 })},
		{Name: "the finalizer is stripped", Left: left(func(l *Left) { l.Strips, l.Protects, l.Crashes = 1, 1, 1 })},
		{Name: "aborted", Left: left(func(l *Left) { l.Permits, l.Protects, l.Aborts, l.Takeovers = 2, 1, 1, 1 })},
		{Name: "a call in flight", Requested: true,
			Left: left(func(l *Left) { l.SlowCalls, l.ProvisionerDies, l.Crashes = 1, 1, 1 })},
		{Name: "a call in flight, claim deleted", Requested: true,
			Left: left(func(l *Left) { l.SlowCalls, l.DeletesClaim, l.Stalls = 1, 1, 1 })},
		{Name: "a call in flight, claim deleted, runner killed", Requested: true,
			Left: left(func(l *Left) { l.SlowCalls, l.DeletesClaim, l.Crashes = 1, 1, 1 })},
		{Name: "a call in flight, labeled", Requested: true,
			Left: left(func(l *Left) { l.Labels, l.Retains, l.Protects = 1, 1, 1 })},
		{Name: "another ID", Left: left(func(l *Left) { l.Errs, l.Stalls = 1, 1 })},
		{Name: "restored", Left: left(func(l *Left) { l.Permits, l.Backups, l.Restores = 2, 1, 1 })},
		{Name: "a Service", Service: true,
			Left: left(func(l *Left) { l.LabelsService, l.ChangesType, l.Crashes = 1, 1, 1 })},
		{Name: "a Service and a late watch", Service: true,
			Left: left(func(l *Left) { l.LabelsService, l.Stalls = 1, 1 })},
		{Name: "a static volume", Static: true,
			Left: left(func(l *Left) { l.Protects, l.Crashes, l.Stalls = 1, 1, 1 })},
		{Name: "one disk of two volumes", Shared: true, Left: left(func(l *Left) { l.Protects, l.Crashes = 1, 1 })},
		{Name: "waves, no pod", Lowest: true, Idle: true, Left: left(func(l *Left) { l.Crashes, l.Stalls = 1, 1 })},
		{Name: "waves", Lowest: true, Left: left(func(l *Left) { l.DeletesClaim, l.Stalls = 1, 1 })},
	}
}

// Deep are larger worlds.
func Deep() []World {
	return []World{
		{Name: "signals", Left: left(func(l *Left) {
			l.Permits, l.Protects, l.Expires, l.Aborts, l.Unfreezes, l.Crashes, l.Takeovers = 2, 1, 1, 1, 1, 1, 1
		})},
		{Name: "volumes", Left: left(func(l *Left) {
			l.Retains, l.Labels, l.SetsDelete, l.DeletesClaim, l.Stalls = 1, 1, 1, 1, 1
		})},
		{Name: "calls", Requested: true, Left: left(func(l *Left) {
			l.Labels, l.SlowCalls, l.ProvisionerDies, l.DeletesClaim, l.Crashes, l.Stalls = 1, 1, 1, 1, 1, 1
		})},
	}
}
