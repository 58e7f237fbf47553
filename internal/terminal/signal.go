package terminal

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"
)

// SignalError is the error of a process that a signal ended.
type SignalError struct{ Signal syscall.Signal }

func (e SignalError) Error() string {
	return fmt.Sprintf("ended by signal %q, all started programs are stopped", e.Signal)
}

// SignalContext returns a context that ends with a SignalError as its cause, on Ctrl-C,
// SIGTERM, or a closed terminal. The returned function, and the first signal, restore the
// default handling of signals: the next signal ends the process at once.
func SignalContext(parent context.Context) (context.Context, func()) {
	// A closed output is an error of the next write. It must not kill the process,
	// which has programs to stop first.
	signal.Ignore(syscall.SIGPIPE)
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, syscall.SIGINT, syscall.SIGTERM)
	if !signal.Ignored(syscall.SIGHUP) { // ignored under nohup
		signal.Notify(signals, syscall.SIGHUP)
	}
	ctx, cancel := context.WithCancelCause(parent)
	go func() {
		defer signal.Stop(signals)
		select {
		case received := <-signals:
			cancel(SignalError{received.(syscall.Signal)})
		case <-ctx.Done():
		}
	}()
	return ctx, func() { cancel(nil) }
}
