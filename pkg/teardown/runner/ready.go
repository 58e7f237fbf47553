package runner

import (
	"cmp"
	"context"
	"strings"
	"time"

	"k8s.io/klog/v2"

	"github.com/exeunt-io/exeunt/pkg/alive"
	"github.com/exeunt-io/exeunt/pkg/teardown"
)

// readiness is the last check of whether something refuses the teardown.
type readiness struct {
	checked    bool
	generation int64
	at         time.Time
	// refusals are the problems that refuse.
	refusals []teardown.Problem
}

// notInForce is the problem of a freeze that does not get into force.
func (f *freeze) notInForce() teardown.Problem {
	return teardown.Problem{Reason: "FreezeNotInForce", Refuses: true,
		Text: "the policy that refuses new disks and load balancers does not get into force: " + cmp.Or(f.refusal, "somebody removes it")}
}

// readinessOf checks an armed or deleted Alive before the start. The check is repeated after each change of Alive, and
// from time to time while something refuses.
func (s *session) readinessOf(ctx context.Context, object *alive.Alive) teardown.Readiness {
	if object.IsStarted() && s.record.planned {
		return teardown.Prepared
	}
	if !s.wanted(object) || object.IsProtected() {
		return teardown.Unchecked
	}
	if failed := s.freeze.failed; !failed.IsZero() && failed.Equal(wordIn(object).at) {
		s.ready.refusals = []teardown.Problem{s.freeze.notInForce()}
		return teardown.Unready
	}
	now, known := s.Clock.Now(), s.ready
	stale := !known.checked || known.generation != object.Generation ||
		len(known.refusals) > 0 && now.Sub(known.at) >= s.Waits.Check
	if stale {
		s.check(ctx, object, now)
	}
	switch {
	case len(s.ready.refusals) > 0:
		s.wakeAt(s.ready.at.Add(s.Waits.Check))
		return teardown.Unready
	case !s.ready.checked:
		return teardown.Unchecked
	}
	return teardown.Prepared
}

func (s *session) check(ctx context.Context, object *alive.Alive, now time.Time) {
	s.ready = readiness{generation: object.Generation, at: now}
	problems, err := s.Check(ctx, object)
	if err != nil { // what cannot be read refuses (#66)
		klog.FromContext(ctx).Error(err, "The cluster could not be checked")
		problems = []teardown.Problem{{Reason: "Unreadable", Text: err.Error(), Refuses: true}}
	}
	s.ready.checked = true
	for _, problem := range problems {
		if problem.Refuses {
			s.ready.refusals = append(s.ready.refusals, problem)
		}
	}
}

// text says what refuses.
func (r readiness) text() string {
	var all []string
	for _, problem := range r.refusals {
		all = append(all, problem.Text)
	}
	return strings.Join(all, "; ")
}
