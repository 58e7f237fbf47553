// Cloudmock runs machines that are simulated nodes of a real API server, for tests of what ends nodes. The machines
// are in test/cloudmock/machines.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/klog/v2"

	"github.com/exeunt-io/exeunt/test/cloudmock/machines"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	klog.SetLogger(logr.Discard()) // client-go logs each request that the API server's end cuts
	if err := run(ctx, os.Args[1:]); err != nil && !errors.Is(err, flag.ErrHelp) {
		fmt.Fprintln(os.Stderr, "cloudmock:", err)
		os.Exit(1)
	}
}

// run runs the machines until ctx ends.
func run(ctx context.Context, args []string) error {
	kubeconfig, config, err := parse(args)
	if err != nil {
		return err
	}
	connection, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return fmt.Errorf("read kubeconfig: %w", err)
	}
	connection.QPS = -1
	connection.ContentType = "application/vnd.kubernetes.protobuf"
	connection.AcceptContentTypes = "application/vnd.kubernetes.protobuf,application/json"
	client, err := kubernetes.NewForConfig(connection)
	if err != nil {
		return fmt.Errorf("make client: %w", err)
	}
	config.Warnings = os.Stderr
	config.Ready = func() { fmt.Printf("cloudmock: ready %d\n", config.Nodes) }
	return machines.Run(ctx, client, config)
}

// parse reads the flags.
func parse(args []string) (kubeconfig string, config machines.Config, err error) {
	flags := flag.NewFlagSet("cloudmock", flag.ContinueOnError)
	flags.StringVar(&kubeconfig, "kubeconfig", "", "the kubeconfig of an administrator")
	flags.StringVar(&config.Socket, "socket", "", "the socket that gets, stops and deletes machines")
	flags.IntVar(&config.Nodes, "nodes", 1, "the number of machines")
	flags.IntVar(&config.FirstNode, "first-node", 0, "the number in the name of the first machine")
	flags.StringVar(&config.Log, "log", "", "the file to which events are appended")
	flags.StringVar(&config.Faults, "faults", "", "the file with the faults, which need not exist")
	flags.DurationVar(&config.LeaseDuration, "lease-duration", 40*time.Second,
		"the duration of the Leases of Nodes, in whole seconds; they are renewed each quarter of it")
	flags.BoolVar(&config.StopUnsupported, "stop-unsupported", false, "no machine can be stopped")
	flags.BoolVar(&config.DriverPodRequired, "driver-pod-required", false, "mount and unmount disks only while a pod "+
		"with label app="+machines.DriverApp+" runs on the machine")
	flags.BoolVar(&config.NoScheduler, "no-scheduler", false, "leave pending pods to another scheduler")
	if err = flags.Parse(args); err != nil {
		return "", config, err
	}
	switch {
	case flags.NArg() > 0:
		err = fmt.Errorf("unknown argument %q", flags.Arg(0))
	case kubeconfig == "" || config.Log == "":
		err = errors.New("--kubeconfig and --log must be set")
	case config.LeaseDuration < time.Second || config.LeaseDuration%time.Second != 0:
		err = fmt.Errorf("--lease-duration=%s must be whole seconds", config.LeaseDuration)
	}
	return kubeconfig, config, err
}
