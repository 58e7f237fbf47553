// The program provisioner makes volumes for claims with one CSI driver and deletes
// them when their reclaim policy says so. It stands beside the driver, in the
// place of the csi-provisioner sidecar.
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
		Use:   "provisioner",
		Short: "Make and delete volumes with one CSI driver",
		Long: "provisioner makes volumes for PersistentVolumeClaims with the CSI driver that answers at\n" +
			"--csi-address, and deletes them when their reclaim policy says so, whichever of volume and\n" +
			"claim is deleted first. It takes the place of the csi-provisioner sidecar.",
	}, newOptions)
}
