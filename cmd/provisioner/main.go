// The program provisioner makes volumes for claims with one CSI driver and deletes
// them when their reclaim policy says so. It stands beside the driver, in the
// place of the csi-provisioner sidecar.
package main

import (
	"github.com/spf13/cobra"
	"k8s.io/component-base/version"

	"github.com/exeunt-io/exeunt/internal/program"

	_ "k8s.io/component-base/logs/json/register"
	_ "k8s.io/component-base/metrics/prometheus/restclient"
	_ "k8s.io/component-base/metrics/prometheus/workqueue"
)

func main() {
	program.Main("provisioner", newCommand)
}

func newCommand() (*cobra.Command, error) {
	options, err := newOptions()
	if err != nil {
		return nil, err
	}
	command := &cobra.Command{
		Use:   "provisioner",
		Short: "Make and delete volumes with one CSI driver",
		Long: "provisioner makes volumes for PersistentVolumeClaims with the CSI driver that answers at\n" +
			"--csi-address, and deletes them when their reclaim policy says so, whichever of volume and\n" +
			"claim is deleted first. It takes the place of the csi-provisioner sidecar.",
		Args:    cobra.NoArgs,
		Version: version.Get().GitVersion,
		RunE: func(_ *cobra.Command, _ []string) error {
			if err := options.complete(); err != nil {
				return err
			}
			ctx, stop := program.SignalContext("provisioner")
			defer stop()
			return run(ctx, options)
		},
	}
	options.addFlags(command.Flags())
	return command, nil
}
