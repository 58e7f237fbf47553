package controller_test

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/exeunt-io/exeunt/pkg/controller"
)

func TestSteppedLoopRunsOnlyWhatItsCallerWants(t *testing.T) {
	var done []string
	fails := true
	loop := controller.NewLoop("test", controller.Backoff{Initial: time.Second, Max: time.Second},
		func(_ context.Context, key string) error {
			done = append(done, key)
			if key == "b" && fails {
				return errors.New("not yet")
			}
			return nil
		})
	steps := loop.Step()
	expect := func(when string, wantDue, wantLater []string) {
		t.Helper()
		if due, later := steps.Keys(); !slices.Equal(due, wantDue) || !slices.Equal(later, wantLater) {
			t.Errorf("%s: due %v, later %v; want %v, %v", when, due, later, wantDue, wantLater)
		}
	}
	loop.EnqueueAfter("c", time.Minute)
	for _, key := range []string{"b", "a", "b"} {
		loop.Enqueue(key)
	}
	expect("at first", []string{"a", "b"}, []string{"c"})
	steps.Reconcile(t.Context(), "b")
	expect("after a failure", []string{"a"}, []string{"b", "c"})
	loop.EnqueueAfter("a", time.Minute)
	loop.Enqueue("b")
	expect("after an event", []string{"a", "b"}, []string{"c"})
	fails = false
	steps.Reconcile(t.Context(), "b")
	steps.Reconcile(t.Context(), "a")
	expect("at last", nil, []string{"c"})
	if want := []string{"b", "b", "a"}; !slices.Equal(done, want) {
		t.Errorf("reconciled %v, want %v", done, want)
	}
}
