package garbagecollector

import (
	"errors"
	"fmt"
	"time"

	"github.com/exeunt-io/exeunt/pkg/garbage/graph"
)

const (
	// slowRead is how long a live read takes whose kind counts as slow.
	slowRead = 2 * time.Second
	// liveTimeout bounds a live read. A conversion webhook may take 30 s.
	liveTimeout = 35 * time.Second
)

// errSlow means that the API server answers slowly for the kind, and that another worker reads it.
var errSlow = errors.New("the API server answers slowly for this kind; one object is read at a time")

// limitSlow reads an object of the kind. Of a kind that was slow, one object is read at a time, so that an
// aggregated API server or a webhook that does not answer keeps one worker, not all.
func (c *Collector) limitSlow(kind *graph.Kind, read func() (began time.Time, err error)) error {
	resource := kind.GroupResource()
	c.mu.Lock()
	reading, slow := c.slow[resource]
	if slow && !reading {
		c.slow[resource] = true
	}
	c.mu.Unlock()
	if reading {
		return fmt.Errorf("read %s: %w", resource, errSlow)
	}
	began, err := read()
	late := !began.IsZero() && c.Clock.Since(began) >= slowRead
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case late:
		c.slow[resource] = false
	case slow:
		delete(c.slow, resource)
	}
	return err
}
