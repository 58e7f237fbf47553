package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	cliflag "k8s.io/component-base/cli/flag"

	"github.com/exeunt-io/exeunt/internal/demo"
	"github.com/exeunt-io/exeunt/internal/sandbox"
	"github.com/exeunt-io/exeunt/pkg/features"
)

// startTimeout limits the start of a cluster.
const startTimeout = 2 * time.Minute

// hint are commands to copy into a terminal. Its verbs stand for the class and the call
// log.
const hint = `The cluster has a control plane, pv-controller, provisioner and a mock CSI driver; it has no nodes.
Set KUBECONFIG in another terminal and try:

kubectl create -f - <<EOF
apiVersion: v1
kind: PersistentVolumeClaim
metadata: {name: mine}
spec:
  storageClassName: %s
  accessModes: [ReadWriteOnce]
  resources: {requests: {storage: 1Gi}}
EOF
kubectl get pv,pvc                     # repeat until the claim is Bound
kubectl delete pv --all --wait=false   # the PV first
kubectl delete pvc mine                # then its claim
grep DeleteVolume %s

Ctrl-C stops everything and removes it.
`

// sandboxFlags are the flags of "exeunt sandbox".
type sandboxFlags struct {
	binDir string
	gates  map[string]bool
	keep   bool
}

// newSandboxCommand returns "exeunt sandbox".
func newSandboxCommand(streams genericiooptions.IOStreams) *cobra.Command {
	flags := sandboxFlags{gates: map[string]bool{}}
	command := &cobra.Command{
		Use:   "sandbox",
		Short: "Run the cluster of the demo until Ctrl-C, to try commands in it",
		Args:  noArguments,
		RunE: func(command *cobra.Command, _ []string) error {
			honor, err := flags.honor()
			if err != nil {
				return err
			}
			return flags.run(command.Context(), streams, honor)
		},
	}
	set := command.Flags()
	set.StringVar(&flags.binDir, "bin-dir", "", "directory of the programs to start (default: the directory of this program)")
	set.Var(cliflag.NewMapStringBool(&flags.gates), "feature-gates", "feature gates of both controllers: HonorPVReclaimPolicy=true|false (default true)")
	set.BoolVar(&flags.keep, "keep", false, "keep data and logs at the end, and print their directory")
	return command
}

// honor checks the feature gates and returns HonorPVReclaimPolicy.
func (f sandboxFlags) honor() (bool, error) {
	gate, err := features.NewGate()
	if err != nil {
		return false, err
	}
	if err := features.Set(gate, f.gates); err != nil {
		return false, err
	}
	return gate.Enabled(features.HonorPVReclaimPolicy), nil
}

// run starts the cluster and stops it when ctx ends, which is no error, or when the
// control plane ends.
func (f sandboxFlags) run(ctx context.Context, streams genericiooptions.IOStreams, honor bool) error {
	cluster, err := f.start(ctx, streams, honor)
	if err != nil {
		return err
	}
	fmt.Fprintf(streams.Out, "export KUBECONFIG=%s\n", cluster.Kubeconfig())
	fmt.Fprintf(streams.ErrOut, hint, demo.ClassName, cluster.CallLog())
	select {
	case <-ctx.Done():
		return cluster.Stop()
	case <-cluster.Gone():
		return errors.Join(errors.New("the control plane has ended; all other programs are stopped"), cluster.Stop())
	}
}

// start starts the cluster and creates its class. If ctx ends before the cluster runs,
// the error is the cause.
func (f sandboxFlags) start(ctx context.Context, streams genericiooptions.IOStreams, honor bool) (*demo.Cluster, error) {
	limited, cancel := context.WithTimeoutCause(ctx, startTimeout, fmt.Errorf("the cluster was not ready within %s", startTimeout))
	defer cancel()
	cluster, err := demo.StartCluster(limited, demo.ClusterConfig{
		Binaries: sandbox.Binaries{Dir: f.binDir},
		Keep:     f.keep,
		Progress: demo.Progress{Out: streams.ErrOut},
		Died:     func(err error) { fmt.Fprintln(streams.ErrOut, "exeunt:", err) },
	})
	if err == nil {
		err = fill(limited, cluster, honor)
	}
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	return cluster, err
}

// fill starts the programs of the cluster and creates its class, or stops the cluster.
func fill(ctx context.Context, cluster *demo.Cluster, honor bool) error {
	err := cluster.StartPrograms(ctx, honor)
	if err == nil {
		err = cluster.ApplyClass(ctx)
	}
	if err != nil {
		err = errors.Join(err, cluster.Stop())
	}
	return err
}
