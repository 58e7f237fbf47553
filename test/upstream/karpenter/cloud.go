package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"

	"sigs.k8s.io/controller-runtime/pkg/client"
	kwok "sigs.k8s.io/karpenter/kwok/cloudprovider"
	v1 "sigs.k8s.io/karpenter/pkg/apis/v1"
	"sigs.k8s.io/karpenter/pkg/cloudprovider"
	"sigs.k8s.io/karpenter/pkg/utils/nodeclaim"
)

// machineAnnotation is on a NodeClaim: the provider ID of the machine that it gets.
const machineAnnotation = "cloudmock.exeunt.io/machine"

// cloud is kwok's provider with the machines behind the socket. They run already, so nothing is launched.
type cloud struct {
	*kwok.CloudProvider
	claims client.Client
	http   http.Client
}

func newCloud(ctx context.Context, claims client.Client, socket string) *cloud {
	dial := func(ctx context.Context, _, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "unix", socket)
	}
	return &cloud{CloudProvider: kwok.NewCloudProvider(ctx, claims, nil), claims: claims,
		http: http.Client{Transport: &http.Transport{DialContext: dial, DisableKeepAlives: true}}}
}

// Create gives the claim the machine that it names.
func (c *cloud) Create(_ context.Context, claim *v1.NodeClaim) (*v1.NodeClaim, error) {
	id := claim.Annotations[machineAnnotation]
	if id == "" {
		return nil, fmt.Errorf("the NodeClaim has no annotation %s", machineAnnotation)
	}
	return machine(id), nil
}

// Delete turns the machine off: as in most clouds, disks that were attached to it stay.
func (c *cloud) Delete(ctx context.Context, claim *v1.NodeClaim) error {
	runs, err := c.call(ctx, "stop", claim.Status.ProviderID)
	if err == nil && !runs {
		return notFound()
	}
	return err
}

// Get returns the claim of a machine that runs.
func (c *cloud) Get(ctx context.Context, id string) (*v1.NodeClaim, error) {
	switch runs, err := c.call(ctx, "get", id); {
	case err != nil:
		return nil, err
	case !runs:
		return nil, notFound()
	}
	return machine(id), nil
}

// List returns the claims of the machines that run.
func (c *cloud) List(ctx context.Context) (running []*v1.NodeClaim, err error) {
	claims, err := nodeclaim.ListManaged(ctx, c.claims, c)
	if err != nil {
		return nil, err
	}
	for _, claim := range claims {
		one, err := c.Get(ctx, claim.Status.ProviderID)
		if cloudprovider.IgnoreNodeClaimNotFoundError(err) != nil {
			return nil, err
		}
		if one != nil {
			running = append(running, one)
		}
	}
	return running, nil
}

func machine(id string) *v1.NodeClaim {
	return &v1.NodeClaim{Status: v1.NodeClaimStatus{ProviderID: id}}
}

func notFound() error {
	return cloudprovider.NewNodeClaimNotFoundError(errors.New("the machine is off"))
}

// call sends the call to the socket, and reports whether the machine runs.
func (c *cloud) call(ctx context.Context, verb, id string) (runs bool, err error) {
	body, err := json.Marshal(map[string]string{"providerID": id, "node": id, "nodeUID": id})
	if err != nil {
		return false, err
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://cloud/v1/"+verb, bytes.NewReader(body))
	if err != nil {
		return false, err
	}
	response, err := c.http.Do(request)
	if err != nil {
		return false, err
	}
	defer response.Body.Close()
	var answer struct{ State, Error string }
	if err := json.NewDecoder(response.Body).Decode(&answer); err != nil {
		return false, fmt.Errorf("read answer of the cloud: %w", err)
	}
	if answer.Error != "" {
		return false, errors.New(answer.Error)
	}
	return answer.State == "Running" || answer.State == "Stopping", nil
}
