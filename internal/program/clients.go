package program

import (
	"fmt"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/exeunt-io/exeunt/internal/answer"
	"github.com/exeunt-io/exeunt/pkg/controller/leader"
	"github.com/exeunt-io/exeunt/pkg/controller/partial"
)

// Clients are the API clients of one program. Each has its own rate limit, so that many
// events delay no write, and many writes do not delay the renewal of the lease.
type Clients struct {
	Objects, Events, Leases kubernetes.Interface
	// Config is for other kinds of clients.
	Config *rest.Config
	// Connection holds back writes of a leader after an interruption. All clients share it.
	Connection *leader.Connection

	agent string
	// failures has the last failed request of all clients.
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
	config.QPS, config.Burst = -1, 0 // no limit
	if o.QPS > 0 {
		config.QPS, config.Burst = o.QPS, o.Burst
	}
	clients := &Clients{agent: agent, failures: &failures{}, Connection: &leader.Connection{}}
	config.Wrap(clients.Connection.Wrap)
	config.Wrap(clients.failures.wrap)
	config.Wrap(answer.Unrepeated)
	clients.Config = rest.AddUserAgent(config, agent)
	// The purpose is the end of the user agent, as in For.
	for purpose, client := range map[string]*kubernetes.Interface{"": &clients.Objects, "events": &clients.Events,
		"leases": &clients.Leases} {
		if *client, err = clients.For(purpose); err != nil {
			return nil, err
		}
	}
	return clients, nil
}

// For returns another client with its own rate limit. The purpose ends its user agent, so
// that the audit log shows which part of the program sent a request.
func (c *Clients) For(purpose string) (kubernetes.Interface, error) {
	client, err := kubernetes.NewForConfig(c.configFor(purpose))
	if err != nil {
		return nil, fmt.Errorf("connect to the API server: %w", err)
	}
	return client, nil
}

func (c *Clients) configFor(purpose string) *rest.Config {
	agent := c.agent
	if purpose != "" {
		agent += "-" + purpose
	}
	return rest.AddUserAgent(rest.CopyConfig(c.Config), agent)
}

// Partial returns a client as For does. It decodes of each object only what the rules keep.
func (c *Clients) Partial(purpose string, rules partial.Rules) (kubernetes.Interface, error) {
	whole, err := c.For(purpose)
	if err != nil {
		return nil, err
	}
	return partial.NewClient(c.configFor(purpose), whole, rules)
}
