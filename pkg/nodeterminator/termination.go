package nodeterminator

import (
	"context"
	"sync"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/resourceversion"
	"k8s.io/klog/v2"

	"github.com/exeunt-io/exeunt/pkg/deadline"
	"github.com/exeunt-io/exeunt/pkg/nodeterminator/instances"
	"github.com/exeunt-io/exeunt/pkg/nodeterminator/lease"
	"github.com/exeunt-io/exeunt/pkg/nodeterminator/machine"
	"github.com/exeunt-io/exeunt/pkg/termination"
	"github.com/exeunt-io/exeunt/pkg/termination/node"
)

// nodeTermination is what this process remembers of a node that is being terminated. Only the worker of the node uses
// it, but for the fields below the mutex.
type nodeTermination struct {
	name string
	uid  types.UID
	// end ends the watch of the Lease, and all calls of the provider.
	ctx     context.Context
	end     context.CancelFunc
	lease   *lease.Watch
	machine *machine.Machine // nil without a socket
	pods    Pods
	proof   proof
	// obeyed is the earliest deadline that this process has followed: it never moves later.
	obeyed deadline.Deadline
	// timed: obeyed counts the period of the label or claim. Until claims can be read, the annotation alone counts.
	timed bool
	// began is when the first action was written, or was refused: a webhook moves no deadline.
	began time.Time
	// verified: Node and Lease were read since the proof was given, and pods are being removed since.
	verified bool
	// synced: the pods of the node are known. beforeDaemons: a volume is left that pods of DaemonSets must outlive.
	synced, beforeDaemons bool
	// released: this process removed the finalizer.
	released bool
	// counted are the pods whose cut is in the metrics, of this process or of an earlier one.
	counted map[string]bool
	// attachedSince is since when Delete is refused, because live reads show a volume that is attached.
	attachedSince time.Time
	// stopped: Stop was called once.
	stopped bool
	report  termination.Report
	// earlier gets the report of an earlier leader, and is nil afterwards: until then no report is written over it. Stop does
	// not wait for it, and pods not after awaited. late: they did not.
	earlier chan *termination.Report
	awaited time.Time
	late    bool

	mu sync.Mutex
	// written is the answer to the last own write.
	written *v1.Node
	// busy, claimBusy: a write of the Node, or of its claim, runs in the background.
	busy, claimBusy bool
	// shown is what metrics show.
	shown summary
}

// follow returns the termination of the node: it begins when the node is deleted, and ends with the node. It is nil
// for a node that is not being deleted.
func (c *Controller) follow(n *v1.Node, name string) *nodeTermination {
	t := c.termination(name)
	if t != nil && (n == nil || n.UID != t.uid) {
		c.conclude(t)
		t = nil
	}
	if n == nil || n.DeletionTimestamp != nil {
		c.endProbe(name)
	}
	if t == nil && n != nil && n.DeletionTimestamp != nil && termination.Protected(n) {
		t = c.begin(n)
	}
	return t
}

