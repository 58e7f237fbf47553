// The program pv-controller binds claims to volumes, sets their phases, releases volumes
// whose claim is gone and protects both while they are in use. It replaces three loops of
// kube-controller-manager.
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
		Use:   "pv-controller",
		Short: "Bind claims to volumes and reclaim released volumes",
		Long: "pv-controller binds PersistentVolumeClaims to PersistentVolumes, sets the phases of both,\n" +
			"releases volumes whose claim is gone and protects both while they are in use.\n" +
			"It replaces the loops persistentvolume-binder-controller, persistentvolume-protection-controller\n" +
			"and persistentvolumeclaim-protection-controller of kube-controller-manager.",
	}, newOptions)
}
