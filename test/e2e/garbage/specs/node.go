package main

import (
	"context"
	"fmt"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/exeunt-io/exeunt/test/sandbox"
)

const (
	nodeName = "node-without-kubelet"
	// nodePods makes the specs create their maximum of 100 pods: they use half of a node's
	// room, less 10 pods.
	nodePods = "250"
	// renewal is the period of a kubelet.
	renewal = 10 * time.Second
)

// createNode creates a Ready node. The specs refuse to run without one, and ask for the number
// of its pods. No scheduler runs, so that pods stay Pending.
func (c *cluster) createNode(ctx context.Context) error {
	nodes := c.Plane.Client().CoreV1().Nodes()
	node, err := nodes.Create(ctx,
		&v1.Node{ObjectMeta: metav1.ObjectMeta{Name: nodeName, Labels: map[string]string{v1.LabelHostname: nodeName}}},
		metav1.CreateOptions{})
	if err != nil {
		return fmt.Errorf("create node: %w", err)
	}
	room := v1.ResourceList{v1.ResourcePods: resource.MustParse(nodePods), v1.ResourceCPU: resource.MustParse("64"),
		v1.ResourceMemory: resource.MustParse("256Gi")}
	node.Status = v1.NodeStatus{Capacity: room, Allocatable: room, Conditions: []v1.NodeCondition{{
		Type: v1.NodeReady, Status: v1.ConditionTrue, Reason: "KubeletReady", LastHeartbeatTime: metav1.Now(),
		LastTransitionTime: metav1.Now(),
	}}}
	if _, err := nodes.UpdateStatus(ctx, node, metav1.UpdateOptions{}); err != nil {
		return fmt.Errorf("set status of node: %w", err)
	}
	lease := &coordinationv1.Lease{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: v1.NamespaceNodeLease, Name: nodeName,
			OwnerReferences: []metav1.OwnerReference{{APIVersion: "v1", Kind: "Node", Name: nodeName, UID: node.UID}},
		},
		Spec: coordinationv1.LeaseSpec{RenewTime: &metav1.MicroTime{Time: time.Now()}},
	}
	if _, err := c.Plane.Client().CoordinationV1().Leases(v1.NamespaceNodeLease).
		Create(ctx, lease, metav1.CreateOptions{}); err != nil {
		return fmt.Errorf("create lease of node: %w", err)
	}
	return nil
}

// keepNode renews the lease of the node, as its kubelet would, until ctx ends.
func (c *cluster) keepNode(ctx context.Context) error {
	leases := c.Plane.Client().CoordinationV1().Leases(v1.NamespaceNodeLease)
	for {
		sandbox.Pause(ctx, renewal)
		if ctx.Err() != nil {
			return nil
		}
		lease, err := leases.Get(ctx, nodeName, metav1.GetOptions{})
		if err == nil {
			lease.Spec.RenewTime = &metav1.MicroTime{Time: time.Now()}
			_, err = leases.Update(ctx, lease, metav1.UpdateOptions{})
		}
		if err != nil && ctx.Err() == nil {
			return fmt.Errorf("renew lease of node: %w", err)
		}
	}
}
