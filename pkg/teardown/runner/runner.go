package runner

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/leaderelection"
	"k8s.io/klog/v2"

	"github.com/exeunt-io/exeunt/pkg/alive"
	"github.com/exeunt-io/exeunt/pkg/controller"
	"github.com/exeunt-io/exeunt/pkg/controller/leader"
	"github.com/exeunt-io/exeunt/pkg/teardown"
)

// ErrOtherCluster: the address of the API server leads to another cluster than at the start (#70).
var ErrOtherCluster = errors.New("the address of the API server leads to another cluster")

// ErrNotCompleted: Alive is gone, and the record does not say that the teardown was complete (#57).
var ErrNotCompleted = errors.New("the object Alive is gone, but the record does not say that the teardown was complete")

// ErrNamespaceGone: the namespace of the Lease and the record is being deleted, or is gone. Nothing more is deleted.
var ErrNamespaceGone = errors.New("namespace " + Namespace + " with the Lease and the record of the teardown is deleted; " +
	"the next run creates it again")

// ErrRestored: etcd was restored from before the deletion of Alive (#63). Nothing more is deleted.
var ErrRestored = errors.New("etcd was restored from a backup that is older than the deletion of the object Alive: nothing " +
	"more is deleted; the same command, given again, begins the teardown anew")

// Progress is how far a teardown is.
type Progress struct {
	Phase   teardown.Phase
	Reason  teardown.Reason
	Message string
	// Leading: this process carries out the teardown, and does not follow another.
	Leading bool
	// Left are the objects that are left, by kind, More how many are left beside: a status names 50 of them.
	Left map[string]int
	More int
}

// Outcome is how a run ended.
type Outcome struct {
	Phase   teardown.Phase
	Reason  teardown.Reason
	Message string
}

// Runner carries out teardowns.
type Runner struct {
	Config

	mu sync.Mutex
	// current is Alive as the watch shows it, nil if there is none. synced: the watch has listed.
	current *alive.Alive
	synced  bool
	// changed is closed and replaced at each change of current.
	changed chan struct{}
	// end ends Run with a reason.
	end context.CancelCauseFunc

	// commanded is the UID of the Alive that a command works on, "" if it found none.
	commanded types.UID
}

// New returns a Runner.
func New(config Config) *Runner {
	if config.Parallel == 0 {
		config.Parallel = 50
	}
	if config.Follow == nil {
		config.Follow = func(Progress) {}
	}
	if config.Check == nil { // a program that forgets the check must not tear down a cluster that serves others
		config.Check = func(context.Context, *alive.Alive) ([]teardown.Problem, error) {
			return []teardown.Problem{{Reason: "Unchecked", Text: "nothing checks whether this cluster may go", Refuses: true}}, nil
		}
	}
	if config.Watchdog == nil { // a command has no health check
		config.Watchdog = leaderelection.NewLeaderHealthzAdaptor(config.Waits.Lease)
	}
	return &Runner{Config: config, changed: make(chan struct{}), end: func(error) {}}
}

// Run watches Alive, and carries out the teardown whenever it is permitted. It returns when the context ends, or with
// Command when the teardown has ended.
func (r *Runner) Run(ctx context.Context) (*Outcome, error) {
	ctx, r.end = context.WithCancelCause(ctx)
	defer r.end(nil)
	watching, stop := context.WithCancel(ctx)
	defer stop()
	var watches sync.WaitGroup
	defer watches.Wait()
	defer stop()
	watches.Go(func() { r.watchAlive(watching) })
	for {
		outcome, err := r.turn(ctx)
		switch {
		case errors.Is(err, ErrOtherCluster), outcome != nil:
			return outcome, err
		case ctx.Err() != nil:
			return nil, context.Cause(ctx)
		case (errors.Is(err, ErrNamespaceGone) || errors.Is(err, ErrUnsaid)) && r.Command:
			return nil, err
		case err != nil:
			klog.FromContext(ctx).Error(err, "The teardown is interrupted, and goes on")
			r.sayFailing(err)
			if !sleep(ctx, r.Waits.Check) {
				return nil, context.Cause(ctx)
			}
		}
	}
}

