package snapshots

import (
	"context"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/klog/v2"

	"github.com/exeunt-io/exeunt/pkg/controller"
	"github.com/exeunt-io/exeunt/pkg/finalizer"
)

// page is how many snapshots are read at once.
const page = 500

func (c *Controller) sweepAgainAndAgain(ctx context.Context) {
	ticker := time.NewTicker(c.Interval)
	defer ticker.Stop()
	for {
		if err := c.Sweep(ctx); err != nil && ctx.Err() == nil {
			klog.FromContext(ctx).Error(err, "Looking for orphaned finalizers of snapshots failed, trying again", "interval", c.Interval)
		}
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
	}
}

// Sweep has every snapshot looked at that carries the finalizer. Where there is no
// such resource as snapshots, there is nothing to do.
func (c *Controller) Sweep(ctx context.Context) error {
	options := metav1.ListOptions{Limit: page}
	for {
		list, err := c.Metadata.Resource(Resource).List(ctx, options)
		switch {
		case apierrors.IsNotFound(err), c.missesRights(ctx, err):
			return nil
		case apierrors.IsResourceExpired(err) && options.Continue != "":
			return nil // the next sweep begins anew
		case err != nil:
			return fmt.Errorf("list snapshots: %w", err)
		}
		for i := range list.Items {
			if finalizer.Has(list.Items[i].Finalizers, finalizer.SnapshotSource) {
				c.loop.Enqueue(controller.Key(&list.Items[i]))
			}
		}
		if options.Continue = list.Continue; options.Continue == "" {
			return nil
		}
	}
}
