// Cloud-controller is the service controller of k8s.io/cloud-provider, unchanged, with a mock cloud, for tests of what
// makes and deletes load balancers.
//
//   - [cloud] is what the controller calls. Each call obeys the faults of a file, see [fault].
//   - [balancers] are what the cloud has: a file with a JSON line for each load balancer, see [balancer]. They
//     outlive the program, as they do in a cloud.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/cloud-provider/controllers/service"
	"k8s.io/component-base/featuregate"
	"k8s.io/component-base/metrics/prometheus/controllers"
)

// workers is the number of Services that the controller works on at a time: ten times upstream's default, for the time
// that a test takes must not be that of a mock.
const workers = 10

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, os.Args[1:]); err != nil && !errors.Is(err, flag.ErrHelp) {
		fmt.Fprintln(os.Stderr, "cloud-controller:", err)
		os.Exit(1)
	}
}

// options are the flags.
type options struct {
	kubeconfig, state, faults string
}

func parse(args []string) (options, error) {
	var o options
	flags := flag.NewFlagSet("cloud-controller", flag.ContinueOnError)
	flags.StringVar(&o.kubeconfig, "kubeconfig", "", "the kubeconfig of the service controller")
	flags.StringVar(&o.state, "state", "", "the file with a JSON line for each load balancer; kept when the program ends")
	flags.StringVar(&o.faults, "faults", "", "the YAML or JSON file with a list of faults, which need not exist and is "+
		"read at each call: method, service, error, times, latency, hang, after")
	if err := flags.Parse(args); err != nil {
		return o, err
	}
	switch {
	case flags.NArg() > 0:
		return o, fmt.Errorf("unknown argument %q", flags.Arg(0))
	case o.kubeconfig == "" || o.state == "":
		return o, errors.New("--kubeconfig and --state must be set")
	}
	return o, nil
}

// run runs the controller until ctx ends.
func run(ctx context.Context, args []string) error {
	o, err := parse(args)
	if err != nil {
		return err
	}
	connection, err := clientcmd.BuildConfigFromFlags("", o.kubeconfig)
	if err != nil {
		return fmt.Errorf("read kubeconfig: %w", err)
	}
	connection.QPS = -1
	client, err := kubernetes.NewForConfig(connection)
	if err != nil {
		return fmt.Errorf("make client: %w", err)
	}
	stored, err := openBalancers(o.state)
	if err != nil {
		return err
	}
	factory := informers.NewSharedInformerFactory(client, 0)
	controller, err := service.New(&cloud{balancers: stored, faults: faults{file: o.faults}}, client,
		factory.Core().V1().Services(), factory.Core().V1().Nodes(), "mock", featuregate.NewFeatureGate())
	if err != nil {
		return fmt.Errorf("make service controller: %w", err)
	}
	factory.StartWithContext(ctx)
	factory.WaitForCacheSyncWithContext(ctx)
	fmt.Println("cloud-controller: ready")
	controller.Run(ctx, workers, controllers.NewControllerManagerMetrics("cloud-controller"))
	factory.Shutdown()
	return nil
}
