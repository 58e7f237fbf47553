package engine

import (
	"cmp"
	"context"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	v1 "k8s.io/api/core/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/klog/v2"

	"github.com/exeunt-io/exeunt/pkg/controller"
	"github.com/exeunt-io/exeunt/pkg/journal"
	"github.com/exeunt-io/exeunt/pkg/provisioner/deletion"
	"github.com/exeunt-io/exeunt/pkg/provisioner/journalstore"
	"github.com/exeunt-io/exeunt/pkg/provisioner/provisioning"
)

// Times of the journal.
const (
	// commitInterval is the least time between two writes of the journal. removalDelay is
	// how long the removal of an entry waits for other changes.
	commitInterval = 50 * time.Millisecond
	removalDelay   = time.Second
	// forbiddenFor is how long the right to write Leases must be missing until volumes are
	// created without the journal.
	forbiddenFor = time.Minute
	// flushTime bounds the last write of the journal.
	flushTime = time.Second
)

// Config is what an engine is made of.
type Config struct {
	// Client asks the API server for the rights of this process.
	Client kubernetes.Interface
	// Journal configures the journal. The engine sets times (the interval if it is zero), custody, Lost, and the
	// holder if it is empty.
	Journal journalstore.Config
	// Provisioning and Deletion configure the two sides. The engine sets what joins
	// them: journal, lock, the deletion side of the provisioning side, and which volumes are reached.
	Provisioning provisioning.Config
	Deletion     deletion.Config
	// Workers is the number of claim workers, and the number of volume workers.
	Workers int
	// End ends the process with an error.
	End func(error)
}

// Engine creates and deletes volumes.
type Engine struct {
	Config
	store     *journalstore.Store
	creations *provisioning.Controller
	deletions *deletion.Controller
	// term is the time during which this process leads.
	term atomic.Pointer[controller.Term]
	// started is closed once the journal was read.
	started chan struct{}
}

// New returns the engine and adds its indexes to the caches.
func New(config Config) (*Engine, error) {
	e := &Engine{Config: config, started: make(chan struct{})}
	holder, err := controller.Identity()
	if err != nil {
		return nil, err
	}
	if e.Journal.Holder == "" {
		e.Journal.Holder = holder
	}
	e.Journal.Lost = e.End
	e.Journal.Interval = cmp.Or(e.Journal.Interval, commitInterval)
	e.Journal.RemovalDelay, e.Journal.ForbiddenFor = removalDelay, forbiddenFor
	e.store = journalstore.New(e.Journal)
	locks := &controller.KeyLocks{}
	e.Deletion.Locks, e.Deletion.Leading, e.Deletion.Reaches = locks, e.leading, e.Provisioning.Scope.Reaches
	e.Deletion.RemoveEntry = func(ctx context.Context, volume *v1.PersistentVolume) (bool, error) {
		return e.creations.RemoveEntry(ctx, volume)
	}
	if e.deletions, err = deletion.New(e.Deletion); err != nil {
		return nil, err
	}
	e.Provisioning.Deletion, e.Provisioning.Locks, e.Provisioning.Journal = e.deletions, locks, e.store
	e.Provisioning.Journaled, e.Provisioning.Leading = !e.Journal.Off, e.leading
	e.Provisioning.Bypassed = func(reason string) { e.Journal.Metrics.Bypassed.WithLabelValues(reason).Inc() }
	if e.creations, err = provisioning.New(e.Provisioning); err != nil {
		return nil, err
	}
	return e, nil
}

// Begin makes the term known. It is called before Run.
func (e *Engine) Begin(term controller.Term) {
	id := term.ID()
	e.Provisioning.Creations.Reset() // of what an earlier leader served
	e.store.Custody = journal.Custody{LeaderLease: id.LeaseUID, Transitions: id.Transitions}
	e.term.Store(&term)
}

// leading reports whether this process leads, see [controller.Term].
func (e *Engine) leading() bool {
	term := e.term.Load()
	return term != nil && (*term).Leading()
}

// Run creates and deletes volumes, after the journal was read, until the context ends.
// What is left to be written is written then.
func (e *Engine) Run(ctx context.Context) {
	writing, stop := context.WithCancel(context.WithoutCancel(ctx))
	var writer sync.WaitGroup
	writer.Go(func() { e.store.Run(writing) })
	if err := e.start(ctx); err != nil {
		if ctx.Err() == nil {
			e.End(err)
		}
		stop()
		writer.Wait()
		return
	}
	var running sync.WaitGroup
	running.Go(func() { e.watchJournal(ctx) })
	running.Go(func() { e.creations.Run(ctx, e.Workers) })
	running.Go(func() { e.deletions.Run(ctx, e.Workers) })
	running.Go(func() { e.Deletion.Waiting.Run(ctx) })
	running.Wait()
	stop()
	writer.Wait()
	flushing, stopFlushing := context.WithTimeout(context.WithoutCancel(ctx), flushTime)
	defer stopFlushing()
	e.store.Flush(flushing)
}

// start registers the event handlers of both sides, and then takes over the journal.
func (e *Engine) start(ctx context.Context) error {
	for _, start := range []func(context.Context) error{e.deletions.Watch, e.creations.Watch, e.creations.Start} {
		if err := start(ctx); err != nil {
			return err
		}
	}
	close(e.started)
	return nil
}

// Started returns a channel that is closed once claims are served: Run has read the journal.
func (e *Engine) Started() <-chan struct{} { return e.started }

// watchJournal follows the Leases of the journal, if that is allowed.
func (e *Engine) watchJournal(ctx context.Context) {
	may, err := controller.MayWatch(ctx, e.Client, coordinationv1.Resource("leases"), e.Journal.Journal.Namespace)
	for pause := time.Second; err != nil; pause = min(2*pause, time.Minute) {
		klog.FromContext(ctx).Error(err, "The leases of the provisioning journal are not watched yet; the list is retried",
			"wait", pause)
		select {
		case <-ctx.Done():
			return
		case <-time.After(pause):
		}
		may, err = controller.MayWatch(ctx, e.Client, coordinationv1.Resource("leases"), e.Journal.Journal.Namespace)
	}
	if !may {
		return
	}
	if err := e.store.Watch(ctx, func(entry journal.Entry) { e.creations.Approve(ctx, entry) }); err != nil {
		klog.FromContext(ctx).Error(err, "The leases of the provisioning journal are not watched")
	}
}

// Loops returns the loops of both sides, for a simulation that steps them.
func (e *Engine) Loops() []*controller.Loop {
	return slices.Concat(e.creations.Loops(), e.deletions.Loops())
}

// Start does what precedes the first reconcile: it registers the event handlers and takes
// over the journal. A simulation calls Start, WriteJournal and the loops in place of Run.
func (e *Engine) Start(ctx context.Context) error { return e.start(ctx) }

// WriteJournal writes changes of the journal until the context ends.
func (e *Engine) WriteJournal(ctx context.Context) { e.store.Run(ctx) }

// Pending reports whether changes of the journal wait for the next write.
func (e *Engine) Pending() bool { return e.store.Pending() }

// Memory returns pointers to what the engine remembers.
func (e *Engine) Memory() []any { return []any{e.creations, e.deletions, e.store} }
