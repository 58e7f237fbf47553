package runner

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/klog/v2"

	"github.com/exeunt-io/exeunt/pkg/alive"
	"github.com/exeunt-io/exeunt/pkg/controller"
	"github.com/exeunt-io/exeunt/pkg/teardown"
	"github.com/exeunt-io/exeunt/pkg/teardown/inventory"
)

// session is the work of one term of the Lease, for one Alive. Rounds run in one goroutine; mu guards what watches change.
type session struct {
	*Runner
	term controller.Term
	// uid is the UID of Alive, renewed when the Lease was renewed last before this term.
	uid     types.UID
	renewed time.Time
	// took is when this term began; started: the teardown was started by then.
	took    time.Time
	started bool

	mu        sync.Mutex
	changes   chan struct{}
	inventory *inventory.Inventory
	// labeled are the volumes with labels, by UID.
	labeled map[types.UID]bool
	// listed are the kinds whose first list is complete, watched the number of kinds.
	listed, watched int
	// kinds are the sources that are watched, by their id. unwatched: another one is served by now.
	kinds     map[string]bool
	unwatched bool
	defined   definition
	freeze    freeze

	record recording
	// judged: what earlier runners recorded was compared with what is there.
	judged bool
	end    ending
	ready  readiness
	status statusWrites
	// tries are deletions in flight and after errors, by UID.
	tries map[types.UID]try
	why   explanations
	// background are explanations in progress.
	background sync.WaitGroup
	// confirmed is Alive as it was read live in this round, nil if it was not.
	confirmed *alive.Alive
	// otherCluster: a live read found another kube-system.
	otherCluster bool
	// wake is when the next round is due by time alone.
	wake     time.Time
	failures int
}

func newSession(r *Runner, term controller.Term, object *alive.Alive, renewed time.Time) *session {
	return &session{Runner: r, term: term, uid: object.UID, renewed: renewed, took: r.Clock.Now(),
		started: object.IsStarted(), changes: make(chan struct{}, 1), labeled: map[types.UID]bool{}, kinds: map[string]bool{},
		inventory: inventory.New(r.options(object)),
		tries:     map[types.UID]try{}}
}

// options are what an inventory has to know beside the objects.
func (r *Runner) options(object *alive.Alive) inventory.Options {
	options := inventory.Options{Shared: r.Shared, APIServer: r.APIServer, RequestWait: r.Waits.Request}
	if object != nil {
		options.Last = object.Spec.Last
	}
	return options
}

// run runs rounds until the teardown has ended, or the context ends.
func (s *session) run(ctx context.Context) (*Outcome, error) {
	watching, stop := context.WithCancel(ctx)
	var watches sync.WaitGroup
	defer watches.Wait()
	defer s.background.Wait()
	defer stop()
	s.watchGuards(watching, &watches)
	watches.Go(func() { s.forward(watching) })
	if err := s.readRecord(ctx); err != nil {
		return nil, err
	}
	for ctx.Err() == nil {
		began := time.Now()
		s.wake = time.Time{}
		outcome, err := s.round(ctx, watching, &watches)
		if outcome != nil || errors.Is(err, ErrOtherCluster) {
			return outcome, err
		}
		s.backOff(ctx, err)
		if !s.pause(ctx, began) {
			break
		}
	}
	return nil, context.Cause(ctx)
}

// forward notifies of changes of Alive.
func (s *session) forward(ctx context.Context) {
	for {
		_, _, changed := s.view()
		s.notify()
		if !await(ctx, changed, 0) {
			return
		}
	}
}

func (s *session) notify() {
	select {
	case s.changes <- struct{}{}:
	default:
	}
}

// update runs a function under the lock, and notifies if it returns true.
func (s *session) update(f func() bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if f() {
		s.notify()
	}
}

// wakeAt brings a round at the time.
func (s *session) wakeAt(at time.Time) {
	if !at.IsZero() && (s.wake.IsZero() || at.Before(s.wake)) {
		s.wake = at
	}
}

func (s *session) wakeAfter(wait time.Duration) { s.wakeAt(s.Clock.Now().Add(wait)) }

// failing is how often a step fails in a row until a person is told: less often is no news.
const failing = 3

// backOff retries a failed round: after what the API server asks for, else with a backoff.
func (s *session) backOff(ctx context.Context, err error) {
	if err == nil {
		s.failures = 0
		return
	}
	s.failures++
	wait := s.backoff(s.failures)
	if seconds, asked := apierrors.SuggestsClientDelay(err); asked {
		wait = max(wait, time.Duration(seconds)*time.Second)
	}
	s.wakeAfter(wait)
	klog.FromContext(ctx).Error(err, "A step of the teardown failed, and is repeated", "after", wait)
	if s.failures == failing {
		s.event(v1.EventTypeWarning, "StepFails", cut(repeated+err.Error()))
	}
	if s.failures >= failing {
		s.sayFailing(err)
	}
}

func (s *session) backoff(failures int) time.Duration {
	return min(s.Waits.Retry<<min(failures-1, 10), s.Waits.MaxRetry)
}

