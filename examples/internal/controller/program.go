package controller

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

	v1 "k8s.io/api/core/v1"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/scheme"
	corev1 "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/tools/record"

	"github.com/exeunt-io/exeunt/examples/internal/guest"
)

// GuestCommand is the first argument of a process that is a guest.
const GuestCommand = "guest"

// Main runs the program of an example, a guest or the controller, and returns its exit code.
func Main(kind Kind, runGuest func(args []string) error) int {
	var err error
	if len(os.Args) > 1 && os.Args[1] == GuestCommand { // which has its own use for signals
		err = runGuest(os.Args[2:])
	} else {
		ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
		context.AfterFunc(ctx, stop) // a second signal ends the process at once
		err = run(ctx, kind, os.Args[1:])
	}
	if err != nil {
		fmt.Fprintf(os.Stderr, "%s: %v\n", kind.Program, err)
		return 1
	}
	return 0
}

type options struct{ kubeconfig, stateDir, host string }

// parse returns the flags, and whether the program is to run.
func parse(kind Kind, args []string) (o options, run bool, err error) {
	flags := flag.NewFlagSet(kind.Program, flag.ContinueOnError)
	flags.SetOutput(io.Discard) // an error is one sentence
	flags.StringVar(&o.kubeconfig, "kubeconfig", "", "kubeconfig file; without it, the service account of the pod is used")
	flags.StringVar(&o.stateDir, "state-dir", "/var/lib/"+kind.Program, "directory with what the controller knows of its guests")
	flags.StringVar(&o.host, "host", "", "name of this host: guests of objects with this spec.host run here")
	switch err := flags.Parse(args); {
	case errors.Is(err, flag.ErrHelp):
		fmt.Printf("%s runs the guests of %s on this host.\n\n", kind.Program, kind.Resource.GroupResource())
		flags.SetOutput(os.Stdout)
		flags.PrintDefaults()
		return o, false, nil
	case err != nil:
		return o, false, fmt.Errorf("%w, see --help", err)
	case flags.NArg() > 0:
		return o, false, fmt.Errorf("unknown argument %q, see --help", flags.Arg(0))
	}
	return o, true, nil
}

func run(ctx context.Context, kind Kind, args []string) error {
	o, start, err := parse(kind, args)
	if err != nil || !start {
		return err
	}
	config, err := connect(o.kubeconfig)
	if err != nil {
		return fmt.Errorf("find the API server: %w", err)
	}
	objects, err := dynamic.NewForConfig(config)
	if err != nil {
		return err
	}
	core, err := kubernetes.NewForConfig(config)
	if err != nil {
		return err
	}
	dir, err := guest.Open(o.stateDir)
	if err != nil {
		return err
	}
	defer func() { _ = dir.Close() }()
	broadcaster := record.NewBroadcaster()
	defer broadcaster.Shutdown()
	broadcaster.StartRecordingToSink(&corev1.EventSinkImpl{Interface: core.CoreV1().Events(v1.NamespaceAll)})
	events := broadcaster.NewRecorder(scheme.Scheme, v1.EventSource{Component: kind.Program, Host: o.host})
	logger := log.New(os.Stderr, kind.Program+": ", log.LstdFlags|log.Lmsgprefix)
	return New(kind, o.host, objects, dir, events, logger).Run(ctx, func() { fmt.Printf("%s: ready\n", kind.Program) })
}

func connect(kubeconfig string) (*rest.Config, error) {
	config, err := rest.InClusterConfig()
	if kubeconfig != "" {
		config, err = clientcmd.BuildConfigFromFlags("", kubeconfig)
	}
	if err != nil {
		return nil, err
	}
	config.QPS, config.Burst = 100, 200 // many guests may have the same deadline
	return config, nil
}
