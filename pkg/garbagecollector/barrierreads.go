package garbagecollector

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/metadata"
	"k8s.io/klog/v2"

	"github.com/exeunt-io/exeunt/pkg/garbage/barrier"
	"github.com/exeunt-io/exeunt/pkg/garbage/graph"
)

const (
	// probeTimeout and pageTimeout bound one read.
	probeTimeout, pageTimeout = 5 * time.Second, 30 * time.Second
	// pageSize is the number of objects in one page, probeSize that of the first read of a kind.
	// Most kinds have fewer objects in a namespace, so that the first read is the whole list:
	// the watch of a quiet kind would not bring the graph there.
	pageSize, probeSize = 500, 50
)

// maxReads bounds the reads of one barrier that are in flight. The API server spends most of a consistent read
// waiting for etcd, so that few in flight would leave it idle.
const maxReads = 30

// errAhead means that the watch came further than the list that is being recorded.
var errAhead = errors.New("the watch is ahead of the list")

// errUnwatched means that the kind is no longer watched, or in another version since: the list proves
// nothing about what the graph has.
var errUnwatched = errors.New("the kind is not watched in this version any more")

// reads are the reads of one barrier.
type reads struct {
	*sharedGraph
	watches  *watches
	client   metadata.Interface
	throttle *Throttle
	metrics  *counters
	// namespace is the one that is read, "" for all.
	namespace string
	// slots bound the reads that are in flight, running are these.
	slots   chan struct{}
	running wait.Group
	// defining are the kinds whose objects define others. Only the barrier itself uses them and sealable, which is when
	// the kinds may be discovered again after a failure.
	defining []*graph.Kind
	sealable time.Time
	// run says what is to be read. The mutex of the graph guards it.
	run *barrier.Run[*graph.Kind]
}

// add adds the collected kinds for which the function returns true. The caller holds the
// lock.
func (r *reads) add(wanted func(*graph.Kind) bool) (added []*graph.Kind) {
	for _, m := range r.watches.monitors {
		if wanted(m.kind) {
			r.run.Add(m.kind)
			added = append(added, m.kind)
		}
	}
	slices.SortFunc(added, func(a, b *graph.Kind) int {
		return strings.Compare(a.GroupResource().String(), b.GroupResource().String())
	})
	for _, kind := range added {
		if !r.watches.mayBeAggregated(kind) {
			r.run.Vouch(kind)
		}
	}
	return added
}

// sawDefinitions reports whether the graph has seen the definitions, and whether nothing more is to be
// expected of them: it has, or it is late and the others cannot be read.
func (r *reads) sawDefinitions(late bool) (seen, ready bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	seen, ready = true, true
	for _, kind := range r.defining {
		if !r.run.Saw(kind) {
			seen, ready = false, ready && late && r.run.HasFailed(kind)
		}
	}
	return seen, ready
}

// inScope reports whether objects of the kind may be dependents of the owners.
func (r *reads) inScope(kind *graph.Kind) bool { return r.namespace == "" || kind.Namespaced }

// wakeAfter continues the run after the time.
func (r *reads) wakeAfter(ctx context.Context, after time.Duration) {
	select {
	case <-ctx.Done():
	case <-r.clock.After(after):
		r.watches.awaited.wake()
	}
}

// send sends one read, and records its result. Definitions wait for no other read: other kinds
// may follow from them. Neither do checks, which find out why others wait.
func (r *reads) send(ctx context.Context, kind *graph.Kind, request barrier.Request) {
	if !defines(kind) && request != barrier.Check {
		select {
		case <-ctx.Done():
			return
		case r.slots <- struct{}{}:
		}
		defer func() { <-r.slots }()
	}
	r.metrics.reads.WithLabelValues(strings.ToLower(request.String())).Inc()
	var err error
	began := r.clock.Now()
	switch request {
	case barrier.Check:
		r.check(ctx, kind)
	case barrier.Probe:
		err = r.first(ctx, kind)
	case barrier.List:
		err = r.list(ctx, kind, pageTimeout)
	}
	if err != nil && ctx.Err() == nil {
		r.fail(ctx, kind, began, err)
	}
	r.watches.awaited.wake()
}

// fail records the failure of a read of the kind. An overloaded API server says nothing about the kind: if the barrier
// passed without the kind, its dependents would outlive their owner, or be deleted although the policy is Orphan.
func (r *reads) fail(ctx context.Context, kind *graph.Kind, began time.Time, err error) {
	klog.FromContext(ctx).Info("A kind cannot be read for a barrier", "resource", kind.GroupResource(), "err", err)
	overload, refused := r.throttle.remaining(), r.throttle.hasRefused(kind.Group, began)
	r.mu.Lock()
	defer r.mu.Unlock()
	busy := refused && !r.watches.mayBeAggregated(kind)
	if busy {
		overload = max(overload, barrier.RetryTime)
	}
	if overload > 0 {
		r.run.Postponed(kind, r.clock.Now().Add(overload))
		return
	}
	r.run.Failed(kind, r.clock.Now())
}

// namespaceOf returns the namespace in which the kind is read.
func (r *reads) namespaceOf(kind *graph.Kind) string {
	if kind.Namespaced {
		return r.namespace
	}
	return ""
}

// first is the first read of a kind. Definitions hardly ever change, so that no event would bring the watch to the
// present version, and all other kinds wait for them: they are listed whole, unless that has failed.
func (r *reads) first(ctx context.Context, kind *graph.Kind) error {
	r.mu.Lock()
	whole := defines(kind) && !r.run.HasFailed(kind)
	r.mu.Unlock()
	if whole {
		return r.list(ctx, kind, probeTimeout)
	}
	return r.probe(ctx, kind)
}

