// The program garbage-collector deletes objects whose owners are gone, and keeps owners that
// are deleted in the foreground until their dependents are gone. It replaces
// garbage-collector-controller of kube-controller-manager.
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
		Use:   "garbage-collector",
		Short: "Delete dependents whose owners are gone, in the order that users ask for",
		Long: "garbage-collector deletes objects whose owners are gone. An owner that is deleted in the foreground\n" +
			"stays until its dependents are gone; the dependents of an owner that is deleted with the policy Orphan stay.\n" +
			"It replaces garbage-collector-controller of kube-controller-manager, which has to be off.",
	}, newOptions)
}
