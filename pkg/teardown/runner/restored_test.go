package runner

import (
	"context"
	"errors"
	"testing"

	"k8s.io/apimachinery/pkg/types"

	"github.com/exeunt-io/exeunt/pkg/alive"
)

// A command that has deleted Alive would wait for ever for another deletion (#63).
func TestUndoneDeletionEndsTheCommand(t *testing.T) {
	deleted := deletedAlive(true)
	live := func(uid types.UID) *alive.Alive {
		object := deletedAlive(true)
		object.UID, object.DeletionTimestamp = uid, nil
		return object
	}
	for name, tc := range map[string]struct {
		before, now *alive.Alive
		command     bool
		ends        bool
	}{
		"restored":                    {deleted, live(deleted.UID), true, true},
		"restored, of the controller": {deleted, live(deleted.UID), false, false},
		"another, after an abort":     {deleted, live("another"), true, false},
		"not deleted before":          {live(deleted.UID), live(deleted.UID), true, false},
		"the first one that was seen": {nil, live(deleted.UID), true, false},
		"deleted before and after":    {deleted, deleted, true, false},
	} {
		t.Run(name, func(t *testing.T) {
			r := newTestRunner(t, nil)
			r.Command, r.current = tc.command, tc.before
			ctx, end := context.WithCancelCause(t.Context())
			defer end(nil)
			r.end = end
			content, err := alive.ToUnstructured(tc.now)
			if err != nil || !r.see(content) {
				t.Fatalf("Alive is not seen: %v", err)
			}
			if ended := errors.Is(context.Cause(ctx), ErrRestored); ended != tc.ends {
				t.Errorf("the run has ended with %v", context.Cause(ctx))
			}
		})
	}
}
