package main

import (
	"context"
	"fmt"

	"github.com/exeunt-io/exeunt/test/sandbox"
)

// keepSwitching changes the side once a period, until ctx ends.
func (c *cluster) keepSwitching(ctx context.Context) error {
	for {
		sandbox.Pause(ctx, c.period)
		if ctx.Err() != nil {
			return nil
		}
		if err := c.change(context.WithoutCancel(ctx)); err != nil {
			return fmt.Errorf("change the side: %w", err)
		}
		c.switches++
	}
}

// change does what docs/garbage-collector.md says: ours starts before stock ends, and ends
// after stock has started.
func (c *cluster) change(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, startLimit)
	defer cancel()
	former := c.collector
	if former == nil {
		if err := c.startCollector(ctx); err != nil {
			return err
		}
	} else {
		c.collector = nil
	}
	if err := c.End(ctx, c.controllers); err != nil {
		return err
	}
	if err := c.startControllers(ctx); err != nil || former == nil {
		return err
	}
	return c.End(ctx, former)
}
