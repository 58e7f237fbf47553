package window

import (
	"context"
	"errors"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/exeunt-io/exeunt/pkg/why/cluster"
)

// pause is the least time between two watches: an API server may end each at once.
const pause = time.Second

// AwaitGone returns once the object of the result is gone.
func (d *Deleter) AwaitGone(ctx context.Context, result Result) error {
	one := &deletion{Deleter: d, ref: result.Ref}
	for {
		err := one.read(ctx)
		switch {
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case err != nil:
			return err
		case one.object == nil || one.object.GetUID() != result.UID:
			return nil
		}
		gone, err := one.watch(ctx)
		if gone || err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-time.After(pause):
		}
	}
}

// watch reports whether the object was removed before the API server ended the watch.
func (d *deletion) watch(ctx context.Context) (gone bool, err error) {
	stream, err := d.objects().Watch(ctx, metav1.ListOptions{
		FieldSelector:   metav1.SingleObject(metav1.ObjectMeta{Name: d.ref.Name}).FieldSelector,
		ResourceVersion: d.object.GetResourceVersion(),
	})
	switch {
	case ctx.Err() != nil:
		return false, context.Cause(ctx)
	case err != nil:
		return false, errors.New(cluster.Failure("watch", d.ref.Resource.GroupResource(), d.ref.Namespace, err))
	}
	defer stream.Stop()
	for event := range stream.ResultChan() {
		if event.Type == watch.Deleted {
			return true, nil
		}
	}
	return false, nil
}