// turn waits until there is something to do, and competes for the Lease as long as there is.
func (r *Runner) turn(ctx context.Context) (*Outcome, error) {
	permitted, err := r.awaitPermission(ctx)
	if err != nil || permitted == nil {
		return nil, err
	}
	competing, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	var led atomic.Bool
	go r.accompany(competing, stop, permitted, &led)
	go r.watchNamespace(competing, stop)
	before := r.newRenewals(r.Leases)
	var outcome *Outcome
	var ended error
	err = leader.Lead(competing, leader.Election{LeaderElectionConfiguration: r.election(), Watched: true,
		Connection: r.Connection}, before, r.Watchdog, func(ctx context.Context, term controller.Term) error {
		led.Store(true)
		outcome, ended = newSession(r, term, permitted, before.before()).run(ctx)
		return ended
	})
	var end *followed
	switch {
	case outcome != nil && (r.Command || errors.Is(ended, ErrOtherCluster)):
		return outcome, ended
	case outcome != nil: // alive-controller goes on with the next Alive
		klog.FromContext(ctx).Info("The teardown has ended", "phase", outcome.Phase, "reason", outcome.Reason)
		return nil, nil
	case errors.As(context.Cause(competing), &end):
		return r.endOf(ctx, permitted, end)
	case errors.Is(context.Cause(competing), errNotPermitted):
		return nil, nil
	case errors.Is(context.Cause(competing), ErrNamespaceGone), errors.Is(context.Cause(competing), ErrUnsaid):
		return nil, context.Cause(competing)
	}
	return nil, err
}

// watchNamespace ends the competition for the Lease once its namespace goes: without it no Lease says who works.
func (r *Runner) watchNamespace(ctx context.Context, stop context.CancelCauseFunc) {
	exists := false
	namespaces := r.Objects.CoreV1().Namespaces()
	f := newFeed(func(f func() bool) { f() }, func(object any) bool {
		namespace, is := object.(*v1.Namespace)
		if exists = is && namespace.DeletionTimestamp == nil; !exists {
			stop(ErrNamespaceGone)
		}
		return exists
	}, func(any) { stop(ErrNamespaceGone) })
	f.done = func() {
		if !exists {
			stop(ErrNamespaceGone)
		}
	}
	kind("namespaces", &v1.Namespace{}, namespaces.List, namespaces.Watch).only("metadata.name="+Namespace).
		follow(ctx, r.Objects, f)
}

// followed is the end of a teardown that another runner carries out: the last Alive, nil if it is gone.
type followed struct{ object *alive.Alive }

// Error says what happened.
func (f *followed) Error() string { return "the teardown of another runner has ended" }

// endOf returns the outcome of a teardown that this process followed.
func (r *Runner) endOf(ctx context.Context, before *alive.Alive, end *followed) (*Outcome, error) {
	if end.object != nil {
		status := end.object.Status
		return &Outcome{Phase: teardown.Phase(status.Phase), Reason: teardown.Reason(status.Reason), Message: status.Message}, nil
	}
	live, err := r.readAlive(ctx)
	if err != nil || live != nil && live.UID == before.UID { // the watch was wrong
		return nil, err
	}
	if !r.Command {
		return nil, nil
	}
	return r.recordedOutcome(ctx, before.UID)
}

// recordedOutcome is that of the teardown of an Alive that is gone: complete, or nobody knows (#57).
func (r *Runner) recordedOutcome(ctx context.Context, of types.UID) (*Outcome, error) {
	recorded, err := r.loadRecord(ctx, string(of))
	switch {
	case err != nil:
		return nil, err
	case recorded.complete:
		return &Outcome{Phase: teardown.Complete, Reason: teardown.Completed, Message: texts[teardown.Completed]}, nil
	}
	return &Outcome{Reason: teardown.NotCompleted}, ErrNotCompleted
}

// wanted reports whether there is something to do: Alive is armed or deleted.
func (r *Runner) wanted(object *alive.Alive) bool {
	if object == nil {
		return false
	}
	return object.IsDeleted() || r.permits(object)
}

// permits reports whether the spec permits a teardown.
func (r *Runner) permits(object *alive.Alive) bool { return r.unpermitted(object) == "" }

