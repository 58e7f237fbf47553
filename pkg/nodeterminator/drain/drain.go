package drain

import (
	"context"
	"time"

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

// Config is what a Drainer works with.
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
	// Notify is called with the name of a node that is to be reconciled. It must not block, and may be called from any
	// goroutine.
	Notify func(node string)
}

// View is what a termination says of the pods of a node.
type View struct {
	pod.View
	Deadline deadline.Deadline
	// Begun is when the first action was written.
	Begun time.Time
	// Volumes of ordinary and critical pods are attached.
	Volumes bool
	// HasVolume reports whether a volume is attached to the node for the pod. Nil is none.
	HasVolume func(*v1.Pod) bool
	// Drain sends requests; else pods are looked at only.
	Drain bool
}

// Result is how far the pods of a node have come.
type Result struct {
	// Synced: all pods of the node are known. Else everything else is empty.
	Synced bool
	Pods   node.Pods
	// Settled: no new pod appeared for 5 s.
	Settled bool
	// Next is when the result changes by time alone, the zero time if it does not.
	Next     time.Time
	Counts   termination.Counts
	CutShort []termination.CutShort
	Left     []termination.Left
	// Awaited and Unawaited are the pods that are still there, by whether the node waits for their volumes. They must not
	// be changed.
	Awaited, Unawaited []*v1.Pod
}

// Drainer ends the pods of nodes. It is safe for concurrent use.
type Drainer struct {
	config Config
}

// New returns a drainer whose watches and requests end with the context.
func New(_ context.Context, config Config) *Drainer { return &Drainer{config: config} }

// Node is the pods of one node.
type Node struct {
	name string
	uid  types.UID
}

// Node returns the node with this name and UID, and begins to watch its pods. A node with another UID replaces it.
func (d *Drainer) Node(name string, uid types.UID) *Node { return &Node{name: name, uid: uid} }

// Forget ends the watch of the node, and drops what is to be sent to its pods.
func (d *Drainer) Forget(string) {}

// Restore counts what the report of an earlier leader says. It is called before the first Reconcile, once.
func (n *Node) Restore(termination.Report) {}

// Reconcile sends what is due to the pods of the node. It waits for no answer: each answer that changes the result
// calls Notify.
func (n *Node) Reconcile(context.Context, View) (Result, error) { return Result{}, nil }

// Lanes returns clients for evictions and for forced deletions. They share no connection and no rate limit, so that a
// webhook that delays evictions delays no deletion.
func Lanes(config *rest.Config) (evictions, forced rest.Interface, err error) { return nil, nil, nil }
