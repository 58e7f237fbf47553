package runner

import (
	"context"
	"errors"
	"io"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/exeunt-io/exeunt/pkg/blocker"
	"github.com/exeunt-io/exeunt/pkg/rollback"
)

// removals returns an observation with 1,000 annotations to remove.
func removals(remove func(context.Context) error) *observation {
	decision := rollback.Decision{Action: rollback.Remove, Reason: rollback.Unneeded}
	return &observation{own: list{items: slices.Repeat([]Item{newItem(blocker.Object{Kind: "PersistentVolume", Name: "v"}, "annotation x", decision, remove)}, 1000)}}
}

func TestWriteWithoutAnswerEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), 61*time.Second)
		defer cancel()
		o := &Options{Timeout: time.Minute, Progress: io.Discard}
		_, err := o.execute(ctx, removals(func(ctx context.Context) error {
			<-ctx.Done()
			return ctx.Err()
		}))
		if err == nil || ctx.Err() != nil {
			t.Errorf("waited for more than a minute: %v", err)
		}
	})
}

func TestRepeatedErrorsEndTheWrites(t *testing.T) {
	requests := 0
	o := &Options{Timeout: time.Minute, Progress: io.Discard}
	_, err := o.execute(t.Context(), removals(func(context.Context) error {
		requests++
		return errors.New("no right")
	}))
	if requests != mostErrors || err == nil || !strings.Contains(err.Error(), "the rest was left as it is") {
		t.Errorf("%d requests: %v", requests, err)
	}
}
