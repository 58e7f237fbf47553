// Command provisioner creates volumes for claims with one CSI driver and deletes volumes as
// their reclaim policy requires. It runs beside the driver and replaces the sidecar
// csi-provisioner. This package holds flags and wiring only.
package main

import (
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/klog/v2"

	"github.com/exeunt-io/exeunt/internal/program"

	_ "k8s.io/component-base/logs/json/register"
	_ "k8s.io/component-base/metrics/prometheus/clientgo/leaderelection"
	_ "k8s.io/component-base/metrics/prometheus/restclient"
	_ "k8s.io/component-base/metrics/prometheus/workqueue"
)

func main() {
	program.Main(&cobra.Command{
		Use:   "provisioner",
		Short: "Create and delete volumes with one CSI driver",
		Long: "provisioner creates volumes for PersistentVolumeClaims with the CSI driver at --csi-address,\n" +
			"and deletes volumes as their reclaim policy requires, in either order of deletion of volume\n" +
			"and claim. It replaces the sidecar csi-provisioner.",
		Args: ignoreArguments,
	}, newOptions)
}

// ignoreArguments accepts arguments that are not flags, as csi-provisioner does: charts
// contain some, such as the second half of "--leader-election true".
func ignoreArguments(_ *cobra.Command, args []string) error {
	if stray := strings.Join(args, " "); strings.TrimSpace(stray) != "" {
		klog.Background().Info("Ignoring arguments that are not flags; write a flag and its value as --flag=value",
			"arguments", stray)
	}
	return nil
}
