package garbagecollector

import (
	"context"
	"errors"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"

	"github.com/exeunt-io/exeunt/pkg/garbage/graph"
)

const (
	// slowAnswer is how long a request takes whose kind counts as slow.
	slowAnswer = 2 * time.Second
	// liveTimeout and writeTimeout bound a live read and a write. A webhook may take 30 s.
	liveTimeout, writeTimeout = 35 * time.Second, 35 * time.Second
)

// errSlow means that the API server answers slowly for the kind, and that another worker awaits an answer.
var errSlow = errors.New("the API server answers slowly for this kind; one request is sent at a time")

// limitSlow sends a request for an object of the kind. The resources whose last answer was slow are in the map, with
// whether a request is under way: of such a kind, one is sent at a time, so that an aggregated API server or a
// webhook that does not answer keeps one worker, not all. A request that is not sent says nothing: send returns no
// time then.
func (c *Collector) limitSlow(slow map[schema.GroupResource]bool, kind *graph.Kind, send func() (began time.Time, err error)) error {
	resource := kind.GroupResource()
	c.mu.Lock()
	sending, limited := slow[resource]
	if limited && !sending {
		slow[resource] = true
	}
	c.mu.Unlock()
	if sending {
		return fmt.Errorf("send a request for %s: %w", resource, errSlow)
	}
	began, err := send()
	tookLong := !began.IsZero() && c.Clock.Since(began) >= slowAnswer
	c.mu.Lock()
	defer c.mu.Unlock()
	_, known := slow[resource]
	switch {
	case limited && began.IsZero(), tookLong && (limited || !known): // otherwise another worker has the slot
		slow[resource] = false
	case limited && !tookLong:
		delete(slow, resource)
	}
	return err
}

// send sends a write without retries, since the judgement would be older than it may be. The outcome of a write that
// is not answered in time is unknown, and the object judged anew.
func (c *Collector) send(ctx context.Context, request *rest.Request) rest.Result {
	ctx, cancel := context.WithTimeout(ctx, writeTimeout)
	defer cancel()
	return request.MaxRetries(0).Do(ctx)
}
