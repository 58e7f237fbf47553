package nodeterminator

import (
	"context"
	"errors"
	"sync"
	"time"

	v1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/record"

	"github.com/exeunt-io/exeunt/pkg/controller"
	"github.com/exeunt-io/exeunt/pkg/controller/servertime"
	"github.com/exeunt-io/exeunt/pkg/nodeterminator/drain"
	"github.com/exeunt-io/exeunt/pkg/nodeterminator/instances"
	"github.com/exeunt-io/exeunt/pkg/termination"
	"github.com/exeunt-io/exeunt/pkg/termination/node"
)

// backoff is that of a node whose last step failed.
var backoff = controller.Backoff{Initial: 500 * time.Millisecond, Max: 30 * time.Second}

// These are how many writes of each kind may be on their way, see [Controller]. A worker waits for each, so there are as
// many workers more.
const liveWrites, claimWrites, firstActions, endingWrites = 20, 20, 500, 500

// Pods ends the pods of one node.
type Pods interface {
	// Restore counts what an earlier leader did. It returns the counts that it added, and all pods that were cut short.
	Restore(report termination.Report) (termination.Counts, []termination.CutShort)
	Reconcile(ctx context.Context, view drain.View) (drain.Result, error)
	// Last returns the result of a node that is released now.
	Last() drain.Result
	// Look returns which pods cannot be evicted now, of a node that is not being terminated.
	Look(now time.Time) drain.Sight
}

// Drainer ends the pods of nodes.
type Drainer interface {
	// Pods returns the pods of the node with this name and UID.
	Pods(name string, uid types.UID) Pods
	Forget(name string)
}

// Config configures a controller.
type Config struct {
	// Client reads and writes single objects, and watches Leases. It must have no rate limit.
	Client  kubernetes.Interface
	Caches  *Caches
	Drainer Drainer
	// Provider is what can be done to machines; Instances does it, for a socket.
	Provider  node.Provider
	Instances instances.Provider
	Recorder  record.EventRecorder
	Clock     *servertime.Clock
	// Namespace has the reports.
	Namespace string
	// Claims are NodeClaims; nil for none.
	Claims *Claims
	// MaxDisrupted is how many nodes may be being terminated for a claim that has drifted or expired to be deleted: fewer
	// than these. 0 deletes none.
	MaxDisrupted int
	// Leading reports whether this process still leads; nil is always.
	Leading func() bool
}

// Controller terminates nodes.
type Controller struct {
	Config
	caches   *Caches
	loop     *controller.Loop
	reporter *controller.Reporter
	reports  *reports
	metrics  *metrics
	attached attachedNodes
	// disruptions are the nodes that are replaced because of their claims.
	disruptions *disruptions

	// living and claimed are taken by writes of nodes that are not being terminated, and of their claims; beginning by
	// first actions, and ending by all other writes of nodes that are being terminated, or whose claims are.
	living, claimed, beginning, ending *slots

	mu sync.Mutex
	// ctx is that of the watches and calls of terminations. Run sets it.
	ctx context.Context
	// terminations are the nodes that are being terminated, probes those whose machine was not seen yet.
	terminations map[string]*nodeTermination
	probes       map[string]*probe
}

// New returns a controller. Run starts it.
func New(config Config) *Controller {
	c := &Controller{Config: config, caches: config.Caches, reporter: controller.NewReporter(config.Recorder),
		terminations: map[string]*nodeTermination{}, probes: map[string]*probe{}, ctx: context.Background(),
		living: newSlots(liveWrites), claimed: newSlots(claimWrites), beginning: newSlots(firstActions),
		ending: newSlots(endingWrites), disruptions: newDisruptions()}
	c.metrics = newMetrics(c)
	c.reports = newReports(config.Client, config.Namespace, func(report termination.Report) bool {
		n := c.caches.node(report.Node)
		// Finalizers of others may keep the Node. One that is not deleted yet shows that the cache is older than the report.
		return n != nil && string(n.UID) == report.UID && (n.DeletionTimestamp == nil || isTerminating(n))
	})
	c.loop = controller.NewLoop("node", backoff, c.Reconcile)
	return c
}

// Notify enqueues the node. It does not block.
func (c *Controller) Notify(name string) { c.loop.Enqueue(name) }

// Run terminates nodes with so many workers until the context ends.
func (c *Controller) Run(ctx context.Context, workers int) error {
	c.ctx = ctx
	stopReports := c.reports.start(ctx)
	defer stopReports()
	if err := c.watch(ctx); err != nil {
		return err
	}
	c.work(ctx, workers)
	return nil
}

// work reconciles nodes until the context ends. So many workers never wait for a write: none delays a Stop.
func (c *Controller) work(ctx context.Context, workers int) {
	for _, of := range c.slots() {
		workers += of.size
	}
	c.loop.Run(ctx, workers)
}

func (c *Controller) slots() []*slots { return []*slots{c.living, c.claimed, c.beginning, c.ending} }

// watch enqueues the nodes that an object of a cache concerns.
func (c *Controller) watch(ctx context.Context) error {
	nodes := controller.OnChange(c.nodeChanged, func(gone *v1.Node) {
		c.loop.Enqueue(gone.Name)
		c.enqueueSharers(nil, gone)
		c.enqueueWaiting()
	})
	enqueueNodeOf := func(a *storagev1.VolumeAttachment) {
		if c.termination(a.Spec.NodeName) != nil {
			c.loop.Enqueue(a.Spec.NodeName)
		}
	}
	attachments := controller.OnChange(func(_, now *storagev1.VolumeAttachment) { enqueueNodeOf(now) }, enqueueNodeOf)
	handlers := []controller.EventHandler{
		{Informer: c.caches.Nodes, Handler: nodes},
		{Informer: c.caches.Attachments, Handler: controller.OnReplay(controller.Ignore[*storagev1.VolumeAttachment],
			attachments)},
	}
	c.Claims.onChange(c.enqueueClaimed)
	c.Claims.start(ctx)
	return controller.RegisterHandlers(ctx, handlers...)
}

