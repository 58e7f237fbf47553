package runner

import (
	"context"
	"fmt"
	"slices"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/exeunt-io/exeunt/pkg/alive"
	"github.com/exeunt-io/exeunt/pkg/patch"
	"github.com/exeunt-io/exeunt/pkg/teardown"
	"github.com/exeunt-io/exeunt/pkg/teardown/inventory"
)

// word is the permission that a step rests on.
type word struct{ at time.Time }

func wordIn(object *alive.Alive) word {
	if object == nil || object.Spec.ConfirmedAt == nil {
		return word{}
	}
	return word{object.Spec.ConfirmedAt.Time}
}

// execute carries out one action.
func (s *session) execute(ctx context.Context, decision teardown.Decision, v view) error {
	object, _, _ := s.view()
	if s.confirmed != nil {
		object = s.confirmed
	}
	switch decision.Action {
	case teardown.WriteFreeze:
		return s.limitFreeze(wordIn(object), func() error {
			return s.leading(func() error { return s.writeFreeze(ctx, v.running) })
		})
	case teardown.Unfreeze:
		return s.leading(func() error { return s.removeFreeze(ctx) })
	case teardown.SavePlan:
		return s.leading(func() error { return s.savePlan(ctx, v) })
	case teardown.Keep:
		return s.batch(ctx, v, inventory.Mark)
	case teardown.Start:
		return s.leading(func() error { return s.start(ctx, object) })
	case teardown.Delete:
		return s.batch(ctx, v, inventory.Delete)
	case teardown.Recheck:
		return s.recheck(ctx, v)
	case teardown.Record:
		return s.leading(func() error { return s.saveReport(ctx, decision, v) })
	case teardown.Release:
		return s.leading(func() error { return s.release(ctx, object) })
	case teardown.Wait:
		s.wakeAt(v.next)
		if decision.Reason == teardown.FreezePending {
			return s.limitFreeze(wordIn(object), func() error { return s.awaitFreeze(ctx) })
		}
	case teardown.End, teardown.Confirm:
	}
	return nil
}

// leading calls the function if the Lease is valid beyond the margin, and brings another round.
func (s *session) leading(f func() error) error {
	if !s.term.Leading() {
		return errNotLeading
	}
	err := f()
	if err == nil {
		s.notify()
	}
	return err
}

// start sets the condition Started: from now on participants act. It fails if anything of the permission has changed
// since it was read.
func (s *session) start(ctx context.Context, object *alive.Alive) error {
	if s.confirmed == nil {
		return fmt.Errorf("start the teardown: Alive was not read")
	}
	status := object.Status.DeepCopy()
	now := metav1.NewTime(s.Clock.Now().Truncate(time.Second))
	status.StartedAt = &now
	status.Message = "participants may clean up"
	s.setCondition(&status, object, alive.ConditionStarted, metav1.ConditionTrue, "Prepared")
	change := patch.ForVersion(object).TestDeletion(object).Test("/spec/protected", false).
		Test("/spec/confirm", string(s.Cluster)).Set("/status", status)
	_, err := s.patchAlive(ctx, change, "status")
	if err == nil {
		s.event(v1.EventTypeNormal, alive.ConditionStarted, status.Message)
	}
	return err
}

// release removes our finalizer once the status says Complete, which is what admission asks for.
func (s *session) release(ctx context.Context, object *alive.Alive) error {
	if object.Status.Phase != alive.Complete {
		return nil // the status of this round says Complete
	}
	rest := slices.DeleteFunc(slices.Clone(object.Finalizers), func(f string) bool { return f == alive.Finalizer })
	change := patch.For(object).TestDeletion(object).Test("/metadata/finalizers", object.Finalizers)
	_, err := s.patchAlive(ctx, change.Set("/metadata/finalizers", rest))
	return err
}

// patchAlive returns Alive as the patch has made it.
func (r *Runner) patchAlive(ctx context.Context, change *patch.Patch, subresources ...string) (*alive.Alive, error) {
	body, err := change.Bytes()
	if err != nil {
		return nil, err
	}
	written, err := r.Dynamic.Resource(alive.Resource).Patch(ctx, alive.Name, types.JSONPatchType, body,
		metav1.PatchOptions{FieldManager: r.Agent}, subresources...)
	if err != nil {
		return nil, fmt.Errorf("write Alive: %w", err)
	}
	return alive.FromUnstructured(written)
}

func (r *Runner) event(kind, reason, message string) {
	if object, _, _ := r.view(); object != nil && r.Recorder != nil {
		r.Recorder.Event(object, kind, reason, message)
	}
}
