package garbagecollector

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/util/flowcontrol"

	"golang.org/x/sync/singleflight"

	"github.com/exeunt-io/exeunt/pkg/garbage/graph"
)

const (
	// liveTimeout bounds a live read.
	liveTimeout = 35 * time.Second
	// maxOwnerReads bounds the reads of the owners of one object that are in flight.
	maxOwnerReads = 10
	// slowReadLifetime is how long a read that took longer than its lifetime is good for after its answer: without
	// that, no owner of a slow API server would ever count as read.
	slowReadLifetime = graph.ReadLifetime / 2
)

// liveReads read single objects live, and record them in the graph. It has no mutex of its own.
type liveReads struct {
	*sharedGraph
	watches *watches
	// client has no rate limit of its own: limiter delays a read before its verdict begins to grow old.
	client   metadata.Interface
	limiter  flowcontrol.RateLimiter
	throttle *Throttle
	slow     *slowKinds
	// underWay are the reads of owners that several workers share.
	underWay singleflight.Group
}

func newLiveReads(config *Config, known *sharedGraph, watches *watches) *liveReads {
	client := config.Live
	if client == nil {
		client = config.Reads
	}
	return &liveReads{
		sharedGraph: known, watches: watches, client: client, limiter: config.ReadLimiter, throttle: config.Throttle,
		slow: newSlowKinds(config.Clock),
	}
}

// verifyOwners reads the owners live, several at once: the first read must not expire before the last
// one. An owner that cannot be read does not keep others from being read.
func (l *liveReads) verifyOwners(ctx context.Context, questions []graph.Question) error {
	byKind := map[*graph.Kind][]graph.Question{}
	for _, question := range questions {
		byKind[question.Kind] = append(byKind[question.Kind], question)
	}
	slots := make(chan struct{}, maxOwnerReads)
	var mu sync.Mutex
	var errs []error
	var reading wait.Group
	for kind, questions := range byKind {
		reading.Start(func() {
			err := l.slow.limit(kind, func() (time.Time, error) { return l.verifyOwnersOfKind(ctx, questions, slots) })
			mu.Lock()
			defer mu.Unlock()
			errs = append(errs, err)
		})
	}
	reading.Wait()
	return errors.Join(errs...)
}

// verifyOwnersOfKind reads owners of one kind live at once, and returns when the first of the reads began. If they were
// read one after the other, those of a slow kind would expire in turn.
func (l *liveReads) verifyOwnersOfKind(
	ctx context.Context, questions []graph.Question, slots chan struct{},
) (began time.Time, err error) {
	began = l.clock.Now()
	errs := make([]error, len(questions))
	var reading wait.Group
	for i, question := range questions {
		reading.Start(func() {
			slots <- struct{}{}
			errs[i] = l.verifyOwner(ctx, question)
			<-slots
		})
	}
	reading.Wait()
	return began, errors.Join(errs...)
}

// verifyOwner reads an owner live, once for all workers that need it, and records the verdict.
func (l *liveReads) verifyOwner(ctx context.Context, q graph.Question) error {
	key := string(q.Owner) + " " + q.At.String() + " " + q.At.Namespace + "/" + q.At.Name
	_, err, _ := l.underWay.Do(key, func() (any, error) { return nil, l.readOwner(ctx, q) })
	return err
}

// readOwner reads an owner live, and records the verdict.
func (l *liveReads) readOwner(ctx context.Context, q graph.Question) error {
	live, began, err := l.read(ctx, q.Kind, q.At.Namespace, q.At.Name)
	// A path that is not served proves the absence of an owner only if it was absent before, while its kind was served.
	// Otherwise its kind may be coming, or discovery be behind, and the dependents of a live owner would be deleted.
	if err != nil && (!q.Withdrawn || !errors.Is(err, errPathNotFound)) {
		return err
	}
	began, err = later(began, l.clock.Now().Add(-slowReadLifetime)), nil
	l.change(func(g *graph.Graph) {
		switch {
		// An object of the same name that was created since is another owner: the one that is named is gone.
		case live == nil || live.UID != q.Owner:
			g.Deleted(q.Owner, q.At)
			g.ReadAbsent(q.Owner, q.At, began)
		// The graph is newer than the API server: etcd was restored, or the answer comes from a cache. As a verdict, an
		// older state of the owner, from before its policy became Orphan, would have its dependents deleted.
		case g.IsBehind(q.Object(), live):
			err = l.watches.doubt(q.Kind)
		default:
			g.Refresh(q.Kind, live)
			g.Read(q.Owner, q.At, live, began)
		}
	})
	return err
}

