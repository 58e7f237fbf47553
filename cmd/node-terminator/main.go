// The program node-terminator drains nodes that are deleted, and ends them at their deadline.
package main

import (
	"github.com/spf13/cobra"

	"github.com/exeunt-io/exeunt/internal/program"

	_ "k8s.io/component-base/logs/json/register"
	_ "k8s.io/component-base/metrics/prometheus/clientgo/leaderelection"
	_ "k8s.io/component-base/metrics/prometheus/restclient"
	_ "k8s.io/component-base/metrics/prometheus/workqueue"
)

func main() {
	program.Main(&cobra.Command{
		Use:   "node-terminator",
		Short: "Drain deleted nodes, and end them at their deadline",
		Long: "node-terminator drains a Node with the label exeunt.io/termination-grace-period that is deleted, under the\n" +
			"budgets of its pods. At the deadline the machine is stopped, and its pods and volumes are freed. It touches no\n" +
			"other Node.",
	}, newOptions)
}
