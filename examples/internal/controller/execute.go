package controller

import (
	"context"
	"fmt"
	"slices"
	"syscall"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/exeunt-io/exeunt/examples/internal/guest"
	"github.com/exeunt-io/exeunt/internal/answer"
	"github.com/exeunt-io/exeunt/pkg/graceful/deadline"
	"github.com/exeunt-io/exeunt/pkg/patch"
)

// execute carries out one action, and returns the object as it is then.
func (c *Controller) execute(ctx context.Context, s subject, decision Decision) (subject, error) {
	if decision.Action == Confirm {
		return c.confirm(ctx, s)
	}
	s.confirmed = false
	switch decision.Action {
	case AddFinalizer:
		return c.addFinalizer(ctx, s)
	case RequestShutdown:
		return s, c.requestShutdown(s)
	case NoteDeadline:
		return s, c.noteDeadline(s)
	case PowerOff:
		return s, c.powerOff(s, decision.Reason)
	case RemoveFinalizer:
		return c.removeFinalizer(ctx, s)
	case Forget:
		return s, c.dir.Remove(s.uid)
	default: // Retry
		c.warn(s, string(decision.Reason), s.problem)
		return s, s.problem
	}
}

// addFinalizer makes the record first: an object with the finalizer and without a record has a guest elsewhere.
func (c *Controller) addFinalizer(ctx context.Context, s subject) (subject, error) {
	if _, recorded := c.dir.Record(s.uid); !recorded {
		if err := c.dir.Save(guest.Record{UID: s.uid, Key: s.key}); err != nil {
			return s, err
		}
	}
	return c.edit(ctx, s, append(s.object.GetFinalizers(), c.kind.Finalizer))
}

// removeFinalizer sends an event about how a guest that has run ended, and removes the finalizer.
func (c *Controller) removeFinalizer(ctx context.Context, s subject) (subject, error) {
	if s.record.Started && !s.record.Reported {
		how := "clean: the guest ended by itself"
		if s.record.Forced != "" {
			how = "forced: " + s.record.Forced
		}
		c.tell(s, "PoweredOff", how)
		s.record.Reported = true
		c.note(s)
	}
	own := func(name string) bool { return name == c.kind.Finalizer }
	return c.edit(ctx, s, slices.DeleteFunc(s.object.GetFinalizers(), own))
}

// edit replaces the finalizers if they are as they were observed, and returns the object, without one if it is gone.
func (c *Controller) edit(ctx context.Context, s subject, after []string) (subject, error) {
	const path = "/metadata/finalizers"
	before, change := s.object.GetFinalizers(), patch.For(s.object)
	if len(before) > 0 {
		change.Test(path, before)
	} else { // a JSON patch cannot test that a field is absent
		change.Test("/metadata/resourceVersion", s.object.GetResourceVersion())
	}
	body, err := change.Set(path, after).Bytes()
	if err != nil {
		return s, err
	}
	written, err := c.client.Namespace(s.object.GetNamespace()).Patch(ctx, s.object.GetName(), types.JSONPatchType, body,
		metav1.PatchOptions{})
	if err != nil {
		return c.refused(ctx, s, fmt.Errorf("change finalizers: %w", err))
	}
	s.object = written
	if written.GetDeletionTimestamp() != nil && len(written.GetFinalizers()) == 0 {
		s.object = nil
	}
	return s, nil
}

// refused returns the object as it is now if it is gone or has changed. Only a read tells: an admission webhook denies with
// the code of its choice.
func (c *Controller) refused(ctx context.Context, s subject, refusal error) (subject, error) {
	if answer.NeedsRead(refusal) {
		live, err := c.confirm(ctx, s)
		if err != nil {
			return s, fmt.Errorf("%s: %w", refusal.Error(), err)
		}
		if live.object == nil || live.object.GetResourceVersion() != s.object.GetResourceVersion() {
			return live, nil
		}
	}
	if answer.IsDefinite(refusal) {
		c.warn(s, "WriteRefused", refusal)
	}
	return s, refusal
}

// start begins with an empty record: with that of an earlier deletion, which a restored etcd took back, the guest would not
// be asked to shut down in the next one.
func (c *Controller) start(s subject) error {
	fresh := guest.Record{UID: s.uid, Key: s.key, Started: s.record.Started}
	if s.record != fresh {
		if err := c.dir.Save(fresh); err != nil {
			return err
		}
	}
	command, err := c.kind.Command(s.object)
	var process *guest.Process
	if err == nil {
		process, err = c.dir.Start(s.uid, command)
	}
	if err != nil {
		c.warn(s, "StartFailed", err)
		return err
	}
	c.follow(s.key, s.uid, process)
	if !fresh.Started {
		fresh.Started = true
		err = c.dir.Note(fresh)
	}
	c.tell(s, "Started", fmt.Sprintf("the guest is process %d", process.PID))
	return err
}

// requestShutdown is recorded after the signal: a guest that is asked twice is better than one that is never asked.
func (c *Controller) requestShutdown(s subject) error {
	if err := s.process.Signal(syscall.SIGTERM); err != nil {
		return err
	}
	whose := "spec.terminationGracePeriodSeconds"
	if s.deletion.Kind() == deadline.Graceful {
		whose = "the grace period of the deletion"
	}
	c.tell(s, "ShutdownRequested", fmt.Sprintf("process %d has until %s by %s", s.process.PID, text(s.end()), whose))
	s.record.Deadline = s.end()
	c.note(s)
	return nil
}

func (c *Controller) noteDeadline(s subject) error {
	c.tell(s, "DeadlineMoved", fmt.Sprintf("from %s to %s", text(s.record.Deadline), text(s.end())))
	s.record.Deadline = s.end()
	c.note(s)
	return nil
}

// powerOff is recorded before the signals, so that the event is right after kill -9, too.
func (c *Controller) powerOff(s subject, reason Reason) error {
	select {
	case <-s.process.Ended():
		return nil
	default:
	}
	s.record.Forced = "the guest ran until its deadline " + text(s.end())
	if reason == ForceRequested {
		s.record.Forced = "the deletion is forced"
	}
	c.note(s)
	err := s.process.PowerOff(c.kind.PowerOff...)
	if err != nil {
		c.warn(s, "PowerOffFailed", err)
	}
	return err
}

// note keeps the record. A full disk must keep neither the guest that has filled it nor the object.
func (c *Controller) note(s subject) {
	if err := c.dir.Note(s.record); err != nil {
		c.log.Printf("%s: %v", s.key, err)
	}
}

// report sends an event about what only an administrator can change.
func (c *Controller) report(s subject, reason Reason) {
	if reason == GuestLeft {
		c.log.Printf("%s is gone, another client has removed its finalizer, and its guest runs: end process %d if it is not needed",
			s.key, s.process.PID)
		return
	}
	c.warn(s, string(reason), fmt.Errorf("the object has the finalizer %s, and the state directory of host %q has no guest of it: "+
		"start the controller with the right --state-dir, or remove the finalizer once the guest has ended", c.kind.Finalizer, c.host))
	c.log.Printf("%s: no guest of it is in the state directory, see the events of the object", s.key)
}

func (c *Controller) tell(s subject, reason, message string) {
	c.log.Printf("%s: %s: %s", s.key, reason, message)
	c.events.Event(s.object, v1.EventTypeNormal, reason, message)
}

// warn sends an event; the error itself is logged with the retry.
func (c *Controller) warn(s subject, reason string, err error) {
	if s.object != nil {
		c.events.Event(s.object, v1.EventTypeWarning, reason, err.Error())
	}
}

func text(at time.Time) string { return at.UTC().Format(time.RFC3339) }
