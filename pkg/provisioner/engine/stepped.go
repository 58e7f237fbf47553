package engine

import (
	"context"
	"slices"

	"github.com/exeunt-io/exeunt/pkg/controller"
)

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
