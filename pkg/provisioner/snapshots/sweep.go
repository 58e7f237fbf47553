package snapshots

import (
	"context"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/klog/v2"

	"github.com/exeunt-io/exeunt/pkg/controller"
	"github.com/exeunt-io/exeunt/pkg/finalizer"
)

// page is the number of snapshots in one list request.
const page = 500

func (c *Controller) sweepEveryInterval(ctx context.Context) {
	ticker := time.NewTicker(c.Interval)
	defer ticker.Stop()
	for {
		if err := c.Sweep(ctx); err != nil && ctx.Err() == nil {
			klog.FromContext(ctx).Error(err, "Sweep of orphaned snapshot finalizers failed, retrying", "interval", c.Interval)
		}
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
	}
}

// Sweep enqueues every snapshot with the finalizer. A cluster without the resource has no
// snapshots.
func (c *Controller) Sweep(ctx context.Context) error {
	options, tracked := metav1.ListOptions{Limit: page}, map[types.UID]bool{}
	for {
		list, err := c.Metadata.Resource(Resource).List(ctx, options)
		switch {
		case apierrors.IsNotFound(err), c.isForbidden(ctx, err):
			c.alsoTrack(tracked)
			c.forgetUnswept(nil) // nothing shows any more that they wait
			return nil
		case apierrors.IsResourceExpired(err) && options.Continue != "":
			c.alsoTrack(tracked)
			return nil // the next sweep starts from the beginning
		case err != nil:
			c.alsoTrack(tracked)
			return fmt.Errorf("list snapshots: %w", err)
		}
		for i := range list.Items {
			if finalizer.Has(list.Items[i].Finalizers, finalizer.SnapshotSource) {
				c.loop.Enqueue(controller.Key(&list.Items[i]))
				if c.trackSwept(&list.Items[i]) {
					tracked[list.Items[i].UID] = true
				}
			}
		}
		if options.Continue = list.Continue; options.Continue == "" {
			c.forgetUnswept(tracked)
			return nil
		}
	}
}
