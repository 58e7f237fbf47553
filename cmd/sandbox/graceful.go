package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/exeunt-io/exeunt/test/demo"
	"github.com/exeunt-io/exeunt/test/sandbox"
)

// gracefulHint are commands to copy into a terminal.
const gracefulHint = `The cluster has kube-apiserver of Exeunt, and virtual-machine and database of examples; it has no nodes.
Their guests are processes of this machine. Set KUBECONFIG in another terminal and try:

kubectl create -f - <<EOF
apiVersion: example.exeunt.io/v1
kind: VirtualMachine
metadata: {name: mine}
spec: {guest: {ignoresACPI: true}}
EOF
kubectl delete vm mine --grace-period=300 --wait=false   # the guest is asked to shut down, and ignores it
kubectl exeunt why vm/mine                               # the deadline, and the time that is left
kubectl delete vm mine --grace-period=60 --wait=false    # sooner; 90 would change nothing
kubectl delete vm mine --grace-period=0 --force          # off now
kubectl get events                                       # ShutdownRequested, DeadlineMoved, PoweredOff

Ctrl-C powers all guests off, stops everything and removes it.
`

// errGracefulFlags: the cluster has no volumes.
var errGracefulFlags = errors.New("--graceful-deletion runs no volumes and no node: leave out --faults, --feature-gates and --node")

// runGraceful runs kube-apiserver with graceful deletion and the controllers of examples until ctx ends.
func (f sandboxFlags) runGraceful(ctx context.Context, streams genericiooptions.IOStreams) error {
	if f.faults != "" || len(f.gates) > 0 || f.node {
		return errGracefulFlags
	}
	guarded, end := context.WithCancelCause(ctx)
	defer end(nil)
	cluster, err := f.startGraceful(guarded, streams, func(err error) { end(fmt.Errorf("%w: %w", errProgramEnded, err)) })
	if err != nil {
		return err
	}
	fmt.Fprintf(streams.Out, "export KUBECONFIG=%s\n", cluster.Kubeconfig())
	fmt.Fprint(streams.ErrOut, gracefulHint)
	<-guarded.Done()
	err = cluster.StopExamples()
	if cause := context.Cause(guarded); errors.Is(cause, errProgramEnded) {
		return errors.Join(cause, err)
	}
	return err
}

// startGraceful starts the cluster. If ctx ends before, the error is the cause.
func (f sandboxFlags) startGraceful(ctx context.Context, streams genericiooptions.IOStreams,
	died func(error)) (*demo.Cluster, error) {
	limited, cancel := context.WithTimeoutCause(ctx, startTimeout,
		fmt.Errorf("the cluster was not ready within %s", startTimeout))
	defer cancel()
	binaries := sandbox.Binaries{Dir: f.binDir}
	names := []string{sandbox.VirtualMachine, sandbox.Database}
	program, err := demo.ExamplePrograms(binaries, names...)
	if err != nil {
		return nil, err
	}
	cluster, err := demo.StartCluster(limited, demo.ClusterConfig{Binaries: binaries, Keep: f.keep,
		Progress: demo.Progress{Out: streams.ErrOut}, Died: died, KubeAPIServer: program, Examples: true})
	if err != nil {
		return nil, cmp.Or(context.Cause(ctx), err)
	}
	if err := cluster.StartExamples(limited, names...); err != nil {
		return nil, errors.Join(cmp.Or(context.Cause(limited), err), cluster.Stop())
	}
	return cluster, nil
}
