// The program provisioner makes volumes for claims with one CSI driver and deletes
// them when their reclaim policy says so. It stands beside the driver, in the
// place of the csi-provisioner sidecar.
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
		Short: "Make and delete volumes with one CSI driver",
		Long: "provisioner makes volumes for PersistentVolumeClaims with the CSI driver that answers at\n" +
			"--csi-address, and deletes them when their reclaim policy says so, whichever of volume and\n" +
			"claim is deleted first. It takes the place of the csi-provisioner sidecar.",
		Args: overlook,
	}, newOptions)
}

// overlook takes arguments that are no flags: csi-provisioner does, and charts leave
// some behind, such as the second half of "--leader-election true".
func overlook(_ *cobra.Command, args []string) error {
	if stray := strings.Join(args, " "); strings.TrimSpace(stray) != "" {
		klog.Background().Info("Arguments that are no flags have no effect; a value belongs to its flag by =", "arguments", stray)
	}
	return nil
}
