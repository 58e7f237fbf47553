package sources

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/exeunt-io/exeunt/internal/answer"
	"github.com/exeunt-io/exeunt/pkg/controller"
	"github.com/exeunt-io/exeunt/pkg/finalizer"
	"github.com/exeunt-io/exeunt/pkg/patch"
)

// sourceProtection adds a finalizer to sources of one kind.
type sourceProtection[T metav1.Object] struct {
	// Kind is the kind of the sources in errors.
	Kind      string
	Finalizer finalizer.Name
	// Read reads a source live. Edit changes its finalizers, and returns the source as stored.
	Read func(ctx context.Context, namespace, name string) (T, error)
	Edit func(ctx context.Context, source T, change finalizer.Change) (T, error)
	// removals has the sources whose finalizer is being removed.
	removals controller.KeyLocks
	// open has the time of each removal without an answer, by source.
	open sync.Map
}

var (
	// errBeingDeleted is returned because the API server refuses new finalizers then.
	errBeingDeleted = errors.New("it is being deleted")
	errReplaced     = errors.New("another object has the name")
	errUndone       = errors.New("the finalizer is missing after its write: an admission webhook or another program removed it")
	errRemovalOpen  = errors.New("an earlier removal of its finalizer has no answer and may still take effect; trying again until it cannot")
)

// openRemoval is how long the API server may take to execute a removal whose answer is lost: its
// --request-timeout, and some time for the arrival of the request and the commit of etcd.
const openRemoval = 70 * time.Second

// Protect adds the finalizer to a source that was just read, and reads the source again if
// it has changed since. It returns an error if the source is gone, or is being deleted
// without the finalizer, and while a removal without an answer may take the finalizer away.
func (p *sourceProtection[T]) Protect(ctx context.Context, source T) error {
	if _, open := p.open.Load(keyOf(source)); open {
		return p.failed(source, errRemovalOpen)
	}
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
func (p *sourceProtection[T]) LockRemoval(source string) (unlock func()) {
	return p.removals.Lock(source)
}

// AwaitRemoval waits while the finalizer of the source is being removed. It is called by the
// worker of a claim in the index, before the source is read: a removal that did not see the
// claim in the index has ended, and shows in the source.
func (p *sourceProtection[T]) AwaitRemoval(source string) {
	p.removals.Lock(source)()
}

// Remove removes the finalizer. The caller holds the lock of LockRemoval.
func (p *sourceProtection[T]) Remove(ctx context.Context, source T) error {
	now, err := p.Edit(ctx, source, finalizer.Change{Remove: []finalizer.Name{p.Finalizer}})
	if err == nil && finalizer.Has(now.GetFinalizers(), p.Finalizer) { // no event may follow
		return fmt.Errorf("%s %s/%s: %w", p.Kind, source.GetNamespace(), source.GetName(), controller.ErrTooManySteps)
	}
	if err != nil && !answer.IsDefinite(err) {
		key, began := keyOf(source), time.Now()
		p.open.Store(key, began)
		time.AfterFunc(openRemoval, func() { p.open.CompareAndDelete(key, began) })
	}
	return err
}

// Removal names the removal of the finalizer in events.
func (p *sourceProtection[T]) Removal() string {
	return "Removing the finalizer " + string(p.Finalizer)
}

func keyOf(source metav1.Object) string { return source.GetNamespace() + "/" + source.GetName() }

func (p *sourceProtection[T]) addFinalizer(ctx context.Context, source T) error {
	switch {
	case finalizer.Has(source.GetFinalizers(), p.Finalizer):
		return nil
	case source.GetDeletionTimestamp() != nil:
		return p.failed(source, errBeingDeleted)
	}
	now, err := p.Edit(ctx, source, finalizer.Change{Add: []finalizer.Name{p.Finalizer}})
	if err == nil && !finalizer.Has(now.GetFinalizers(), p.Finalizer) {
		return p.failed(source, errUndone)
	}
	return err
}

func (p *sourceProtection[T]) failed(source T, err error) error {
	return fmt.Errorf("protect %s %s/%s: %w", p.Kind, source.GetNamespace(), source.GetName(), err)
}