// probe reads the present version of the kind. If there are few objects, this is a whole list
// already.
func (r *reads) probe(ctx context.Context, kind *graph.Kind) error {
	if err := r.throttle.Wait(ctx); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, probeTimeout)
	defer cancel()
	r.noteReached(kind)
	list, err := r.page(ctx, kind, metav1.ListOptions{Limit: probeSize})
	if err != nil {
		return err
	}
	if list.Continue == "" {
		if err := r.record(kind, list.ResourceVersion, list.Items); err != nil && !errors.Is(err, errAhead) {
			return err
		}
		r.see(kind) // a watch that is ahead has delivered the objects
		return nil
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if isOlder(list.ResourceVersion, r.run.ReachedBefore(kind)) { // as in record: etcd was restored
		return r.watches.doubt(kind)
	}
	position := ""
	if m := r.watches.monitors[kind.GroupKind()]; m != nil {
		position = m.position
	}
	r.run.Probed(kind, list.ResourceVersion, position, r.clock.Now())
	return nil
}

// check finds out whether the API server answers a read of a kind that it answered before.
func (r *reads) check(ctx context.Context, kind *graph.Kind) {
	err := r.throttle.Wait(ctx)
	if err == nil {
		reading, cancel := context.WithTimeout(ctx, probeTimeout)
		defer cancel()
		_, err = r.page(reading, kind, metav1.ListOptions{Limit: 1})
	}
	if err != nil {
		klog.FromContext(ctx).Info("The API server does not answer a barrier; kinds that cannot be read are read again",
			"resource", kind.GroupResource(), "err", err)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.run.Checked(err == nil, r.clock.Now())
}

// list lists the kind consistently into the graph, each page within the time. Pages that expire begin anew.
func (r *reads) list(ctx context.Context, kind *graph.Kind, timeout time.Duration) error {
	options, version := metav1.ListOptions{Limit: pageSize}, ""
	r.noteReached(kind)
	for {
		list, err := r.timedPage(ctx, kind, options, timeout)
		switch {
		case apierrors.IsResourceExpired(err) && options.Continue != "":
			options.Continue, version = "", ""
			continue
		case err != nil:
			return err
		}
		if version == "" {
			version = list.ResourceVersion
		}
		options.Continue = list.Continue
		switch err := r.record(kind, version, list.Items); {
		case errors.Is(err, errAhead), err == nil && options.Continue == "":
			r.see(kind)
			return nil
		case err != nil:
			return err
		}
	}
}

func (r *reads) timedPage(
	ctx context.Context, kind *graph.Kind, options metav1.ListOptions, timeout time.Duration,
) (*metav1.PartialObjectMetadataList, error) {
	if err := r.throttle.Wait(ctx); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	return r.page(ctx, kind, options)
}

// page reads a page; without resourceVersion, the read is consistent.
func (r *reads) page(
	ctx context.Context, kind *graph.Kind, options metav1.ListOptions,
) (*metav1.PartialObjectMetadataList, error) {
	list, err := r.watches.checkedList(kind, func() (*metav1.PartialObjectMetadataList, error) {
		return r.client.Resource(kind.GroupVersionResource()).Namespace(r.namespaceOf(kind)).List(ctx, options)
	})
	if err != nil {
		return nil, fmt.Errorf("list %s: %w", kind.GroupResource(), err)
	}
	return list, nil
}

func (r *reads) see(kind *graph.Kind) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.run.Seen(kind)
}

// noteReached notes how far the watch of the kind has come. A consistent read that begins now is not older.
func (r *reads) noteReached(kind *graph.Kind) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if m := r.watches.monitors[kind.GroupKind()]; m != nil && m.kind == kind {
		r.run.NoteReached(kind, m.reached)
	}
}

// record adds listed objects to the graph. A watch that is further than the list by now has delivered them, and may
// have delivered their deletion: then they are left out.
func (r *reads) record(kind *graph.Kind, version string, items []metav1.PartialObjectMetadata) error {
	var err error
	r.change(func(g *graph.Graph) {
		m := r.watches.monitors[kind.GroupKind()]
		// The watch of another version fills the graph now. This list would count as seen, while the graph lacks its objects.
		if m == nil || m.kind != kind {
			err = fmt.Errorf("record the list of %s: %w", kind.GroupResource(), errUnwatched)
			return
		}
		contradicts := func(item metav1.PartialObjectMetadata) bool { return g.Contradicts(kind, &item, version) }
		// A consistent read is never older than what the watch had shown before it, so etcd was restored. Dependents that the
		// backup brought back are not in the graph, and their owner would be released before them.
		if isOlder(version, r.run.ReachedBefore(kind)) || slices.ContainsFunc(items, contradicts) {
			err = r.watches.doubt(kind)
			return
		}
		// The watch may have delivered the end of an object that is in this list. Put back into the graph, the object would
		// keep its owner for ever, since no second event follows.
		if order, known := graph.Compare(m.position, version); known && order >= 0 {
			err = errAhead
			return
		}
		for i := range items {
			known := g.Has(items[i].UID)
			recorded := g.Observe(kind, &items[i])
			if _, integers := graph.Compare(version, version); !known && !integers {
				g.Doubt(items[i].UID)
			}
			if recorded {
				r.watches.noteDefinition(kind, &items[i], true)
			}
		}
	})
	return err
}
