package drain

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/record"
	"k8s.io/utils/clock"

	"github.com/exeunt-io/exeunt/pkg/deadline"
	"github.com/exeunt-io/exeunt/pkg/termination"
	"github.com/exeunt-io/exeunt/pkg/termination/node"
	"github.com/exeunt-io/exeunt/pkg/termination/pod"
)

// Config is what a Drainer works with. Its functions are called with the lock of the drainer, and must not call it.
type Config struct {
	// Client lists and watches pods.
	Client kubernetes.Interface
	// Evictions and Forced send evictions and deletions; [Lanes] makes them.
	Evictions, Forced rest.Interface
	// Budgets has PodDisruptionBudgets. Until it is synced, each blocked eviction is tried again every 5 s. It may be nil.
	Budgets cache.SharedIndexInformer
	// NamespaceEnds reports whether the namespace is being deleted. It may be nil.
	NamespaceEnds func(namespace string) bool
	Recorder      record.EventRecorder
	// Clock is the real one if it is nil.
	Clock clock.WithDelayedExecution
	// Leading reports whether this process still leads; nil is always. It is asked before a pod is removed.
	Leading func() bool
	// Notify is called with the name of a node that is to be reconciled. It must not block.
	Notify func(node string)
}

// View is what a termination says of the pods of a node.
type View struct {
	pod.View
	Deadline deadline.Deadline
	// Begun is when the first action was written.
	Begun time.Time
	// SilentSince is since when the kubelet is silent, if it is.
	SilentSince time.Time
	// Volumes of ordinary and critical pods are attached.
	Volumes bool
	// HasVolume reports whether a volume is attached to the node for the pod. Nil is none.
	HasVolume func(*v1.Pod) bool
	// Drain sends requests; else pods are looked at only.
	Drain bool
	// Holds reports whether nothing has spoken against the proof since; nil is yes. It is asked right before a pod is
	// removed, with the lock of the drainer, and must not call it.
	Holds func() bool
}

// Result is how far the pods of a node have come.
type Result struct {
	// Synced: all pods of the node are known. Else everything else is empty.
	Synced bool
	Pods   node.Pods
	// Settled: no new pod appeared for 5 s, and no pod that is gone is still to be counted.
	Settled bool
	// Next is when the result changes by time alone, the zero time if it does not. Evictions that are tried again need no
	// Reconcile.
	Next     time.Time
	Counts   termination.Counts
	CutShort []termination.CutShort
	// Left has each pod that is still there.
	Left []termination.Left
	// Awaited and Unawaited are the pods that are still there, by whether the node waits for their volumes. They must not
	// be changed.
	Awaited, Unawaited []*v1.Pod
}

// evictionSlots and forcedSlots are how many requests of each lane may be in flight. More make an API server with two
// cores slower for each request, and not faster for all.
const evictionSlots, forcedSlots = 64, 32

// repeatedSlots is the same for forced requests that failed before.
const repeatedSlots = 16

// Drainer ends the pods of nodes. It is safe for concurrent use.
type Drainer struct {
	config Config
	ctx    context.Context // requests end with the drainer, not with a Reconcile
	clock  clock.WithDelayedExecution
	// running counts watches and requests.
	running sync.WaitGroup
	// deletions counts pods that were deleted by force.
	deletions *prometheus.CounterVec
	// budgetsKnown reports whether all budgets were taken.
	budgetsKnown func() bool

	// mu guards everything below, and all nodes.
	mu      sync.Mutex
	nodes   map[string]*Node
	records map[types.UID]*tracked
	matcher matcher
	queue   *queue
	// forced has requests that never failed, repeated all others: they must not wait for what hangs each time.
	forced, repeated lane
	// noEvictions and noMarks are until when a namespace gets no eviction at L, and no condition before a deletion.
	noEvictions, noMarks map[string]time.Time
	// wake is the timer of the queue.
	wake   clock.Timer
	wakeAt time.Time
	// closed: nothing more is started.
	closed bool
}

// New returns a drainer whose watches and requests end with the context. It waits some seconds for the budgets.
func New(ctx context.Context, config Config) *Drainer {
	d := &Drainer{config: config, ctx: ctx, clock: config.Clock, nodes: map[string]*Node{}, records: map[types.UID]*tracked{},
		matcher: matcher{}, queue: newQueue(evictionSlots), deletions: newDeletions(),
		forced: lane{slots: forcedSlots}, repeated: lane{slots: repeatedSlots}, noEvictions: map[string]time.Time{},
		noMarks: map[string]time.Time{}, budgetsKnown: func() bool { return false }}
	if d.clock == nil {
		d.clock = clock.RealClock{}
	}
	context.AfterFunc(ctx, d.watchBudgets())
	return d
}

func newDeletions() *prometheus.CounterVec {
	return prometheus.NewCounterVec(prometheus.CounterOpts{Name: "node_terminator_forced_deletions_total",
		Help: "Pods that were deleted without an eviction, by what kept them from being evicted."}, []string{"reason"})
}

// Register registers the metric of the drainer.
func (d *Drainer) Register(registry prometheus.Registerer) error {
	if err := registry.Register(d.deletions); err != nil {
		return fmt.Errorf("register metrics: %w", err)
	}
	return nil
}

// Wait waits until all watches and requests have ended, after the context has.
func (d *Drainer) Wait() {
	d.mu.Lock()
	d.closed = true
	d.mu.Unlock()
	d.running.Wait()
}

// Node returns the node with this name and UID, and begins to watch its pods. A node with another UID replaces it.
func (d *Drainer) Node(name string, uid types.UID) *Node {
	d.mu.Lock()
	defer d.mu.Unlock()
	if n := d.nodes[name]; n != nil {
		if n.uid == uid {
			return n
		}
		d.forget(n)
	}
	ctx, stop := context.WithCancel(d.ctx)
	n := &Node{drainer: d, name: name, uid: uid, stop: stop, pods: map[types.UID]*tracked{}, cut: map[types.UID]int{},
		seen: map[types.UID]bool{}, unanswered: map[types.UID]*tracked{}}
	d.nodes[name] = n
	if !d.closed {
		d.running.Go(func() { n.watch(ctx) })
	}
	return n
}

// Forget ends the watch of the node, and drops what is to be sent to its pods.
func (d *Drainer) Forget(name string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if n := d.nodes[name]; n != nil {
		d.forget(n)
	}
}

func (d *Drainer) forget(n *Node) {
	n.stop()
	delete(d.nodes, n.name)
	for id := range n.pods {
		d.queue.drop(id)
		delete(d.records, id)
	}
}

// notify has the node reconciled.
func (d *Drainer) notify(n *Node) { d.config.Notify(n.name) }
