package runner

import (
	"context"
	"slices"
	"time"

	"github.com/exeunt-io/exeunt/pkg/teardown"
	"github.com/exeunt-io/exeunt/pkg/teardown/inventory"
)

// ending is what the lists at the end have shown.
type ending struct {
	// clean is how many of them in a row had nothing left, at is when the last one was read.
	clean int
	at    time.Time
}

// list reads all objects live.
func (r *Runner) list(ctx context.Context, options inventory.Options) (*inventory.Inventory, error) {
	found := inventory.New(options)
	sources, err := r.sources(ctx)
	if err != nil {
		return nil, err
	}
	return found, fill(ctx, found, sources)
}

// fill adds all objects, read live. The journals of our provisioner are Leases, and among them.
func fill(ctx context.Context, found *inventory.Inventory, sources []source) error {
	for _, source := range sources {
		if err := source.eachListed(ctx, func(object any) { found.Set(object) }); err != nil {
			return err
		}
	}
	return nil
}

// recheck reads all lists again, twice, with a quiet period between: a call in flight may still bring a volume, and
// watches may be late.
func (s *session) recheck(ctx context.Context, v view) error {
	if due := s.end.at.Add(s.Waits.Quiet); !s.end.at.IsZero() && v.now.Before(due) {
		s.wakeAt(due)
		return nil
	}
	object, _, _ := s.view()
	if s.confirmed != nil {
		object = s.confirmed
	}
	sources, err := s.sources(ctx)
	if err != nil {
		return err
	}
	if slices.ContainsFunc(sources, func(one source) bool { return !s.kinds[one.id()] }) { // installed since
		s.unwatched, s.end.clean = true, 0
		s.notify()
		return nil
	}
	found := inventory.New(s.options(object))
	s.mu.Lock()
	found.Inherit(s.inventory) // before the lists: a volume among them is the answer for its claim
	s.mu.Unlock()
	if err := fill(ctx, found, sources); err != nil {
		return err
	}
	now := s.Clock.Now()
	found.SetParticipants(participantsOf(object, nil))
	s.end.at = now
	if found.Work(now) == teardown.Quiet && found.Unmarked(now) == 0 {
		s.end.clean++
	} else { // the watches are behind
		s.end.clean = 0
	}
	s.wakeAt(now.Add(s.Waits.Quiet))
	if s.end.clean >= 2 {
		s.notify()
	}
	return nil
}