// verifyObject reads an object of the graph live, and records the result.
func (l *liveReads) verifyObject(ctx context.Context, object graph.Object) error {
	live, err := l.readObject(ctx, object)
	if err != nil {
		return err
	}
	return l.recordLive(object, live)
}

// isUnchanged reads an object live, and reports whether it is as in the graph: in its version, and in what the graph
// has of it, because an aggregated API server may give all states one version.
func (l *liveReads) isUnchanged(ctx context.Context, object graph.Object) (unchanged bool, err error) {
	live, err := l.readObject(ctx, object)
	if err != nil {
		return false, err
	}
	if live != nil && live.UID == object.UID && live.ResourceVersion == object.Version {
		l.mu.Lock()
		unchanged = l.graph.Matches(live)
		l.mu.Unlock()
	}
	if !unchanged {
		err = l.recordLive(object, live)
	}
	return unchanged, err
}

// recordLive records a live read of an object, which began after the graph had this version.
func (l *liveReads) recordLive(object graph.Object, live *metav1.PartialObjectMetadata) (err error) {
	l.change(func(g *graph.Graph) {
		switch {
		case live == nil || live.UID != object.UID:
			g.Deleted(object.UID, object.Coordinates())
		case g.IsBehind(object, live):
			err = l.watches.doubt(object.Kind)
		default:
			g.Confirm(object, live)
		}
	})
	return err
}

// readObject reads an object of the graph live.
func (l *liveReads) readObject(
	ctx context.Context, object graph.Object,
) (live *metav1.PartialObjectMetadata, err error) {
	err = l.slow.limit(object.Kind, func() (began time.Time, err error) {
		live, began, err = l.read(ctx, object.Kind, object.Namespace, object.Name)
		return began, err
	})
	return live, err
}

// read reads an object live. It returns nil if the object does not exist, and when the read began, after the rate
// limit.
func (l *liveReads) read(
	ctx context.Context, kind *graph.Kind, namespace, name string,
) (live *metav1.PartialObjectMetadata, began time.Time, err error) {
	if l.limiter != nil {
		if err := l.limiter.Wait(ctx); err != nil {
			return nil, time.Time{}, fmt.Errorf("wait for --kube-api-qps: %w", err)
		}
	}
	if err := l.throttle.Wait(ctx); err != nil {
		return nil, time.Time{}, err
	}
	began = l.clock.Now()
	ctx, cancel := context.WithTimeout(ctx, liveTimeout)
	defer cancel()
	live, err = l.client.Resource(kind.GroupVersionResource()).Namespace(namespace).Get(ctx, name, metav1.GetOptions{})
	failed := func(err error) error {
		return fmt.Errorf("read %s %s/%s: %w", kind.GroupResource(), namespace, name, err)
	}
	switch {
	case namesAbsent(err, kind, name):
		return nil, began, nil
	// An API server that does not serve the path answers 404, too. The owner may live, and its dependents would be
	// deleted.
	case apierrors.IsNotFound(err):
		return nil, began, failed(errPathNotFound)
	case err != nil:
		return nil, began, failed(err)
	// The name of an owner is text of a user, and may lead the request elsewhere: the answer about another object would
	// say that the owner, which has another UID, is gone, and its dependents would be deleted.
	case live.Name != name || live.Namespace != namespace:
		return nil, began, failed(fmt.Errorf("the answer is about %s/%s", live.Namespace, live.Name))
	}
	return live, began, nil
}