// pause waits for a change, or until a round is due by time. Changes are coalesced.
func (s *session) pause(ctx context.Context, began time.Time) bool {
	wait := time.Duration(0)
	if !s.wake.IsZero() {
		wait = max(s.wake.Sub(s.Clock.Now()), time.Millisecond)
	}
	return await(ctx, s.changes, wait) && (time.Since(began) >= s.Waits.Round || sleep(ctx, s.Waits.Round-time.Since(began)))
}

// round observes, decides, and executes one action.
func (s *session) round(ctx, watching context.Context, watches *sync.WaitGroup) (*Outcome, error) {
	s.confirmed = nil
	view := s.look()
	state, err := s.observe(ctx, view)
	if err != nil {
		return nil, err
	}
	decision := teardown.Decide(state)
	if decision.Action == teardown.Confirm {
		if err := s.confirm(ctx); err != nil {
			return nil, err
		}
		if state, err = s.observe(ctx, view); err != nil {
			return nil, err
		}
		decision = teardown.Decide(state)
	}
	if state.Freeze == teardown.InForce || decision.Phase == teardown.Stopped && state.Started {
		if err := s.watchFor(watching, decision.Phase, watches); err != nil {
			return nil, err
		}
	}
	if err := s.execute(ctx, decision, view); err != nil {
		return nil, err
	}
	if decision.Phase == teardown.TearingDown && decision.Action == teardown.Wait {
		s.explain(watching, view)
	}
	if err := s.writeStatus(ctx, decision, view); err != nil {
		return nil, err
	}
	if err := s.saveOutcomes(ctx, decision, view); err != nil {
		return nil, err
	}
	return s.outcomeOf(decision)
}

// outcomeOf returns the end of the run, nil if it goes on.
func (s *session) outcomeOf(decision teardown.Decision) (*Outcome, error) {
	outcome := &Outcome{Phase: decision.Phase, Reason: decision.Reason, Message: s.status.message}
	switch {
	case decision.Reason == teardown.OtherCluster:
		return outcome, ErrOtherCluster
	case decision.Reason == teardown.NotCompleted:
		return outcome, ErrNotCompleted
	case decision.Action == teardown.End:
		return outcome, nil
	case s.Command && decision.Phase == teardown.Stopped && decision.Action == teardown.Wait && !s.status.pending:
		return outcome, nil // the status says so: others follow it
	}
	return nil, nil
}

// watchFor starts the watches of objects. What is stopped deletes nothing, and ends although a kind cannot be watched.
func (s *session) watchFor(ctx context.Context, phase teardown.Phase, watches *sync.WaitGroup) error {
	err := s.watchObjects(ctx, watches)
	if err != nil && phase == teardown.Stopped {
		klog.FromContext(ctx).Error(err, "What remains cannot be watched")
		s.wakeAfter(s.Waits.Check)
		return nil
	}
	return err
}

// watchObjects starts the watches that fill the inventory, once, and those of kinds that were installed since. The plan
// rests on lists that were begun while the freeze was in force.
func (s *session) watchObjects(ctx context.Context, watches *sync.WaitGroup) error {
	if s.watched > 0 && !s.unwatched {
		return nil
	}
	sources, err := s.sources(ctx)
	if err != nil {
		return err
	}
	sources = slices.DeleteFunc(sources, func(one source) bool { return s.kinds[one.id()] })
	s.watched += len(sources)
	s.unwatched = false
	for _, source := range sources {
		s.kinds[source.id()] = true
		f := newFeed(s.update, s.set, s.inventory.Remove)
		first := true
		f.done = func() {
			if first {
				first = false
				s.listed++
			}
		}
		watches.Go(func() { source.follow(ctx, s.Objects, f) })
	}
	return nil
}

// set takes an object, and reports whether a decision may change. It is called under the lock.
func (s *session) set(object any) bool {
	if volume, is := object.(interface {
		GetUID() types.UID
		GetLabels() map[string]string
	}); is && isVolume(object) {
		s.labeled[volume.GetUID()] = len(volume.GetLabels()) > 0
	}
	return s.inventory.Set(object)
}

// watchGuards follows the CRD of Alive and the freeze.
func (s *session) watchGuards(ctx context.Context, watches *sync.WaitGroup) {
	definitions := s.Dynamic.Resource(definitions)
	f := newFeed(s.update, s.defined.see, func(any) {})
	watches.Go(func() {
		kind("customresourcedefinitions", &unstructured.Unstructured{}, definitions.List, definitions.Watch).
			only("metadata.name="+alive.CRD).follow(ctx, s.Dynamic, f)
	})
	for i, resource := range freezeParts {
		part, objects := &s.freeze.parts[i], s.Dynamic.Resource(resource)
		f := newFeed(s.update, part.see, func(any) { part.gone() })
		f.done = func() { part.listed = true }
		watches.Go(func() {
			kind(resource.Resource, &unstructured.Unstructured{}, objects.List, objects.Watch).
				only("metadata.name="+FreezeName).follow(ctx, s.Dynamic, f)
		})
	}
}
