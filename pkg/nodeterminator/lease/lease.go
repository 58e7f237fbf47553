// Package lease watches the Lease of one node, and measures for how long its kubelet has been silent. The silence is
// measured by the monotonic clock of this process, from the renewals that its watch shows: the times in a Lease are those
// of the node's clock, and a Lease that was read once proves nothing.
package lease

import (
	"context"
	"sync"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes"
	coordinationclient "k8s.io/client-go/kubernetes/typed/coordination/v1"
	"k8s.io/client-go/tools/cache"

	"github.com/exeunt-io/exeunt/internal/answer"
)

// byDefault is the duration of a Lease that names none, as kubelet's.
const byDefault = 40 * time.Second

// View is what the watch knows.
type View struct {
	// Synced: the watch has shown the Lease, or that there is none.
	Synced bool
	// Unchanged is for how long the watch has shown no renewal.
	Unchanged time.Duration
	// Duration is that of the Lease.
	Duration time.Duration
	// Renewals counts the renewals that the watch has shown. It differs between two Views if the kubelet lives.
	Renewals int
	// Returned is how long ago the Lease was renewed after the kubelet had been silent, 0 if that never happened.
	Returned time.Duration
}

// Proving returns how long a Lease must be unchanged for a proof.
func (v View) Proving() time.Duration { return v.Duration / 3 }

// Silent reports whether the kubelet has renewed nothing for the duration of the Lease.
func (v View) Silent() bool { return v.Synced && v.Unchanged >= v.Duration }

// Watch watches the Lease of one node.
type Watch struct {
	client coordinationclient.LeaseInterface
	node   string
	notify func()
	stop   context.CancelFunc

	mu       sync.Mutex
	synced   bool
	changed  time.Time
	returned time.Time
	renewed  metav1.MicroTime
	duration time.Duration
	renewals int
}

// Start begins the watch. Notify is called after the first list, and after each renewal.
func Start(ctx context.Context, client kubernetes.Interface, node string, notify func()) *Watch {
	watching, stop := context.WithCancel(ctx)
	w := &Watch{client: client.CoordinationV1().Leases(v1.NamespaceNodeLease), node: node, notify: notify, stop: stop,
		duration: byDefault}
	selector := fields.OneTermEqualSelector(metav1.ObjectNameField, node).String()
	source := cache.ToListWatcherWithWatchListSemantics(&cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
			options.FieldSelector = selector
			return w.client.List(ctx, options)
		},
		WatchFuncWithContext: func(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
			options.FieldSelector = selector
			return w.client.Watch(ctx, options)
		},
	}, client)
	informer := cache.NewSharedIndexInformer(source, &coordinationv1.Lease{}, 0, cache.Indexers{})
	show := func(object any) {
		if lease, is := object.(*coordinationv1.Lease); is && w.observe(lease) {
			notify()
		}
	}
	registration, err := informer.AddEventHandler(cache.ResourceEventHandlerFuncs{AddFunc: show,
		UpdateFunc: func(_, now any) { show(now) }})
	if err != nil { // the informer has not started, so it takes each handler
		panic(err)
	}
	go informer.RunWithContext(watching)
	go func() {
		if cache.WaitForCacheSync(watching.Done(), registration.HasSynced) {
			w.sync()
			notify()
		}
	}()
	return w
}

// Stop ends the watch.
func (w *Watch) Stop() { w.stop() }

// sync records the end of the first list: a node without a Lease is silent from now on.
func (w *Watch) sync() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.synced = true
	if w.changed.IsZero() {
		w.changed = time.Now()
	}
}

// observe records a Lease, and reports whether it was renewed since the last one.
func (w *Watch) observe(lease *coordinationv1.Lease) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	silent := w.view().Silent()
	if seconds := lease.Spec.LeaseDurationSeconds; seconds != nil && *seconds > 0 {
		w.duration = time.Duration(*seconds) * time.Second
	}
	renewed := metav1.MicroTime{}
	if lease.Spec.RenewTime != nil {
		renewed = *lease.Spec.RenewTime
	}
	if !w.changed.IsZero() && w.renewed.Equal(&renewed) {
		return false
	}
	if !w.changed.IsZero() {
		w.renewals++
	}
	w.renewed, w.changed = renewed, time.Now()
	if silent {
		w.returned = w.changed
	}
	return true
}

// View returns what the watch knows now.
func (w *Watch) View() View {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.view()
}

// view returns what the watch knows now. The caller holds the mutex.
func (w *Watch) view() View {
	v := View{Synced: w.synced, Duration: w.duration, Renewals: w.renewals}
	if !w.changed.IsZero() {
		v.Unchanged = time.Since(w.changed)
	}
	if !w.returned.IsZero() {
		v.Returned = time.Since(w.returned)
	}
	return v
}

// Read reads the Lease from the API server: a watch that stands still shows no renewal either.
func (w *Watch) Read(ctx context.Context) (View, error) {
	lease, exists, err := answer.Get(ctx, w.node, w.client.Get)
	if err != nil {
		return View{}, err
	}
	if exists {
		w.observe(lease)
	}
	return w.View(), nil
}
