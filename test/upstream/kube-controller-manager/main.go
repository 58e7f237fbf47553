// Kube-controller-manager is the real one, of the Kubernetes version that the
// control plane has, to compare the pv-controller with.
package main

import (
	"os"

	"k8s.io/component-base/cli"
	_ "k8s.io/component-base/metrics/prometheus/clientgo" // its metrics
	_ "k8s.io/component-base/metrics/prometheus/version"  // its metrics
	"k8s.io/kubernetes/cmd/kube-controller-manager/app"
)

func main() {
	os.Exit(cli.Run(app.NewControllerManagerCommand()))
}
