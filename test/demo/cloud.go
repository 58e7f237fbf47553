package demo

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/exeunt-io/exeunt/deploy"
	"github.com/exeunt-io/exeunt/test/sandbox"
)

// StartCloud starts machines that are simulated nodes, all loops of kube-controller-manager, and node-terminator, which
// stops the machines.
func (c *Cluster) StartCloud(ctx context.Context, nodes int) (cloud *sandbox.Cloud, err error) {
	what := fmt.Sprintf("starting %d machines, kube-controller-manager and node-terminator", nodes)
	err = c.config.Progress.Do(ctx, what, func(ctx context.Context) error {
		if err := c.applyWithoutPods(ctx); err != nil {
			return err
		}
		if _, err := c.sandbox.StartNodeLoops(ctx); err != nil {
			return err
		}
		if cloud, err = c.sandbox.StartCloud(ctx, nodes); err != nil {
			return err
		}
		if _, err := c.sandbox.StartNodeTerminator(ctx, sandbox.Controller{
			Args: []string{"--leader-elect=false", "--instances=socket", "--instances-socket=" + cloud.Socket}}); err != nil {
			return err
		}
		return c.awaitUntainted(ctx)
	})
	return cloud, err
}

// awaitUntainted waits until pods can be bound to all nodes: a new Node has the taint not-ready.
func (c *Cluster) awaitUntainted(ctx context.Context) error {
	return wait.PollUntilContextCancel(ctx, 100*time.Millisecond, true, func(ctx context.Context) (bool, error) {
		nodes, err := c.Client().CoreV1().Nodes().List(ctx, metav1.ListOptions{})
		if err != nil {
			return false, fmt.Errorf("list nodes: %w", err)
		}
		return !slices.ContainsFunc(nodes.Items, func(n v1.Node) bool { return len(n.Spec.Taints) > 0 }), nil
	})
}

// applyWithoutPods applies the manifests of node-terminator. All programs run beside the simulated nodes: their
// Deployments would only be pods that look like them.
func (c *Cluster) applyWithoutPods(ctx context.Context) error {
	if err := sandbox.Apply(ctx, c.sandbox.Plane.RESTConfig(), deploy.NodeTerminator); err != nil {
		return err
	}
	err := c.Client().AppsV1().Deployments(deploy.Namespace).DeleteCollection(ctx, metav1.DeleteOptions{},
		metav1.ListOptions{})
	if err != nil {
		return fmt.Errorf("delete deployments: %w", err)
	}
	return nil
}

// LabelNode sets labels of a node.
func (c *Cluster) LabelNode(ctx context.Context, node string, labels map[string]string) error {
	body, err := json.Marshal(map[string]any{"metadata": map[string]any{"labels": labels}})
	if err == nil {
		_, err = c.Client().CoreV1().Nodes().Patch(ctx, node, types.MergePatchType, body, metav1.PatchOptions{})
	}
	if err != nil {
		return fmt.Errorf("label node %s: %w", node, err)
	}
	return nil
}

// StartBalancersAndSnapshots starts what a cluster has in a cloud beside volumes, once the driver runs, and the loops of
// kube-controller-manager for workloads. It returns the file with a line for each load balancer.
func (c *Cluster) StartBalancersAndSnapshots(ctx context.Context) (state string, err error) {
	const what = "starting cloud-controller, snapshot-controller, csi-snapshotter and kube-controller-manager"
	err = c.config.Progress.Do(ctx, what, func(ctx context.Context) error {
		if _, err := c.sandbox.StartTeardownLoops(ctx, false); err != nil {
			return err
		}
		balancers, err := c.sandbox.StartBalancersAndSnapshots(ctx, c.driver)
		if err == nil {
			state = balancers.State()
		}
		return err
	})
	return state, err
}

// CheckCloud returns an error if a program is missing that StartCloud starts.
func CheckCloud(binaries sandbox.Binaries) error {
	for _, name := range []string{"node-terminator", "cloudmock"} {
		if _, err := binaries.Path(name); err != nil {
			return err
		}
	}
	_, err := binaries.UpstreamPath("kube-controller-manager")
	return err
}
