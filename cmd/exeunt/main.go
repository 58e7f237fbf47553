// Command exeunt is the tool for administrators, also as the kubectl plugin kubectl-exeunt:
// "exeunt why" explains why deleted objects are still there, "exeunt status" says whether
// volumes are protected, "exeunt journal" lists and ends entries of the provisioning journal,
// "exeunt audit" compares the volumes in storage with what clusters know, "exeunt teardown" deletes what a cluster made
// outside before the cluster goes away, "exeunt delete" deletes custom resources with a
// deadline.
package main

import (
	"context"
	"log/slog"
	"os"
	"path/filepath"

	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/klog/v2"

	"github.com/exeunt-io/exeunt/internal/heap"
	"github.com/exeunt-io/exeunt/internal/terminal"
)

func main() {
	// Log lines of client-go, such as a watch that ended, do not belong into the output.
	klog.SetSlogLogger(slog.New(slog.DiscardHandler))
	heap.Pace() // a plan holds the volumes of the whole cluster
	ctx, stop := terminal.SignalContext(context.Background())
	streams := genericiooptions.IOStreams{In: os.Stdin, Out: os.Stdout, ErrOut: os.Stderr}
	program := filepath.Base(os.Args[0])
	command := newCommand(program, streams)
	command.SetArgs(arguments(program, os.Args[1:]))
	err := command.ExecuteContext(ctx)
	stop()
	terminal.PrintError(os.Stderr, "exeunt", err)
	os.Exit(terminal.ExitStatus(err))
}
