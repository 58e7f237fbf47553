// Command exeunt is the operator's tool, also as the kubectl plugin
// kubectl-exeunt: "exeunt demo" shows what the product does, "exeunt sandbox"
// runs a cluster to try it in, "exeunt journal" shows the provisioning journal.
package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"

	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/klog/v2"
)

func main() {
	// What client-go would log, such as that a server it watches has ended, is
	// nothing for whoever reads the output.
	klog.SetSlogLogger(slog.New(slog.DiscardHandler))
	ctx, stop := signalContext(context.Background())
	streams := genericiooptions.IOStreams{In: os.Stdin, Out: os.Stdout, ErrOut: os.Stderr}
	err := newCommand(filepath.Base(os.Args[0]), streams).ExecuteContext(ctx)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "exeunt:", err)
	}
	os.Exit(exitStatus(err))
}

// exitStatus returns what the process ends with: 128 and the number of the
// signal that ended it, as a shell has it, or 1 for any other error.
func exitStatus(err error) int {
	var signalled signalError
	switch {
	case err == nil:
		return 0
	case errors.As(err, &signalled):
		return 128 + int(signalled.signal)
	}
	return 1
}
