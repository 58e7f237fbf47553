package garbagecollector

import (
	"context"
	"errors"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/exeunt-io/exeunt/pkg/garbage/graph"
)

// liveTimeout bounds a live read.
const liveTimeout = 35 * time.Second

// read reads an object live. It returns nil if the object does not exist, and when the read began, after the rate
// limit.
func (c *Collector) read(ctx context.Context, kind *graph.Kind, namespace, name string) (live *metav1.PartialObjectMetadata, began time.Time, err error) {
	if c.ReadLimiter != nil {
		if err := c.ReadLimiter.Wait(ctx); err != nil {
			return nil, time.Time{}, fmt.Errorf("wait for --kube-api-qps: %w", err)
		}
	}
	if err := c.Throttle.Wait(ctx); err != nil {
		return nil, time.Time{}, err
	}
	began = c.Clock.Now()
	ctx, cancel := context.WithTimeout(ctx, liveTimeout)
	defer cancel()
	live, err = c.Live.Resource(kind.GroupVersionResource()).Namespace(namespace).Get(ctx, name, metav1.GetOptions{})
	switch {
	case namesAbsent(err, kind, name):
		return nil, began, nil
	case apierrors.IsNotFound(err):
		return nil, began, fmt.Errorf("read %s %s/%s: %w", kind.GroupResource(), namespace, name, errPathNotFound)
	case err != nil:
		return nil, began, fmt.Errorf("read %s %s/%s: %w", kind.GroupResource(), namespace, name, err)
	case live.Name != name || live.Namespace != namespace:
		return nil, began, fmt.Errorf("read %s %s/%s: the answer is about %s/%s", kind.GroupResource(), namespace, name, live.Namespace, live.Name)
	}
	return live, began, nil
}

// verifyObject reads an object of the graph live, and records the result.
func (c *Collector) verifyObject(ctx context.Context, object graph.Object) error {
	live, err := c.readObject(ctx, object)
	if err != nil {
		return err
	}
	return c.recordLive(object, live)
}

// readObject reads an object of the graph live.
func (c *Collector) readObject(ctx context.Context, object graph.Object) (live *metav1.PartialObjectMetadata, err error) {
	err = c.slowReads.limit(object.Kind, func() (began time.Time, err error) {
		live, began, err = c.read(ctx, object.Kind, object.Namespace, object.Name)
		return began, err
	})
	return live, err
}

// verifyOwner reads an owner live, once for all workers that need it, and records the verdict.
func (c *Collector) verifyOwner(ctx context.Context, q graph.Question) error {
	key := string(q.Owner) + " " + q.At.String() + " " + q.At.Namespace + "/" + q.At.Name
	_, err, _ := c.reads.Do(key, func() (any, error) { return nil, c.readOwner(ctx, q) })
	return err
}

// slowReadLifetime is how long a read that took longer than its lifetime is good for after its answer: without that,
// no owner of a slow API server would ever count as read.
const slowReadLifetime = graph.ReadLifetime / 2

// readOwner reads an owner live, and records the verdict.
func (c *Collector) readOwner(ctx context.Context, q graph.Question) error {
	live, began, err := c.read(ctx, q.Kind, q.At.Namespace, q.At.Name)
	if err != nil && (!q.Withdrawn || !errors.Is(err, errPathNotFound)) {
		return err
	}
	began, err = maxTime(began, c.Clock.Now().Add(-slowReadLifetime)), nil
	c.change(func(g *graph.Graph) {
		switch {
		case live == nil || live.UID != q.Owner:
			g.Deleted(q.Owner, q.At)
			g.ReadAbsent(q.Owner, q.At, began)
		case g.IsBehind(q.Object(), live):
			err = c.doubt(q.Kind)
		default:
			g.Refresh(q.Kind, live)
			g.Read(q.Owner, q.At, live, began)
		}
	})
	return err
}

// isUnchanged reads an object live, and reports whether it is as in the graph: in its version, and in what the graph
// has of it, because an aggregated API server may give all states one version.
func (c *Collector) isUnchanged(ctx context.Context, object graph.Object) (unchanged bool, err error) {
	live, err := c.readObject(ctx, object)
	if err != nil {
		return false, err
	}
	if live != nil && live.UID == object.UID && live.ResourceVersion == object.Version {
		c.mu.Lock()
		unchanged = c.graph.Matches(live)
		c.mu.Unlock()
	}
	if !unchanged {
		err = c.recordLive(object, live)
	}
	return unchanged, err
}

// recordLive records a live read of an object, which began after the graph had this version.
func (c *Collector) recordLive(object graph.Object, live *metav1.PartialObjectMetadata) (err error) {
	c.change(func(g *graph.Graph) {
		switch {
		case live == nil || live.UID != object.UID:
			g.Deleted(object.UID, object.Coordinates())
		case g.IsBehind(object, live):
			err = c.doubt(object.Kind)
		default:
			g.Confirm(object, live)
		}
	})
	return err
}
