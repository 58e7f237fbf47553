package cluster

import (
	"context"
	"errors"
	"fmt"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/exeunt-io/exeunt/deploy"
)

// errSameLeader: no other pod leads yet.
var errSameLeader = errors.New("no other pod leads yet")

// EndLeader ends the process whose loops bind, release and protect volumes, and waits until
// another one works: the pod of pv-controller that leads is deleted; kube-controller-manager
// is killed and started again.
func (c *Cluster) EndLeader(ctx context.Context) error {
	if c.config.Side == Upstream {
		if err := c.running.Kill(c.loops); err != nil {
			return err
		}
		return c.startLoops(ctx)
	}
	leader, err := c.leader(ctx)
	if err != nil {
		return err
	}
	if err := c.Client.CoreV1().Pods(deploy.Namespace).Delete(ctx, leader, metav1.DeleteOptions{}); err != nil {
		return fmt.Errorf("delete the leader's pod: %w", err)
	}
	return c.Await(ctx, "another pod than "+leader+" leads", func(ctx context.Context) error {
		now, err := c.leader(ctx)
		if err == nil && now == leader {
			err = errSameLeader
		}
		return err
	})
}

// leader returns the pod of pv-controller that leads. The holder of the Lease begins with
// the name of the pod.
func (c *Cluster) leader(ctx context.Context) (string, error) {
	lease, err := c.Client.CoordinationV1().Leases(metav1.NamespaceSystem).
		Get(ctx, deploy.PVController, metav1.GetOptions{})
	if err != nil {
		return "", fmt.Errorf("read Lease of the leader: %w", err)
	}
	if lease.Spec.HolderIdentity == nil || *lease.Spec.HolderIdentity == "" {
		return "", errors.New("the Lease has no holder")
	}
	pod, _, _ := strings.Cut(*lease.Spec.HolderIdentity, "_")
	return pod, nil
}
