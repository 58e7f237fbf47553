package runner

import (
	"context"
	"io"
	"slices"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/exeunt-io/exeunt/pkg/provisioner/identity"
	"github.com/exeunt-io/exeunt/pkg/rollback"
	"github.com/exeunt-io/exeunt/pkg/why/cluster"
)

// PVController is the name that Options.Stopped has for pv-controller.
const PVController = "pv-controller"

// Options are what the administrator wants.
type Options struct {
	// Connect returns a new Reader of the cluster.
	Connect  func() (*cluster.Reader, error)
	Commands cluster.Commands
	// Confirm carries out the steps that can be carried out.
	Confirm bool
	// Save is the file for open entries of the journal, "" for a name with the time.
	Save string
	// Stopped are drivers whose provisioner of Exeunt has ended, or PVController.
	Stopped []string
	// Unserved are drivers that have no provisioner any more. UnservedLoops: no program runs
	// the loops for volumes and claims.
	Unserved      []string
	UnservedLoops bool
	// AbandonDisk are PersistentVolumes whose disks may stay in storage.
	AbandonDisk []string
	// DeadlinesOnly: kube-apiserver alone goes back, and the other programs of Exeunt stay.
	DeadlinesOnly bool
	// NodesOnly: node-terminator alone is uninstalled.
	NodesOnly bool
	// Timeout is how long the cluster is read.
	Timeout time.Duration
	// Progress gets a line for each change.
	Progress io.Writer
}

// named reports whether the administrator says that the program of Exeunt for the driver
// has ended. A driver that only its Lease shows has the name of the Lease.
func (o *Options) named(driver string) bool {
	return slices.ContainsFunc(slices.Concat(o.Stopped, o.Unserved), func(name string) bool {
		return name == driver || identity.LeaseName(name) == driver
	})
}

// Run observes the cluster, changes it if confirmed, and returns the plan for what is left.
func Run(ctx context.Context, o Options) (Plan, error) {
	seen, err := o.observe(ctx)
	if err != nil || !o.Confirm {
		return newPlan(seen), err
	}
	changed, err := o.execute(ctx, seen)
	if err != nil || !changed {
		return newPlan(seen), err
	}
	again, err := o.observe(ctx)
	if err != nil {
		return Plan{}, err
	}
	again.unmatched = seen.unmatched // what has just been removed is no longer found by its name
	return newPlan(again), nil
}

// observe reads the cluster.
func (o *Options) observe(ctx context.Context) (*observation, error) {
	reader, err := o.Connect()
	if err != nil {
		return nil, err
	}
	reading, cancel := context.WithTimeout(ctx, o.Timeout)
	defer cancel()
	seen := &observation{options: o, reader: reader, recyclers: map[types.UID]*corev1.Pod{}}
	switch {
	case o.DeadlinesOnly:
		seen.readWindows(reading)
		return seen, context.Cause(ctx)
	case o.NodesOnly:
		seen.readNodes(reading)
		return seen, context.Cause(ctx)
	}
	seen.readPrograms(reading)
	seen.readPolicy(reading)
	seen.readVolumes(reading)
	seen.readClaims(reading)
	seen.addRecyclers()
	seen.readWindows(reading) // last: a cluster may have many kinds
	seen.decideLeases()
	seen.unmatched = seen.matchNames(reading)
	return seen, context.Cause(ctx)
}

// observation is the observed state of the cluster, and what was decided.
type observation struct {
	options *Options
	reader  *cluster.Reader

	programs programs
	// known are names that values of flags can match, unmatched the values that match nothing.
	known     knownNames
	unmatched unmatched
	// policy are the objects of the admission policy, leases the journal and the leader
	// Lease of pv-controller, own the annotations and finalizers of Exeunt, shared the
	// finalizers that upstream removes as well.
	policy, leases, own, shared list
	// pending are volumes whose disk only the provisioner of Exeunt deletes.
	pending list
	// windows are deletion windows of custom resources. graceAsInEtcd: one is served as in etcd. awaitsServer: none is,
	// and the API server is that of Exeunt, whose gate is not seen off.
	windows                     list
	graceAsInEtcd, awaitsServer bool
	// nodes are Nodes and NodeClaims of node-terminator, and terminator is its leader Lease if a process holds it.
	nodes      list
	terminator *coordinationv1.Lease
	recyclers  map[types.UID]*corev1.Pod
	// upstreams counts the volumes with a finalizer that upstream removes, by finalizer.
	upstreams map[string]int
}

// list are the objects of one step. Unread says that objects of the step could not be read.
type list struct {
	items  []Item
	unread bool
}

// decisions returns the decisions about the objects.
func (l list) decisions() []rollback.Decision {
	all := make([]rollback.Decision, len(l.items))
	for i, item := range l.items {
		all[i] = item.decision
	}
	return all
}

// state returns the state of the step.
func (l list) state() rollback.StepState {
	state := rollback.StateOf(l.decisions())
	if l.unread && state == rollback.Done {
		return rollback.Blocked
	}
	return state
}