// awaitPermission waits until Alive is armed or deleted, and this process has the rights. It writes the phase of an
// Alive that is neither.
func (r *Runner) awaitPermission(ctx context.Context) (*alive.Alive, error) {
	for {
		object, synced, changed := r.view()
		wait := time.Duration(0)
		switch {
		case !synced:
		case !r.wanted(object):
			if err := r.reportIdle(ctx, object); err != nil {
				return nil, err
			}
		default:
			lacking, err := r.missingRights(ctx)
			if err != nil {
				return nil, err
			}
			if len(lacking) == 0 {
				return object, nil
			}
			if err := r.reportRights(ctx, object, lacking); err != nil {
				return nil, err
			}
			if r.permits(object) { // else a right would change nothing
				wait = r.Waits.Check
			}
		}
		if !await(ctx, changed, wait) {
			return nil, nil
		}
	}
}

// missingRights returns the rights that this process lacks.
func (r *Runner) missingRights(ctx context.Context) ([]string, error) {
	if r.Permitted == nil {
		return nil, nil
	}
	return r.Permitted(ctx)
}

// accompany ends the competition for the Lease once Alive is neither armed nor deleted. While another runner leads, it
// follows what that one does.
func (r *Runner) accompany(ctx context.Context, stop context.CancelCauseFunc, before *alive.Alive, led *atomic.Bool) {
	var over time.Time
	for {
		object, _, changed := r.view()
		gone := object == nil || object.UID != before.UID
		switch {
		case led.Load(): // the session sees it, too
			if !gone && !r.wanted(object) {
				stop(errNotPermitted)
				return
			}
		case gone:
			stop(&followed{})
			return
		case !r.wanted(object):
			stop(errNotPermitted)
			return
		default:
			r.Follow(followedProgress(&object.Status))
			if r.Command && isStopped(object) {
				stop(&followed{object})
				return
			}
			over = r.overSince(object, over)
			if !over.IsZero() && time.Since(over) >= r.Waits.Pause {
				stop(ErrUnsaid)
				return
			}
		}
		if !await(ctx, changed, r.untilOver(object)) {
			return
		}
	}
}

// isStopped reports whether the leader has stopped, and knows the spec as it is. A runner without the rights does not lead.
func isStopped(object *alive.Alive) bool {
	ready := meta.FindStatusCondition(object.Status.Conditions, alive.ConditionReady)
	return object.Status.Phase == alive.Stopped && ready != nil && ready.ObservedGeneration == object.Generation &&
		ready.Reason != alive.ReasonRightsMissing
}

var errNotPermitted = errors.New("the teardown is no longer permitted")

// watchAlive follows Alive until the context ends.
func (r *Runner) watchAlive(ctx context.Context) {
	f := newFeed(r.change, r.see, func(any) { r.current = nil })
	f.done = func() { r.synced = true }
	kind("alives", &unstructured.Unstructured{}, r.listAlive, r.Dynamic.Resource(alive.Resource).Watch).
		only("metadata.name="+alive.Name).follow(ctx, r.Dynamic, f)
}

// see takes Alive as it is now. An object that cannot be read permits nothing.
func (r *Runner) see(object any) bool {
	content, is := object.(*unstructured.Unstructured)
	if !is {
		return false
	}
	current, err := alive.FromUnstructured(content)
	if err != nil {
		klog.Background().Error(err, "Alive permits nothing")
		current = nil
	}
	if r.Command && isUndone(r.current, current) {
		r.end(ErrRestored)
	}
	r.current = current
	return true
}

// isUndone reports whether a backup of etcd has undone the deletion (#63): the command would wait for another one.
func isUndone(before, now *alive.Alive) bool {
	return before.IsDeleted() && now != nil && now.UID == before.UID && !now.IsDeleted()
}

func (r *Runner) change(f func() bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if f() {
		close(r.changed)
		r.changed = make(chan struct{})
	}
}

// view returns Alive, whether it was listed, and a channel that is closed at the next change.
func (r *Runner) view() (*alive.Alive, bool, <-chan struct{}) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.current, r.synced, r.changed
}

// await waits for the change, or for the time if it is not 0. It returns false if the context ended first.
func await(ctx context.Context, changed <-chan struct{}, limit time.Duration) bool {
	var timeout <-chan time.Time
	if limit > 0 {
		timer := time.NewTimer(limit)
		defer timer.Stop()
		timeout = timer.C
	}
	select {
	case <-ctx.Done():
		return false
	case <-changed:
	case <-timeout:
	}
	return true
}

func sleep(ctx context.Context, limit time.Duration) bool { return await(ctx, nil, limit) }
