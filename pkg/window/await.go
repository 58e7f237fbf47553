package window

import (
	"context"
	"errors"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/exeunt-io/exeunt/internal/answer"
	"github.com/exeunt-io/exeunt/pkg/why/cluster"
)

// pause is the least time between two watches: an API server may end each at once.
const pause = time.Second

// maxFailures is how many requests in a row may fail: an API server that starts again takes less.
const maxFailures = 60

// AwaitGone returns once the object of the result is gone.
func (d *Deleter) AwaitGone(ctx context.Context, result Result) error {
	one := &deletion{Deleter: d, ref: result.Ref}
	for failures := 0; ; {
		gone, err := one.isGone(ctx, result.UID)
		switch {
		case gone:
			return nil
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case err == nil:
			failures = 0
		case answer.IsRefused(err) || failures == maxFailures:
			return errors.New(cluster.Failure("watch", result.Ref.Resource.GroupResource(), result.Ref.Namespace, err))
		default:
			failures++
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-time.After(pause):
		}
	}
}

// isGone reads the object, and reports whether it is gone, or was removed before the API server ended a watch.
func (d *deletion) isGone(ctx context.Context, uid types.UID) (bool, error) {
	if err := d.read(ctx); err != nil || d.object == nil || d.object.GetUID() != uid {
		return err == nil, err
	}
	stream, err := d.objects().Watch(ctx, metav1.ListOptions{
		FieldSelector:   metav1.SingleObject(metav1.ObjectMeta{Name: d.ref.Name}).FieldSelector,
		ResourceVersion: d.object.GetResourceVersion(),
	})
	if err != nil {
		return false, err
	}
	defer stream.Stop()
	for event := range stream.ResultChan() {
		if event.Type == watch.Deleted {
			return true, nil
		}
	}
	return false, nil
}
