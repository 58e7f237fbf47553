// The program bucket-operator makes a directory for each Bucket, and takes part in the end of the cluster.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"log"
	"os"
	"os/signal"
	"syscall"

	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/exeunt-io/exeunt/examples/bucket-operator/operator"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // a second signal ends the process at once
	if err := run(ctx, os.Args[1:], os.Stdout); err != nil {
		fmt.Fprintf(os.Stderr, "%s: %v\n", operator.Program, err)
		os.Exit(1)
	}
}

// run parses the flags and runs the operator.
func run(ctx context.Context, args []string, out io.Writer) error {
	flags := flag.NewFlagSet(operator.Program, flag.ContinueOnError)
	flags.SetOutput(io.Discard) // an error is one sentence
	kubeconfig := flags.String("kubeconfig", "", "kubeconfig file; without it, the service account of the pod is used")
	directory := flags.String("directory", "/var/lib/bucket-operator", "directory with the directories of all buckets")
	switch err := flags.Parse(args); {
	case errors.Is(err, flag.ErrHelp):
		fmt.Fprintf(out, "%s makes a directory for each Bucket, and removes all of them when the cluster goes away.\n\n", operator.Program)
		flags.SetOutput(out)
		flags.PrintDefaults()
		return nil
	case err != nil:
		return fmt.Errorf("%w, see --help", err)
	case flags.NArg() > 0:
		return fmt.Errorf("unknown argument %q, see --help", flags.Arg(0))
	}
	config, err := clientcmd.BuildConfigFromFlags("", *kubeconfig)
	if err != nil {
		return fmt.Errorf("find the API server: %w", err)
	}
	config.QPS, config.Burst = 50, 100
	client, err := dynamic.NewForConfig(config)
	if err != nil {
		return err
	}
	one, err := operator.New(client, *directory, log.New(os.Stderr, operator.Program+": ", log.LstdFlags|log.Lmsgprefix))
	if err != nil {
		return err
	}
	return one.Run(ctx, func() { fmt.Fprintf(out, "%s: ready\n", operator.Program) })
}
