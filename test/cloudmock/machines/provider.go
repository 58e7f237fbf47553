package machines

import (
	"context"
	"fmt"
	"net/http"
	"time"

	"github.com/exeunt-io/exeunt/pkg/nodeterminator/instances"
)

// headerTimeout is how long a client may take to send the header of a request.
const headerTimeout = 10 * time.Second

// serve serves the socket until ctx ends.
func (c *Cloud) serve(ctx context.Context) error {
	if c.config.Socket == "" {
		<-ctx.Done()
		return nil
	}
	listener, err := instances.Listen(c.config.Socket)
	if err != nil {
		return err
	}
	server := &http.Server{Handler: instances.Handler(provider{c}), ReadHeaderTimeout: headerTimeout}
	failed := make(chan error, 1)
	go func() { failed <- server.Serve(listener) }()
	select {
	case err := <-failed:
		return fmt.Errorf("serve socket: %w", err)
	case <-ctx.Done():
		return server.Close()
	}
}

// provider answers the requests for machines.
type provider struct{ cloud *Cloud }

var _ instances.Provider = provider{}

// Get returns the state of the machine.
func (p provider) Get(ctx context.Context, i instances.Instance) (instances.State, error) {
	return p.answer(ctx, i, func(m *machine) (instances.State, error) { return m.state(), nil })
}

// Stop turns the machine off.
func (p provider) Stop(ctx context.Context, i instances.Instance) (instances.State, error) {
	return p.answer(ctx, i, func(m *machine) (instances.State, error) {
		fault, delayed := m.faults[StopTakes]
		switch {
		case p.cloud.config.StopUnsupported:
			return "", &instances.Error{Message: "these machines cannot be stopped", Unsupported: true}
		case m.has(StopFails):
			return "", &instances.Error{Message: "machine " + m.name + " cannot be stopped"}
		case m.power != instances.Running:
		case m.has(Lies):
			m.said = instances.Off
		case delayed:
			m.power = instances.Stopping
			p.cloud.after(fault.wait(), m.turnOff)
		default:
			m.turnOff()
		}
		return m.state(), nil
	})
}

// Delete deletes the machine, with the disks that are attached to it, as some clouds do.
func (p provider) Delete(ctx context.Context, i instances.Instance) (instances.State, error) {
	return p.answer(ctx, i, func(m *machine) (instances.State, error) {
		if m.has(Lies) {
			m.said = instances.Gone
		} else {
			m.remove(true)
		}
		return m.state(), nil
	})
}

// state returns what the socket says of the machine. The caller holds the lock.
func (m *machine) state() instances.State {
	if m.has(Lies) && m.said != "" {
		return m.said
	}
	return m.power
}

// answer calls act under the lock, unless the machine is of another cluster, or a fault refuses the request.
func (p provider) answer(ctx context.Context, i instances.Instance, act func(*machine) (instances.State, error)) (
	instances.State, error) {
	m := p.cloud.byProviderID(i.ProviderID)
	if m == nil {
		return instances.Gone, nil
	}
	if err := p.delay(ctx, m); err != nil {
		return "", err
	}
	p.cloud.mu.Lock()
	defer p.cloud.mu.Unlock()
	switch fault, throttled := m.faults[Throttled]; {
	case throttled:
		return "", &instances.Error{Message: "too many requests", RetryAfter: fault.wait()}
	case m.has(Foreign):
		return instances.Foreign, nil
	}
	return act(m)
}

// delay waits as long as a slow answer takes.
func (p provider) delay(ctx context.Context, m *machine) error {
	p.cloud.mu.Lock()
	fault, slow := m.faults[Slow]
	p.cloud.mu.Unlock()
	if !slow {
		return nil
	}
	select {
	case <-time.After(fault.wait()):
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// byProviderID returns the machine, or nil.
func (c *Cloud) byProviderID(id string) *machine {
	for _, m := range c.machines {
		if m.providerID == id {
			return m
		}
	}
	return nil
}