// begin begins to watch the Lease, the machine and the pods of a node.
func (c *Controller) begin(n *v1.Node) *nodeTermination {
	c.reports.begin(n.UID)
	ctx, end := context.WithCancel(c.ctx)
	notify := func() { c.loop.Enqueue(n.Name) }
	t := &nodeTermination{name: n.Name, uid: n.UID, end: end, counted: map[string]bool{},
		lease: lease.Start(ctx, c.Client, n.Name, notify),
		pods:  c.Drainer.Pods(n.Name, n.UID),
	}
	t.ctx = ctx
	c.followMachine(n, t)
	if began := c.firstAction(n); !began.IsZero() { // an earlier leader began: its report has what it counted
		t.began, t.earlier, t.awaited = began, make(chan *termination.Report, 1), time.Now().Add(readTimeout)
		c.loop.EnqueueAfter(n.Name, readTimeout)
		go func() {
			report, err := c.reports.read(c.ctx, n.UID) // also once the termination ends: its report counts on
			if err != nil {
				klog.FromContext(c.ctx).Info("The report of an earlier leader could not be read", "node", n.Name, "err", err)
			}
			t.earlier <- report
			notify()
		}()
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.terminations[n.Name] = t
	return t
}

// restored takes over what an earlier leader counted. It returns false until that was read, for two seconds.
func (t *nodeTermination) restored() bool {
	select {
	case report := <-t.earlier:
		t.earlier = nil
		switch {
		case report != nil:
			t.report = *report
			t.pods.Restore(*report)
			for _, cut := range report.CutShort {
				t.counted[cut.UID] = true
			}
		case !t.late: // the earlier leader wrote none: what it did shows in the pods
			t.pods.Restore(termination.Report{})
		}
	default:
	}
	if t.earlier == nil {
		return true
	}
	if !t.late && !time.Now().Before(t.awaited) {
		t.late = true
		t.pods.Restore(termination.Report{}) // what an earlier leader did shows in the pods
	}
	return t.late
}

// offer writes the report of the termination, unless that of an earlier leader is not read yet.
func (c *Controller) offer(t *nodeTermination) {
	if t.report.UID != "" && t.earlier == nil {
		c.reports.offer(t.report)
	}
}

// offerReleased writes the report of a released node, once that of an earlier leader is read.
func (c *Controller) offerReleased(t *nodeTermination) {
	if t == nil || t.earlier == nil {
		return
	}
	select {
	case earlier := <-t.earlier:
		t.earlier = nil
		if earlier != nil {
			t.report = t.after(*earlier, t.report)
		}
		c.offer(t)
	default:
	}
}

// followMachine begins to ask about the machine of the node, and anew if the Node got its providerID meanwhile.
func (c *Controller) followMachine(n *v1.Node, t *nodeTermination) {
	if c.Provider != node.Socket || t.machine != nil && t.machine.Instance().ProviderID == n.Spec.ProviderID {
		return
	}
	if t.machine != nil {
		t.machine.End()
		t.proof = proof{renewals: t.proof.renewals, hand: t.proof.hand}
	}
	t.machine = machine.New(t.ctx, c.Instances, instanceOf(n), wasSeen(n), func() { c.loop.Enqueue(t.name) })
}

// stop ends the watch of the Lease, and all calls of the provider.
func (t *nodeTermination) stop() {
	t.end()
	if t.machine != nil {
		t.machine.End()
	}
}

// conclude ends a termination whose node is gone.
func (c *Controller) conclude(t *nodeTermination) {
	t.stop()
	c.Drainer.Forget(t.name)
	c.mu.Lock()
	delete(c.terminations, t.name)
	c.mu.Unlock()
	c.reporter.Forget(t.uid)
	report := t.report
	if t.earlier == nil {
		c.finish(t, report)
		return
	}
	go func(ctx context.Context) { // a report over one that was not read would lose its counts
		if earlier := <-t.earlier; earlier != nil {
			c.finish(t, t.after(*earlier, report))
		} else if ctx.Err() == nil {
			c.finish(t, report)
		}
	}(c.ctx)
}

// finish writes the last report of a termination.
func (c *Controller) finish(t *nodeTermination, report termination.Report) {
	if report.UID == "" { // the node was never reported on
		c.reports.forget(t.uid)
		return
	}
	if report.Phase != termination.PhaseAbandoned {
		report.Phase = termination.PhaseEnded
	}
	c.reports.finish(report)
}

// after returns the last report with what an earlier leader counted.
func (t *nodeTermination) after(earlier, last termination.Report) termination.Report {
	if last.Counts == (termination.Counts{}) { // this process has counted no pod
		unseen := endedUnseen(earlier)
		unseen.Node, unseen.UID, unseen.Phase = t.name, string(t.uid), last.Phase
		return unseen
	}
	added, cutShort := t.pods.Restore(earlier)
	last.Counts, last.CutShort = last.Counts.Plus(added), cutShort
	return last
}

// instanceOf returns the instance of the node, as calls of the provider name it.
func instanceOf(n *v1.Node) instances.Instance {
	i := instances.Instance{ProviderID: n.Spec.ProviderID, Node: n.Name, NodeUID: n.UID}
	for _, address := range n.Status.Addresses {
		i.Addresses = append(i.Addresses, address.Address)
	}
	return i
}

// wasSeen reports whether the provider knew the machine of the node.
func wasSeen(n *v1.Node) bool {
	seen, exists := n.Annotations[termination.InstanceAnnotation]
	return exists && seen == n.Spec.ProviderID
}

// wrote remembers the answer to an own write, until the cache has it.
func (t *nodeTermination) wrote(n *v1.Node) {
	trimmed, _ := trimNode(n)
	t.mu.Lock()
	defer t.mu.Unlock()
	t.written, _ = trimmed.(*v1.Node)
}

// newer returns the cached node, or the answer to an own write that the cache has not seen yet.
func (t *nodeTermination) newer(cached *v1.Node) *v1.Node {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.written == nil || t.written.UID != cached.UID {
		return cached
	}
	order, err := resourceversion.CompareResourceVersion(cached.ResourceVersion, t.written.ResourceVersion)
	if err != nil || order >= 0 {
		t.written = nil
		return cached
	}
	return t.written
}

// background runs the write unless the busy one still runs: nothing that waits for a webhook delays Stop.
func (c *Controller) background(t *nodeTermination, busy *bool, write write) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if *busy {
		return
	}
	*busy = true
	go func() {
		ctx, cancel := context.WithTimeout(c.ctx, writeTimeout)
		defer cancel()
		err := write(ctx)
		wait := undonePause
		if err != nil {
			wait = writePause
		}
		time.AfterFunc(wait, func() {
			t.mu.Lock()
			*busy = false
			t.mu.Unlock()
			c.loop.Enqueue(t.name)
		})
	}()
}
