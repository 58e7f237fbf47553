// The program alive-controller tears the cluster down once its Alive permits it and is deleted.
package main

import (
	"github.com/spf13/cobra"

	"github.com/exeunt-io/exeunt/internal/program"

	_ "k8s.io/component-base/logs/json/register"
	_ "k8s.io/component-base/metrics/prometheus/clientgo/leaderelection"
	_ "k8s.io/component-base/metrics/prometheus/restclient"
)

func main() {
	program.Main(&cobra.Command{
		Use:   "alive-controller",
		Short: "Delete what Kubernetes made outside of the cluster, once its Alive permits it",
		Long: "alive-controller watches Alive, which stands for the cluster. While it is protected, nothing else is read.\n" +
			"It tears the cluster down once the Alive permits it and is deleted, and only with the rights that\n" +
			"deploy/alive/armed gives it.",
	}, newOptions)
}
