package main

import (
	"context"

	v1 "k8s.io/api/core/v1"
	cloudprovider "k8s.io/cloud-provider"
)

// cloud has load balancers only.
type cloud struct {
	cloudprovider.Interface // nil: the service controller calls nothing else
	balancers               *balancers
	faults                  faults
}

// LoadBalancer returns the cloud itself.
func (c *cloud) LoadBalancer() (cloudprovider.LoadBalancer, bool) { return c, true }

// GetLoadBalancerName returns the name by UID that clouds have by default.
func (c *cloud) GetLoadBalancerName(_ context.Context, _ string, service *v1.Service) string {
	return cloudprovider.DefaultLoadBalancerName(service)
}

// GetLoadBalancer returns the address of the Service's load balancer, if it exists.
func (c *cloud) GetLoadBalancer(ctx context.Context, _ string, service *v1.Service) (*v1.LoadBalancerStatus, bool, error) {
	var status *v1.LoadBalancerStatus
	err := c.faults.apply(ctx, getBalancer, service, func() error {
		if found, exists := c.balancers.get(service.UID); exists {
			status = found.status()
		}
		return nil
	})
	return status, status != nil && err == nil, err
}

// EnsureLoadBalancer makes the load balancer of a Service.
func (c *cloud) EnsureLoadBalancer(ctx context.Context, cluster string, service *v1.Service, _ []*v1.Node,
) (*v1.LoadBalancerStatus, error) {
	var status *v1.LoadBalancerStatus
	err := c.faults.apply(ctx, ensureBalancer, service, func() error {
		made, err := c.balancers.ensure(c.GetLoadBalancerName(ctx, cluster, service), service)
		status = made.status()
		return err
	})
	if err != nil {
		return nil, err
	}
	return status, nil
}

// UpdateLoadBalancer does nothing: the load balancers know no nodes.
func (c *cloud) UpdateLoadBalancer(ctx context.Context, _ string, service *v1.Service, _ []*v1.Node) error {
	return c.faults.apply(ctx, updateBalancer, service, func() error { return nil })
}

// EnsureLoadBalancerDeleted deletes the load balancer of a Service, if it exists.
func (c *cloud) EnsureLoadBalancerDeleted(ctx context.Context, _ string, service *v1.Service) error {
	return c.faults.apply(ctx, deleteBalancer, service, func() error { return c.balancers.remove(service.UID) })
}
