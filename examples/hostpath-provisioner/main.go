// The program hostpath-provisioner makes volumes that are directories on its node. It
// runs on the controller of pkg/provisioner, or on that of
// sig-storage-lib-external-provisioner v10.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"

	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/klog/v2"
	"sigs.k8s.io/sig-storage-lib-external-provisioner/v10/controller"

	"github.com/exeunt-io/exeunt/examples/hostpath-provisioner/hostpath"
	"github.com/exeunt-io/exeunt/pkg/provisioner"
)

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "hostpath-provisioner:", err)
		os.Exit(1)
	}
}

func run() error {
	name := flag.String("name", "hostpath.example.com", "name of the provisioner, as in storage classes")
	baseDir := flag.String("base-dir", "/var/lib/hostpath-provisioner",
		"directory that has the directories of all volumes")
	runsOn := flag.String("controller", "exeunt", "controller that calls the provisioner: exeunt or v10")
	kubeconfig := flag.String("kubeconfig", "", "kubeconfig file; without it, the service account of the pod is used")
	elect := flag.Bool("leader-election", true, "work only while holding a lease, so that several replicas can run")
	port := flag.Int("metrics-port", 0, "port of the metrics; 0 for none")
	flag.Parse()

	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	config, err := clientcmd.BuildConfigFromFlags("", *kubeconfig)
	if err != nil {
		return err
	}
	config.QPS, config.Burst = 50, 100
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return err
	}
	directory, err := filepath.Abs(*baseDir)
	if err != nil {
		return err
	}
	directories := &hostpath.Provisioner{BaseDir: directory}
	switch *runsOn {
	case "exeunt":
		return provisioner.NewProvisionController(klog.Background(), client, *name, directories,
			provisioner.LeaderElection(*elect), provisioner.MetricsPort(int32(*port))).Run(ctx)
	case "v10":
		controller.NewProvisionController(klog.Background(), client, *name, directories,
			controller.LeaderElection(*elect), controller.MetricsPort(int32(*port)), controller.AddFinalizer(true)).Run(ctx)
		return nil
	}
	return fmt.Errorf("--controller must be exeunt or v10, not %q", *runsOn)
}
