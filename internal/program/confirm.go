package program

import (
	"context"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/exeunt-io/exeunt/pkg/controller"
)

// maxReads is how often the lease is read to confirm it: the connection may be interrupted during a read, and the
// first read opens a new connection.
const maxReads = 3

// ID implements [controller.Term].
func (e *election) ID() controller.TermID {
	e.term.mu.Lock()
	defer e.term.mu.Unlock()
	return e.term.id
}

// Leading implements [controller.Term].
func (e *election) Leading() bool {
	return e.term.remaining() > StopReserve && e.confirm(e.renewing) == nil
}

// confirm returns nil if the lease was found unchanged since the connection to the API server was last interrupted and
// a renewal was due. It reads the lease only if no renewal has found it unchanged.
func (e *election) confirm(ctx context.Context) error {
	for range maxReads {
		if confirmed, err := e.term.isConfirmed(); err != nil || confirmed {
			return err
		}
		_, err, _ := e.confirming.Do("", func() (any, error) {
			return e.leases().Leases(e.ResourceNamespace).Get(e.renewing, e.ResourceName, metav1.GetOptions{})
		})
		if err == nil {
			err = ctx.Err()
		}
		if err != nil {
			return fmt.Errorf("%w: %w", ErrUnconfirmed, err)
		}
	}
	confirmed, err := e.term.isConfirmed()
	if err == nil && !confirmed {
		err = ErrUnconfirmed
	}
	return err
}

// guard holds back each write until confirm returns nil. The returned function ends that.
func (c *Connection) guard(confirm func(context.Context) error) (end func()) {
	c.confirm.Store(&confirm)
	return func() { c.confirm.Store(nil) }
}
