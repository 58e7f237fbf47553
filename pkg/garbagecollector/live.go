package garbagecollector

import (
	"context"
	"errors"
	"fmt"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/scheme"

	"github.com/exeunt-io/exeunt/pkg/garbage/graph"
)

// errPathNotFound is a 404 that does not name the object: the path is not served, as by an
// API server that does not know a CustomResourceDefinition yet. It proves nothing.
var errPathNotFound = errors.New("the API server answers 404 without naming the object")

// read reads an object live. It returns nil if the object does not exist.
func (c *Collector) read(ctx context.Context, kind *graph.Kind, namespace, name string) (*metav1.PartialObjectMetadata, error) {
	object, err := c.Reads.Resource(kind.GroupVersionResource()).Namespace(namespace).Get(ctx, name, metav1.GetOptions{})
	switch {
	case namesAbsent(err, kind, name):
		return nil, nil
	case apierrors.IsNotFound(err):
		return nil, fmt.Errorf("read %s %s/%s: %w", kind.GroupResource(), namespace, name, errPathNotFound)
	case err != nil:
		return nil, fmt.Errorf("read %s %s/%s: %w", kind.GroupResource(), namespace, name, err)
	}
	return object, nil
}

// namesAbsent reports whether the error says that the object of that name does not exist.
func namesAbsent(err error, kind *graph.Kind, name string) bool {
	var status apierrors.APIStatus
	if !apierrors.IsNotFound(err) || !errors.As(err, &status) {
		return false
	}
	details := status.Status().Details
	return details != nil && details.Name == name && !apierrors.HasStatusCause(err, metav1.CauseTypeUnexpectedServerResponse) &&
		(strings.EqualFold(details.Kind, kind.Resource) || strings.EqualFold(details.Kind, kind.Kind))
}

// verifyObject reads an object of the graph live, and records the result.
func (c *Collector) verifyObject(ctx context.Context, object graph.Object) error {
	live, err := c.read(ctx, object.Kind, object.Namespace, object.Name)
	if err != nil {
		return err
	}
	c.change(func(g *graph.Graph) { recordLive(g, object, live) })
	return nil
}

// verifyOwner reads an owner live, once for all workers that need it, and records the verdict.
func (c *Collector) verifyOwner(ctx context.Context, q graph.Question) error {
	key := string(q.Owner) + " " + q.At.String() + " " + q.At.Namespace + "/" + q.At.Name
	_, err, _ := c.reads.Do(key, func() (any, error) {
		began := c.Clock.Now()
		live, err := c.read(ctx, q.Kind, q.At.Namespace, q.At.Name)
		if err != nil {
			return nil, err
		}
		c.change(func(g *graph.Graph) {
			if live == nil || live.UID != q.Owner {
				g.Deleted(q.Owner, q.At)
				return
			}
			g.Refresh(q.Kind, live)
			g.Read(q.Owner, q.At, graph.VerdictOf(live), began)
		})
		return nil, nil
	})
	return err
}

// ownGroups are groups of Kubernetes that client-go does not know.
var ownGroups = map[string]bool{definitionKind.Group: true, serviceKind.Group: true}

// mayIgnorePreconditions reports whether the kind may be served by an aggregated API server,
// which need not know the preconditions of a deletion.
func (c *Collector) mayIgnorePreconditions(kind *graph.Kind) bool {
	if ownGroups[kind.Group] || scheme.Scheme.IsGroupRegistered(kind.Group) {
		return false
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	_, defined := c.definitions[kind.GroupResource().String()]
	return !defined
}

// isUnchanged reads an object live, and reports whether it is as in the graph.
func (c *Collector) isUnchanged(ctx context.Context, object graph.Object) (bool, error) {
	live, err := c.read(ctx, object.Kind, object.Namespace, object.Name)
	if err != nil {
		return false, err
	}
	unchanged := live != nil && live.UID == object.UID && live.ResourceVersion == object.Version
	if !unchanged {
		c.change(func(g *graph.Graph) { recordLive(g, object, live) })
	}
	return unchanged, nil
}

// recordLive records a live read of an object of the graph.
func recordLive(g *graph.Graph, object graph.Object, live *metav1.PartialObjectMetadata) {
	if live == nil || live.UID != object.UID {
		g.Deleted(object.UID, object.Coordinates())
		return
	}
	g.Refresh(object.Kind, live)
}

// judge returns the judgement of an object now.
func (c *Collector) judge(uid types.UID) (graph.Judgement, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.graph.Judge(uid, c.Clock.Now())
}
