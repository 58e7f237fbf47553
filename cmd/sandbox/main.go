// Command sandbox runs a cluster on this machine for trials: a real API server with etcd, the
// controllers, and a mock CSI driver. "sandbox demo" shows how volumes are reclaimed. It starts
// programs that a clone of the repository builds, and is not released.
package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"

	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/klog/v2"

	"github.com/exeunt-io/exeunt/internal/terminal"
)

func main() {
	// Log lines of client-go, such as a watch that ended, do not belong into the output.
	klog.SetSlogLogger(slog.New(slog.DiscardHandler))
	ctx, stop := terminal.SignalContext(context.Background())
	err := newCommand(genericiooptions.IOStreams{In: os.Stdin, Out: os.Stdout, ErrOut: os.Stderr}).ExecuteContext(ctx)
	stop()
	var signaled terminal.SignalError
	if errors.As(err, &signaled) && err.Error() == signaled.Error() { // nothing else failed
		err = fmt.Errorf("%w, all started programs are stopped", err)
	}
	terminal.PrintError(os.Stderr, "sandbox", err)
	os.Exit(terminal.ExitStatus(err))
}
