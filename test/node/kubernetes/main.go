// Kubernetes is kubelet and kube-scheduler in one program, which its name selects.
package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"
	"k8s.io/component-base/cli"
	_ "k8s.io/component-base/metrics/prometheus/clientgo" // its metrics
	_ "k8s.io/component-base/metrics/prometheus/version"  // its metrics
	scheduler "k8s.io/kubernetes/cmd/kube-scheduler/app"
	kubelet "k8s.io/kubernetes/cmd/kubelet/app"
)

func main() {
	command, err := named(filepath.Base(os.Args[0]))
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(cli.Run(command))
}

// named returns the command of the program that is called name.
func named(name string) (*cobra.Command, error) {
	switch name {
	case "kubelet":
		return kubelet.NewKubeletCommand(context.Background()), nil
	case "kube-scheduler":
		return scheduler.NewSchedulerCommand(), nil
	}
	return nil, fmt.Errorf("unknown program %q, want kubelet or kube-scheduler", name)
}
