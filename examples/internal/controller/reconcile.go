package controller

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"

	"github.com/exeunt-io/exeunt/examples/internal/guest"
	"github.com/exeunt-io/exeunt/internal/answer"
	"github.com/exeunt-io/exeunt/pkg/graceful/deadline"
)

// subject is an object and what was observed of its guest.
type subject struct {
	key    string
	uid    types.UID
	object *unstructured.Unstructured // nil if it is gone
	// confirmed: the object was read from the API server just now.
	confirmed bool

	deletion deadline.Deletion
	process  *guest.Process // of a running guest
	record   guest.Record
	problem  error // why the guest is unknown
}

// requestLimit bounds the requests for one object: an API server that does not answer is asked again.
const requestLimit = 10 * time.Second

// reconcile brings the object of the key, and guests of objects that had this key, to their end. It reports whether a
// guest was started.
func (c *Controller) reconcile(ctx context.Context, key string) (started bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, requestLimit)
	defer cancel()
	object := c.cached(key)
	for _, known := range c.dir.Records() {
		if known.Key == key && (object == nil || known.UID != object.GetUID()) {
			_, gone := c.pursue(ctx, subject{key: key, uid: known.UID})
			err = errors.Join(err, gone)
		}
	}
	if object == nil {
		c.stopTimer(key)
		return false, err
	}
	started, more := c.pursue(ctx, subject{key: key, uid: object.GetUID(), object: object})
	return started, errors.Join(err, more)
}

// reportAgain is the time between two events about an object that only an administrator can help.
const reportAgain = 30 * time.Minute

// steps bounds the actions for one object in a row.
const steps = 10

// pursue observes, decides and executes until there is nothing to do but to wait.
func (c *Controller) pursue(ctx context.Context, s subject) (started bool, err error) {
	for range steps {
		decision := Decide(c.observe(&s, time.Now()))
		switch decision.Action {
		case Wait:
			return false, nil
		case Start: // the end of the guest brings the key back, later each time
			return true, c.start(s)
		case Report: // again later: events are dropped after an hour
			c.report(s, decision.Reason)
			c.queue.AddAfter(s.key, reportAgain)
			return false, nil
		default:
			if s, err = c.execute(ctx, s, decision); err != nil {
				return false, err
			}
		}
	}
	return false, errors.New("the object changes too often")
}

// observe reads the state of the object and its guest, and sets the timer to the deadline.
func (c *Controller) observe(s *subject, now time.Time) State {
	state := State{Confirmed: s.confirmed, Deletion: Gone}
	if s.object != nil {
		state.Finalizer = slices.Contains(s.object.GetFinalizers(), c.kind.Finalizer)
		s.deletion = deadline.Of(s.object)
		state.Deletion = c.deletionOf(s, now)
	}
	state.Guest = c.guestOf(s)
	switch {
	case s.record.Deadline.IsZero():
	case s.record.Deadline.Equal(s.end()):
		state.Request = Asked
	default:
		state.Request = AskedForOther
	}
	return state
}

// deletionOf sets the timer of the object to what remains. The deadline may have moved since the timer was set.
func (c *Controller) deletionOf(s *subject, now time.Time) Deletion {
	remaining := s.deletion.Remaining(now, s.byDefault())
	if s.deletion.Kind() != deadline.NotDeleted && remaining > 0 {
		c.setTimer(s.key, remaining)
		return InGrace
	}
	c.stopTimer(s.key)
	switch {
	case s.deletion.Forced():
		return Forced
	case s.deletion.Kind() == deadline.NotDeleted:
		return NotDeleted
	}
	return Passed
}

func (c *Controller) guestOf(s *subject) Guest {
	var recorded bool
	if s.record, recorded = c.dir.Record(s.uid); !recorded {
		return NoRecord
	}
	switch s.process, s.problem = c.process(s.key, s.uid); {
	case s.problem != nil:
		return Unknown
	case s.process == nil:
		return Off
	}
	if !s.record.Started { // kill -9, a full disk or a version without this field kept it from being recorded
		s.record.Started = true
		c.note(*s)
	}
	return Running
}

// fallback is the grace period of a plain deletion if the object has none.
const fallback = 30 * time.Second

// byDefault returns the grace period of a plain deletion.
func (s *subject) byDefault() time.Duration {
	seconds, found, err := unstructured.NestedInt64(s.object.Object, "spec", "terminationGracePeriodSeconds")
	if !found || err != nil {
		return fallback
	}
	return time.Duration(min(max(seconds, 0), deadline.MaxSeconds)) * time.Second
}

// end returns the deadline, in whole seconds as in the record.
func (s *subject) end() time.Time {
	if s.object == nil {
		return time.Time{}
	}
	return s.deletion.Deadline(s.byDefault())
}

// confirm reads the object live: nothing is ended or started because of what a cache says.
func (c *Controller) confirm(ctx context.Context, s subject) (subject, error) {
	namespace, name, err := cache.SplitMetaNamespaceKey(s.key)
	if err != nil {
		return s, err
	}
	get := func(ctx context.Context, name string, options metav1.GetOptions) (*unstructured.Unstructured, error) {
		return c.client.Namespace(namespace).Get(ctx, name, options)
	}
	live, exists, err := answer.Get(ctx, name, get)
	if err != nil {
		return s, fmt.Errorf("read the object: %w", err)
	}
	s.confirmed, s.object = true, nil
	if exists && live.GetUID() == s.uid {
		s.object = live
		if c.elsewhere(live) {
			// The directory was copied from another host, or the host was renamed. The guest may run there: a second
			// one would write to its disk, and without the finalizer the first one would be left behind.
			return s, fmt.Errorf("the state directory has a guest of it, and the object belongs to another host than %q", c.host)
		}
	}
	return s, nil
}
