package faultproxy

import (
	"context"
	"fmt"
	"sync"
	"time"
)

// gate stops the traffic while it is shut. The zero value is open.
type gate struct {
	mu sync.Mutex
	// opened is closed when the gate opens; nil while the gate is open.
	opened chan struct{}
}

func (g *gate) shut() {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.opened == nil {
		g.opened = make(chan struct{})
	}
}

func (g *gate) open() {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.opened != nil {
		close(g.opened)
		g.opened = nil
	}
}

// wait returns once the gate is open, or an error once the context is done.
func (g *gate) wait(ctx context.Context) error {
	g.mu.Lock()
	opened := g.opened
	g.mu.Unlock()
	if opened == nil {
		return nil
	}
	select {
	case <-opened:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("wait for the end of the pause: %w", ctx.Err())
	}
}

// pass waits for the duration, or returns an error once the context is done.
func pass(ctx context.Context, duration time.Duration) error {
	timer := time.NewTimer(duration)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("delay: %w", ctx.Err())
	}
}
