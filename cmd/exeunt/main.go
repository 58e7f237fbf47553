// Command exeunt is the tool for administrators, also as the kubectl plugin
// kubectl-exeunt: "exeunt demo" shows how volumes are reclaimed, "exeunt sandbox" runs a
// cluster for trials, "exeunt journal" lists and ends entries of the provisioning journal,
// "exeunt audit" compares the volumes in storage with what clusters know.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/klog/v2"

	"github.com/exeunt-io/exeunt/internal/terminal"
)

func main() {
	// Log lines of client-go, such as a watch that ended, do not belong into the output.
	klog.SetSlogLogger(slog.New(slog.DiscardHandler))
	ctx, stop := signalContext(context.Background())
	streams := genericiooptions.IOStreams{In: os.Stdin, Out: os.Stdout, ErrOut: os.Stderr}
	program := filepath.Base(os.Args[0])
	command := newCommand(program, streams)
	command.SetArgs(arguments(program, os.Args[1:]))
	err := command.ExecuteContext(ctx)
	stop()
	printError(os.Stderr, err)
	os.Exit(exitStatus(err))
}

// printError prints the lines of the error. Text of the cluster in it cannot control the
// terminal.
func printError(out io.Writer, err error) {
	if err == nil || isClosedOutput(err) {
		return
	}
	for line := range strings.Lines(err.Error()) {
		fmt.Fprintln(out, "exeunt:", terminal.Printable(strings.TrimSpace(line)))
	}
}

// isClosedOutput reports whether the reader of the output has closed it, as "head" does.
func isClosedOutput(err error) bool {
	var written *fs.PathError // a closed connection has another error
	return errors.As(err, &written) && errors.Is(written, syscall.EPIPE)
}

// exitStatus returns the exit status of the process: 128 plus the number of the signal
// that ended it, as in a shell, the code of an exitCode, or 1 for any other error.
func exitStatus(err error) int {
	var signalled signalError
	var coded exitCode
	switch {
	case err == nil:
		return 0
	case errors.As(err, &signalled):
		return 128 + int(signalled.signal)
	case isClosedOutput(err):
		return 128 + int(syscall.SIGPIPE)
	case errors.As(err, &coded):
		return coded.code
	}
	return exitError
}
