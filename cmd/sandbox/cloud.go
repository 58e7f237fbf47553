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

// cloudHint are commands to copy into a terminal. Its verb stands for the log of the machines.
const cloudHint = `The cluster has simulated nodes mock-0 and so on, whose machines node-terminator stops, and pods in the
namespace shop: three under one budget, one that ignores SIGTERM, one that nobody may disrupt, one with a disk.
What happens to pods, disks and machines is in %s
Set KUBECONFIG in another terminal and try:

kubectl label node mock-0 exeunt.io/termination-grace-period=1m
kubectl exeunt forecast node/mock-0         # what its pods would miss
kubectl delete node mock-0 --wait=false     # drains, keeps budgets, and ends after a minute
kubectl exeunt why node/mock-0              # what it waits for

Ctrl-C stops everything and removes it.
`

// cloudNamespace has the pods on the simulated nodes.
const cloudNamespace = "shop"

// errCloudFlags: the cluster has no volumes of csimock.
var errCloudFlags = errors.New("--cloud-nodes runs no csimock and no real node: leave out --faults, --feature-gates, " +
	"--node and --graceful-deletion")

// runCloud runs a cluster of simulated nodes until ctx ends.
func (f sandboxFlags) runCloud(ctx context.Context, streams genericiooptions.IOStreams) error {
	switch {
	case f.cloudNodes < 1:
		return errors.New("--cloud-nodes must be at least 1")
	case f.faults != "" || len(f.gates) > 0 || f.node || f.graceful:
		return errCloudFlags
	}
	if err := demo.CheckCloud(sandbox.Binaries{Dir: f.binDir}); err != nil {
		return err
	}
	guarded, end := context.WithCancelCause(ctx)
	defer end(nil)
	cluster, log, err := f.startCloud(guarded, streams,
		func(err error) { end(fmt.Errorf("%w: %w", errProgramEnded, err)) })
	if err != nil {
		return err
	}
	fmt.Fprintf(streams.Out, "export KUBECONFIG=%s\n", cluster.Kubeconfig())
	fmt.Fprintf(streams.ErrOut, cloudHint, log)
	<-guarded.Done()
	err = cluster.Stop()
	if cause := context.Cause(guarded); errors.Is(cause, errProgramEnded) {
		return errors.Join(cause, err)
	}
	return err
}

// startCloud starts the cluster, and returns the log of its machines. If ctx ends before, the error is the cause.
func (f sandboxFlags) startCloud(ctx context.Context, streams genericiooptions.IOStreams,
	died func(error)) (*demo.Cluster, string, error) {
	limited, cancel := context.WithTimeoutCause(ctx, startTimeout,
		fmt.Errorf("the cluster was not ready within %s", startTimeout))
	defer cancel()
	cluster, err := demo.StartCluster(limited, demo.ClusterConfig{Binaries: sandbox.Binaries{Dir: f.binDir}, Keep: f.keep,
		Progress: demo.Progress{Out: streams.ErrOut}, Died: died})
	if err != nil {
		return nil, "", cmp.Or(context.Cause(ctx), err)
	}
	cloud, err := cluster.StartCloud(limited, f.cloudNodes)
	fit := map[string]string{"side": cloudNamespace, "pool": cloudNamespace}
	for i := 0; i < f.cloudNodes && err == nil; i++ {
		err = cluster.LabelNode(limited, fmt.Sprintf("mock-%d", i), fit)
	}
	if err == nil {
		err = cluster.ApplyWorkloads(limited, cloudNamespace)
	}
	if err != nil {
		return nil, "", errors.Join(cmp.Or(context.Cause(limited), err), cluster.Stop())
	}
	return cluster, cloud.EventLog(), nil
}

// balancerHint are commands to copy into a terminal, for --cloud. Its verb stands for the file with the load balancers.
const balancerHint = `
kubectl create service loadbalancer web --tcp=80
kubectl get service web   # repeat until it has an address
cat %s                    # a line for each load balancer
kubectl delete service web
`

// errBalancerFlags: only the cluster with csimock has load balancers.
var errBalancerFlags = errors.New("--cloud adds to the cluster with csimock: leave out --cloud-nodes, --node and " +
	"--graceful-deletion")

// startBalancers starts load balancers and snapshots, and returns what can be tried with them.
func startBalancers(ctx context.Context, cluster *demo.Cluster) (hint string, err error) {
	state, err := cluster.StartBalancersAndSnapshots(ctx)
	return fmt.Sprintf(balancerHint, state), err
}
