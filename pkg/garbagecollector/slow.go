package garbagecollector

import (
	"errors"
	"fmt"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/clock"

	"github.com/exeunt-io/exeunt/pkg/garbage/graph"
)

// slowAnswer is how long a request takes whose kind counts as slow.
const slowAnswer = 2 * time.Second

// errSlow means that the API server answers slowly for the kind, and that another worker awaits an answer.
var errSlow = errors.New("the API server answers slowly for this kind; one request is sent at a time")

// slowKinds are the kinds whose last answer was slow. Of such a kind, one request is sent at a time, so that an
// aggregated API server or a webhook that does not answer keeps one worker, not all.
type slowKinds struct {
	clock clock.PassiveClock

	// The mutex guards the map, and is not held while a request is sent.
	mu sync.Mutex
	// sending has an entry for each slow resource: whether a request is under way.
	sending map[schema.GroupResource]bool
}

func newSlowKinds(clock clock.PassiveClock) *slowKinds {
	return &slowKinds{clock: clock, sending: map[schema.GroupResource]bool{}}
}

// limit sends a request for an object of the kind, unless another one for the kind is under way and the kind is slow.
// A request that is not sent says nothing: send returns no time then.
func (s *slowKinds) limit(kind *graph.Kind, send func() (began time.Time, err error)) error {
	resource := kind.GroupResource()
	s.mu.Lock()
	sending, limited := s.sending[resource]
	if limited && !sending {
		s.sending[resource] = true
	}
	s.mu.Unlock()
	if sending {
		return fmt.Errorf("send a request for %s: %w", resource, errSlow)
	}
	began, err := send()
	tookLong := !began.IsZero() && s.clock.Since(began) >= slowAnswer
	s.mu.Lock()
	defer s.mu.Unlock()
	_, known := s.sending[resource]
	switch {
	case limited && began.IsZero(), tookLong && (limited || !known): // otherwise another worker has the slot
		s.sending[resource] = false
	case limited && !tookLong:
		delete(s.sending, resource)
	}
	return err
}
