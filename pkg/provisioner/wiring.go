package provisioner

import (
	"context"

	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	corelisters "k8s.io/client-go/listers/core/v1"
	"k8s.io/client-go/tools/record"

	"github.com/exeunt-io/exeunt/pkg/controller"
	"github.com/exeunt-io/exeunt/pkg/journal"
	"github.com/exeunt-io/exeunt/pkg/provision"
	"github.com/exeunt-io/exeunt/pkg/provisioner/deletion"
	"github.com/exeunt-io/exeunt/pkg/provisioner/engine"
	"github.com/exeunt-io/exeunt/pkg/provisioner/journalstore"
	"github.com/exeunt-io/exeunt/pkg/provisioner/provisioning"
)

// wiring are the caches and reporters that the engine works with.
type wiring struct {
	*ProvisionController
	namespace      string
	informers      informers.SharedInformerFactory
	arrivals       provisioning.Arrivals
	recorder       record.EventRecorder
	journalMetrics *journalstore.Metrics
	tracked        engine.Tracked
}

// newWiring returns the caches: the provisioner's claims and volumes, static volumes, and
// all classes.
func newWiring(c *ProvisionController, namespace string, recorder record.EventRecorder,
	journalMetrics *journalstore.Metrics, tracked engine.Tracked) *wiring {
	factory, arrivals := engine.NewInformers(c.client, provisioning.Names{Driver: c.storage.name, Static: true})
	return &wiring{ProvisionController: c, namespace: namespace, informers: factory, arrivals: arrivals,
		recorder: recorder, journalMetrics: journalMetrics, tracked: tracked}
}

// engine returns the engine, which ends the controller by end.
func (w *wiring) engine(end func(error)) (*engine.Engine, error) {
	core, reporter := w.informers.Core().V1(), controller.NewReporter(w.recorder)
	backoff := controller.Backoff{Initial: w.retryFirst, Max: w.retryMost}
	volumes := core.PersistentVolumes().Informer()
	return engine.New(engine.Config{
		Client: w.client, Workers: w.threadiness, End: end,
		Journal: journalstore.Config{
			Client: w.client, Journal: w.journalOf(),
			Off: !w.journal, Recorder: w.recorder, Metrics: w.journalMetrics,
		},
		Provisioning: provisioning.Config{
			Client: w.client, Backend: w.storage, Honor: w.addFinalizer, DiscardRefused: true,
			Caches: provisioning.Caches{
				Claims: core.PersistentVolumeClaims().Informer(), Volumes: volumes,
				Classes: w.informers.Storage().V1().StorageClasses().Informer(), Arrivals: w.arrivals,
			},
			Scope: scope{w.storage.name}, Nodes: nodes{w.client, w.nodes},
			Reporter: reporter, Metrics: w.metrics, Backoff: backoff, Timeouts: w.timeouts(),
		},
		Deletion: deletion.Config{
			Client: w.client, Volumes: volumes, Deleter: w.storage,
			Reporter: reporter, Metrics: w.metrics, Backoff: backoff, Honor: w.addFinalizer,
			Waiting: w.tracked.Waiting, Unprotected: w.tracked.Unprotected,
		},
	})
}

// journalOf returns the journal of this process.
func (w *wiring) journalOf() journal.Journal {
	return journal.Journal{Namespace: w.namespace, Driver: w.storage.name, Node: w.node}
}

func (w *wiring) timeouts() provisioning.Timeouts {
	timeouts := provisioning.DefaultTimeouts
	timeouts.Unresolved = w.unresolvedAfter
	return timeouts
}

// scope is what the provisioner of the name serves: all its claims.
type scope struct{ provisioner string }

// Serves reports whether it is the name of the provisioner.
func (s scope) Serves(provisioner string) bool { return provisioner == s.provisioner }

// Node returns "": claims of all nodes are served.
func (scope) Node() string { return "" }

// Reaches returns true: a provisioner reaches all its volumes.
func (scope) Reaches(*v1.PersistentVolume) bool { return true }

// VolumeName is v10's.
func (scope) VolumeName(claim *v1.PersistentVolumeClaim) string {
	return provision.VolumeName(provision.Settings{NamePrefix: "pvc", NameLength: -1}, claim.UID)
}

// nodes reads selected nodes.
type nodes struct {
	client kubernetes.Interface
	// lister is that of the option NodesLister, nil for none.
	lister corelisters.NodeLister
}

// Read reads a node live. A process on v10 with the option NodesLister has no right to do so;
// the lister is then as good as it was there.
func (n nodes) Read(ctx context.Context, name string) (*v1.Node, error) {
	node, err := n.client.CoreV1().Nodes().Get(ctx, name, metav1.GetOptions{})
	if apierrors.IsForbidden(err) && n.lister != nil {
		return n.lister.Get(name)
	}
	return node, err
}

// FromCache returns the node of the lister, nil if there is none.
func (n nodes) FromCache(name string) *v1.Node {
	if n.lister == nil {
		return nil
	}
	node, err := n.lister.Get(name)
	if err != nil {
		return nil
	}
	return node
}
