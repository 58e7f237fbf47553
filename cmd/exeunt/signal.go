package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"
)

// signalError is that a signal asked the process to end.
type signalError struct{ signal syscall.Signal }

func (e signalError) Error() string {
	return fmt.Sprintf("ended by signal %q, everything that was started is stopped", e.signal)
}

// signalContext returns a context that ends, with a signalError for a cause, when
// somebody wants the process to end, as by Ctrl-C or by closing the terminal. The
// function returned, and the first signal, give the signals back: the next one
// then ends the process at once.
func signalContext(parent context.Context) (context.Context, func()) {
	// Who reads the output may close it. That is an error of the next write, and
	// not the death of the process, which has others to stop first.
	signal.Ignore(syscall.SIGPIPE)
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, syscall.SIGINT, syscall.SIGTERM)
	if !signal.Ignored(syscall.SIGHUP) { // as it is under nohup
		signal.Notify(signals, syscall.SIGHUP)
	}
	ctx, cancel := context.WithCancelCause(parent)
	go func() {
		defer signal.Stop(signals)
		select {
		case received := <-signals:
			cancel(signalError{received.(syscall.Signal)})
		case <-ctx.Done():
		}
	}()
	return ctx, func() { cancel(nil) }
}
