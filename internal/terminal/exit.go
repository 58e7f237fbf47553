package terminal

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/signal"
	"strings"
	"syscall"
)

// ExitError is an error with the exit status that it stands for. Err is nil if the output of
// the command tells everything.
type ExitError struct {
	Code int
	Err  error
}

func (e ExitError) Error() string {
	if e.Err == nil {
		return ""
	}
	return e.Err.Error()
}

// Unwrap returns Err.
func (e ExitError) Unwrap() error { return e.Err }

// ExitStatus returns the exit status of the process: 128 plus the number of the signal
// that ended it, as in a shell, the code of an ExitError, or 1 for any other error. A closed
// output counts as SIGPIPE, which [SignalContext] ignores.
func ExitStatus(err error) int {
	var signalled SignalError
	var coded ExitError
	switch {
	case err == nil:
		return 0
	case errors.As(err, &signalled):
		return 128 + int(signalled.Signal)
	case IsClosedOutput(err):
		return 128 + int(syscall.SIGPIPE)
	case errors.As(err, &coded):
		return coded.Code
	}
	return 1
}

// PrintError prints the lines of the error after the name of the program. Text of the cluster in
// them cannot control the terminal.
func PrintError(out io.Writer, program string, err error) {
	if err == nil || IsClosedOutput(err) {
		return
	}
	for line := range strings.Lines(err.Error()) {
		fmt.Fprintln(out, program+":", Printable(strings.TrimSpace(line)))
	}
}

// IsClosedOutput reports whether the reader of the output has closed it, as "head" does.
func IsClosedOutput(err error) bool {
	var written *fs.PathError // files have it; a closed connection of a client has a net.OpError
	return errors.As(err, &written) && errors.Is(written, syscall.EPIPE)
}

// SignalError is the error of a process that a signal ended.
type SignalError struct{ Signal syscall.Signal }

func (e SignalError) Error() string {
	return fmt.Sprintf("ended by signal %q", e.Signal)
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
