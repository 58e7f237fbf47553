package main

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/spf13/pflag"
	coordinationv1 "k8s.io/api/coordination/v1"
	"k8s.io/klog/v2"

	"github.com/exeunt-io/exeunt/internal/program"
	"github.com/exeunt-io/exeunt/pkg/controller"
	"github.com/exeunt-io/exeunt/pkg/journal"
	"github.com/exeunt-io/exeunt/pkg/provisioner/access"
	"github.com/exeunt-io/exeunt/pkg/provisioner/identity"
	store "github.com/exeunt-io/exeunt/pkg/provisioner/journal"
	"github.com/exeunt-io/exeunt/pkg/provisioner/provisioning"
)

// Times of the journal.
const (
	// commitInterval is the least time between two writes of the journal, strikeDelay
	// how long a removal waits for company.
	commitInterval = 50 * time.Millisecond
	strikeDelay    = time.Second
	// deniedFor is how long the right to write Leases must be missing until volumes are
	// created without the journal.
	deniedFor = time.Minute
	// flushTime bounds the last write of the journal.
	flushTime = time.Second
)

// journalOptions say how journal entries are worked on.
type journalOptions struct {
	unresolvedAfter time.Duration
}

func (o *journalOptions) addFlags(flags *pflag.FlagSet) {
	flags.DurationVar(&o.unresolvedAfter, "journal-unresolved-after", o.unresolvedAfter,
		"how long CreateVolume is repeated for a deleted claim though only an administrator can find out about its volume; then the journal entry is listed by exeunt journal list")
}

func (o *journalOptions) check() error {
	if o.unresolvedAfter <= 0 {
		return errors.New("--journal-unresolved-after must be longer than 0")
	}
	return nil
}

// newStore returns the journal of the driver, or of the driver on this node.
func (w *wiring) newStore(ctx context.Context) (*store.Store, error) {
	client, err := w.clients.For("journal")
	if err != nil {
		return nil, err
	}
	holder, err := program.Identity()
	if err != nil {
		return nil, err
	}
	namespace, err := identity.JournalNamespace(ctx, w.clients.Objects, w.options.election.enabled, w.options.election.namespace)
	if err != nil {
		return nil, err
	}
	return store.New(store.Config{
		Client:  client,
		Journal: journal.Journal{Namespace: namespace, Driver: w.driver.Name(), Node: w.options.node.name()},
		Holder:  holder, Interval: commitInterval, StrikeDelay: strikeDelay, DeniedFor: deniedFor,
		Off:      !w.options.Gates()[string(journalGate)],
		Recorder: w.recorder, Metrics: w.journalMetrics, Lost: w.end,
	}), nil
}

// journaled runs the two sides that create and delete volumes, after the journal was
// read, until the context ends. What is left to be written is written then.
func (w *wiring) journaled(ctx context.Context, entries *store.Store, creations *provisioning.Controller, sides ...func(context.Context)) {
	writing, stop := context.WithCancel(context.WithoutCancel(ctx))
	var writer sync.WaitGroup
	writer.Go(func() { entries.Run(writing) })
	if err := creations.Start(ctx); err != nil {
		if ctx.Err() == nil {
			w.end(err)
		}
		stop()
		writer.Wait()
		return
	}
	var running sync.WaitGroup
	running.Go(func() { w.watchJournal(ctx, entries, creations) })
	for _, side := range sides {
		running.Go(func() { side(ctx) })
	}
	running.Wait()
	stop()
	writer.Wait()
	flushing, stopFlushing := context.WithTimeout(context.WithoutCancel(ctx), flushTime)
	defer stopFlushing()
	entries.Flush(flushing)
}

// watchJournal follows the Leases of the journal, if that is allowed.
func (w *wiring) watchJournal(ctx context.Context, entries *store.Store, creations *provisioning.Controller) {
	may, err := access.MayWatch(ctx, w.clients.Objects, coordinationv1.Resource("leases"), entries.Journal.Namespace)
	if err == nil && may {
		err = entries.Watch(ctx, func(entry journal.Entry) { creations.Approve(ctx, entry) })
	}
	if err != nil && ctx.Err() == nil {
		klog.FromContext(ctx).Error(err, "The leases of the provisioning journal are not watched")
	}
}

// begin makes the term known to what rests on it.
func (w *wiring) begin(term controller.Term) {
	custody := term.ID()
	w.store.Custody = journal.Custody{LeaderLease: custody.LeaseUID, Transitions: custody.Transitions}
	w.term.Store(&term)
}

// leading reports whether the lease lasts for longer than it takes to stop.
func (w *wiring) leading() bool {
	term := w.term.Load()
	return term != nil && (*term).Remaining() > program.StopReserve
}