// nodeChanged enqueues a node that is new or has changed, and those that this concerns.
func (c *Controller) nodeChanged(old, now *v1.Node) {
	c.loop.Enqueue(now.Name)
	c.enqueueSharers(old, now)
	switch {
	case isTerminating(old) && !isTerminating(now):
		c.enqueueWaiting()
	case isTerminating(now) && !isTerminating(old):
		for _, of := range c.slots() {
			of.hurry(now.Name)
		}
	}
}

// enqueueClaimed enqueues the node that a claim concerns, or all that may be ours.
func (c *Controller) enqueueClaimed(name string) {
	c.enqueueWaiting()
	if name != "" {
		if one := c.Claims.named(name); one != nil && one.deleting() {
			c.living.hurry(name)
			c.claimed.hurry(name)
		}
		c.loop.Enqueue(name)
		return
	}
	for _, n := range c.caches.Nodes.GetStore().List() {
		if n, is := n.(*v1.Node); is && isConcerned(n) {
			c.loop.Enqueue(n.Name)
		}
	}
}

// enqueueSharers enqueues terminating nodes with the providerID of a node that is new or gone.
func (c *Controller) enqueueSharers(old, now *v1.Node) {
	if now.Spec.ProviderID == "" || old != nil && old.Spec.ProviderID == now.Spec.ProviderID {
		return
	}
	for _, other := range byIndex[*v1.Node](c.caches.Nodes, byProviderID, now.Spec.ProviderID) {
		if other.Name != now.Name && c.termination(other.Name) != nil {
			c.loop.Enqueue(other.Name)
		}
	}
}

// Reconcile keeps the claim of the node together with it, observes the node, decides, and executes one action. After a
// write the node is enqueued again.
func (c *Controller) Reconcile(ctx context.Context, name string) error {
	defer c.wakeNext(name)
	n := c.latest(name)
	t := c.follow(n, name)
	ofNode := func() error { return later(c.reconcileNode(ctx, n, t)) }
	ofClaim := func() error { return later(c.reconcileClaim(ctx, name, n, t)) }
	if n != nil && !termination.Protected(n) { // a DELETE now would end the Node undrained
		return errors.Join(ofNode(), ofClaim())
	}
	return errors.Join(ofClaim(), ofNode())
}

// wakeNext enqueues the nodes that waited for the place or the slot of this one.
func (c *Controller) wakeNext(name string) {
	c.passOn(name)
	for _, of := range c.slots() {
		if next := of.next(); next != "" {
			c.loop.Enqueue(next)
		}
	}
}

// reconcileNode takes one step of the node.
func (c *Controller) reconcileNode(ctx context.Context, n *v1.Node, t *nodeTermination) error {
	if n == nil || t != nil && t.released { // finalizers of others may keep the Node
		c.offerReleased(t)
		return nil
	}
	seen, err := c.observe(ctx, n, t)
	if err != nil {
		return err
	}
	decision := node.Decide(seen.state)
	c.report(n, t, seen, decision)
	wrote, err := c.execute(ctx, n, t, seen, decision)
	if wrote && err == nil {
		c.loop.Enqueue(n.Name)
	}
	return c.refused(n, t, decision, err)
}

// reconcileClaim writes to the claim of the node. A node that is being terminated does not wait for its claim.
func (c *Controller) reconcileClaim(ctx context.Context, name string, n *v1.Node, t *nodeTermination) error {
	write := c.claimWrite(name, n)
	switch {
	case write == nil:
		return nil
	case t != nil && !t.released:
		c.background(t, &t.claimBusy, write)
		return nil
	}
	of := c.claimed
	if one := c.Claims.named(name); one != nil && one.deleting() { // the time of its Node runs
		of = c.ending
	}
	return of.run(ctx, name, write)
}

// errNoSlot: as many writes are on their way as may be.
var errNoSlot = errors.New("too many writes are on their way")

// later returns the error, but for that of a node without a slot: it is reconciled again once a slot is free.
func later(err error) error {
	if errors.Is(err, errNoSlot) {
		return nil
	}
	return err
}

// refused reports a step that failed, and returns the error.
func (c *Controller) refused(n *v1.Node, t *nodeTermination, d node.Decision, err error) error {
	err = c.reporter.ReportRefusal(n, "The step "+d.Action.String(), err)
	if t != nil && t.report.UID != "" && controller.IsRefusal(err) {
		t.note(d, err)
		c.offer(t)
	}
	return err
}

// latest returns the node, as the cache or our own last write has it. It is nil if the node is gone.
func (c *Controller) latest(name string) *v1.Node {
	cached := c.caches.node(name)
	if t := c.termination(name); t != nil && cached != nil {
		return t.newer(cached)
	}
	return cached
}

// termination returns the termination of the node, nil if there is none.
func (c *Controller) termination(name string) *nodeTermination {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.terminations[name]
}

// isLeading reports whether this process leads.
func (c *Controller) isLeading() error { return controller.CheckLeading(c.Leading) }
