package program

import (
	"fmt"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
)

// Clients are the clients of one program. Each has a budget of its own, so that
// a flood of events does not hold up a write, nor a write the lease.
type Clients struct {
	Objects, Events, Leases kubernetes.Interface
	// Config is for clients of another kind.
	Config *rest.Config

	agent    string
	failures *failures
}

// Clients connects to the API server as the user agent.
func (o *Options) Clients(agent string) (*Clients, error) {
	config, err := o.restConfig()
	if err != nil {
		return nil, err
	}
	config.ContentType = o.ContentType
	config.AcceptContentTypes = o.ContentType + "," + runtime.ContentTypeJSON
	config.QPS, config.Burst = -1, 0
	if o.QPS > 0 {
		config.QPS, config.Burst = o.QPS, o.Burst
	}
	clients := &Clients{agent: agent, failures: &failures{}}
	config.Wrap(clients.failures.watch)
	clients.Config = rest.AddUserAgent(config, agent)
	for purpose, client := range map[string]*kubernetes.Interface{"": &clients.Objects, "events": &clients.Events, "leases": &clients.Leases} {
		if *client, err = clients.For(purpose); err != nil {
			return nil, err
		}
	}
	return clients, nil
}

// ClientsOf returns the clients of a program that uses one client, with one budget, for
// every purpose.
func ClientsOf(client kubernetes.Interface) *Clients {
	return &Clients{Objects: client, Events: client, Leases: client, Config: &rest.Config{}, failures: &failures{}}
}

// For returns another client, with a budget of its own. The purpose is the end of
// its user agent, by which an administrator tells in the audit log who asks.
func (c *Clients) For(purpose string) (kubernetes.Interface, error) {
	agent := c.agent
	if purpose != "" {
		agent += "-" + purpose
	}
	client, err := kubernetes.NewForConfig(rest.AddUserAgent(rest.CopyConfig(c.Config), agent))
	if err != nil {
		return nil, fmt.Errorf("connect to the API server: %w", err)
	}
	return client, nil
}
