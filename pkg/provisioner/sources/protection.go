package sources

import (
	"context"
	"errors"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/exeunt-io/exeunt/pkg/controller"
	"github.com/exeunt-io/exeunt/pkg/finalizer"
	"github.com/exeunt-io/exeunt/pkg/patch"
)

// Protection adds a finalizer to sources of one kind.
type Protection[T metav1.Object] struct {
	// Kind is the kind of the sources in errors.
	Kind      string
	Finalizer finalizer.Name
	// Read reads a source live. Edit changes its finalizers.
	Read func(ctx context.Context, namespace, name string) (T, error)
	Edit func(ctx context.Context, source T, change finalizer.Change) error
	// removals has the sources whose finalizer is being removed.
	removals controller.KeyLocks
}

var (
	// errBeingDeleted is returned because the API server refuses new finalizers then.
	errBeingDeleted = errors.New("it is being deleted")
	errReplaced     = errors.New("another object has the name")
)

// Protect adds the finalizer to a source that was just read, and reads the source again if
// it has changed since. It returns an error if the source is gone, or is being deleted
// without the finalizer.
func (p *Protection[T]) Protect(ctx context.Context, source T) error {
	err := p.addFinalizer(ctx, source)
	if !patch.IsStale(err) {
		return err
	}
	now, err := p.Read(ctx, source.GetNamespace(), source.GetName())
	switch {
	case err != nil:
		return p.failed(source, err)
	case now.GetUID() != source.GetUID():
		return p.failed(source, errReplaced)
	}
	return p.addFinalizer(ctx, now)
}

// LockRemoval locks the source namespace/name. The caller holds the lock from the lookup in the
// index of claims until the finalizer is removed.
func (p *Protection[T]) LockRemoval(source string) (unlock func()) {
	return p.removals.Lock(source)
}

// AwaitRemoval waits while the finalizer of the source is being removed. It is called by the
// worker of a claim in the index, before the source is read: a removal that did not see the
// claim in the index has ended, and shows in the source.
func (p *Protection[T]) AwaitRemoval(source string) {
	p.removals.Lock(source)()
}

func (p *Protection[T]) addFinalizer(ctx context.Context, source T) error {
	switch {
	case finalizer.Has(source.GetFinalizers(), p.Finalizer):
		return nil
	case source.GetDeletionTimestamp() != nil:
		return p.failed(source, errBeingDeleted)
	}
	return p.Edit(ctx, source, finalizer.Change{Add: []finalizer.Name{p.Finalizer}})
}

func (p *Protection[T]) failed(source T, err error) error {
	return fmt.Errorf("protect %s %s/%s: %w", p.Kind, source.GetNamespace(), source.GetName(), err)
}
