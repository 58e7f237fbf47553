package nodes

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/exeunt-io/exeunt/pkg/termination"
	"github.com/exeunt-io/exeunt/pkg/termination/pod"
	"github.com/exeunt-io/exeunt/test/cloudmock/machines"
	"github.com/exeunt-io/exeunt/test/faultproxy"
	"github.com/exeunt-io/exeunt/test/sandbox"
)

const (
	// faultedApart is the time between two nodes: an API server that is overloaded is another fault.
	faultedApart = 300 * time.Millisecond
	// conflict stands for 409: of the API server for a patch, of a webhook for another write.
	conflict faultproxy.Kind = "409"
)

// writeFaults are what may happen to a write: the request is lost, its answer is lost, 500, 429, 409.
var writeFaults = []faultproxy.Kind{faultproxy.CutBefore, faultproxy.CutAfter, faultproxy.InternalError,
	faultproxy.TooManyRequests, conflict}

// writesOfEnd are the writes of a termination by kind, and how many of each there are: of reports more on a slow machine,
// for they are written once in 5 s.
var writesOfEnd = []plannedWrites{{"create configmaps", 1}, {"patch configmaps", 4}, {"patch nodes", 3},
	{"create pods/eviction", 2}, {"patch pods/status", 5}, {"delete pods", 6}}

// plannedWrites are writes of one kind, and how many of them have faults.
type plannedWrites struct {
	kind string
	most int
}

// plannedFaults returns each fault of each write of a termination.
func plannedFaults() (all []plannedFault) {
	for _, writes := range writesOfEnd {
		for n := range writes.most {
			for _, kind := range writeFaults {
				all = append(all, plannedFault{kind, writes.kind, n})
			}
		}
	}
	return all
}

// TestEachWriteFails ends many equal nodes at once, without a fault, and with one in the n-th write of a kind. The end and
// the report are the same.
func TestEachWriteFails(t *testing.T) {
	plan := &plan{owners: map[string]string{}, faults: map[string]plannedFault{}, writes: map[string][]string{}}
	faults := plannedFaults()
	e := startEndingBehind(t, 1+len(faults), faultproxy.Config{Choose: plan.choose}, "--instances=socket",
		"--instances-socket=SOCKET")
	var ends []*faultedEnd
	for _, name := range e.Nodes {
		ends = append(ends, &faultedEnd{ending: e, name: name})
	}
	all(ends, (*faultedEnd).prepare)
	for i, end := range ends {
		plan.add(end)
		if i > 0 {
			plan.faults[end.name] = faults[i-1]
		}
	}
	for _, end := range ends { // each node is cut off right before it is deleted
		end.fault(machines.Fault{Node: end.name, Kind: machines.Partition})
		end.start()
		sandbox.Pause(e.Ctx, faultedApart)
	}
	want := ends[0].result()
	t.Logf("without a fault: %+v, writes %q", want, plan.writesOf(ends[0].name))
	for _, end := range ends[1:] {
		if got := end.result(); !got.is(want, plan.refusedEviction(end.name)) {
			t.Errorf("%s: %+v; writes %q", plan.faults[end.name], got, plan.writesOf(end.name))
		}
	}
	plan.expectAll(t, ends[0].name)
	e.expectNever(machines.Event{Event: machines.TwoWriters})
}

// all calls the function for some at a time.
func all(ends []*faultedEnd, act func(*faultedEnd)) {
	var running sync.WaitGroup
	slots := make(chan struct{}, 16)
	for _, end := range ends {
		slots <- struct{}{}
		running.Go(func() {
			defer func() { <-slots }()
			act(end)
		})
	}
	running.Wait()
}

// plannedFault is a fault of the n-th write of a kind, counted from 0; "" is any. The order of writes depends on load.
type plannedFault struct {
	kind  faultproxy.Kind
	write string
	n     int
}

// String names the fault.
func (f plannedFault) String() string { return fmt.Sprintf("%s of %q %d", f.kind, f.write, f.n) }

// hits reports whether the last of the writes has the fault.
func (f plannedFault) hits(writes []string) bool {
	last, before := writes[len(writes)-1], 0
	for _, write := range writes[:len(writes)-1] {
		if f.write == "" || write == f.write {
			before++
		}
	}
	return before == f.n && (f.write == "" || last == f.write)
}

// plan has the faults of all nodes, and what was written.
type plan struct {
	mu sync.Mutex
	// owners are the nodes by name and UID of what is written.
	owners map[string]string
	faults map[string]plannedFault
	writes map[string][]string
	// reads: single reads are counted, instead of writes.
	reads bool
	// hit are the faults that happened, as "KIND VERB RESOURCE".
	hit map[string]bool
}

// add has the requests for the node counted.
func (p *plan) add(end *faultedEnd) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.owners[end.name], p.owners["node-termination-"+string(end.uid)] = end.name, end.name
	for _, pod := range end.pods {
		p.owners[pod.Name] = end.name
	}
}

// choose counts the request, and returns its fault. Events may be lost: they are not counted.
func (p *plan) choose(of faultproxy.Fault) faultproxy.Kind {
	p.mu.Lock()
	defer p.mu.Unlock()
	node := p.owners[of.Name]
	if lists := of.Verb == "list" || of.Verb == "watch"; node == "" || of.Resource == "events" || lists ||
		(of.Verb == "get") != p.reads {
		return ""
	}
	write := of.Verb + " " + of.Resource
	p.writes[node] = append(p.writes[node], write)
	fault, planned := p.faults[node]
	if !planned || !fault.hits(p.writes[node]) {
		return ""
	}
	if p.hit == nil {
		p.hit = map[string]bool{}
	}
	p.hit[string(fault.kind)+" "+write] = true
	switch {
	case fault.kind == conflict && of.Verb == "patch":
		return faultproxy.Conflict
	case fault.kind == conflict:
		return faultproxy.DeniedConflict
	}
	return fault.kind
}

// refusedEviction reports whether the fault was the refusal of an eviction, or its loss.
func (p *plan) refusedEviction(node string) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.faults[node].write == "create pods/eviction"
}

func (p *plan) writesOf(node string) []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(p.writes[node])
}

// expectAll wants each fault in each kind of write, and no other kind in the termination without a fault.
func (p *plan) expectAll(t *testing.T, node string) {
	t.Helper()
	for _, write := range p.writesOf(node) {
		if !slices.ContainsFunc(writesOfEnd, func(planned plannedWrites) bool { return planned.kind == write }) {
			t.Errorf("no fault is planned in %s", write)
		}
	}
	for _, planned := range writesOfEnd {
		for _, kind := range writeFaults {
			if !p.hit[string(kind)+" "+planned.kind] {
				t.Errorf("there was no fault %s in %s; there were %q", kind, planned.kind, slices.Sorted(maps.Keys(p.hit)))
			}
		}
	}
}

// faultedEnd is a node that ends: its kubelet is cut off, so that everything has to be forced.
type faultedEnd struct {
	*ending
	name string
	uid  types.UID
	pods []*v1.Pod
}

// prepare creates a pod that is evicted, one behind a full budget, one with a disk that says do-not-disrupt, and one that
// is deleted with an hour of grace.
func (f *faultedEnd) prepare() {
	f.label(f.name, "16s")
	f.seen(f.name)
	f.pods = []*v1.Pod{
		f.pod(f.name, "free", grace(4)),
		f.pod(f.name, "budgeted", grace(4)),
		f.pod(f.name, "db", stuck, grace(3600), f.withDisk(f.name)),
		f.pod(f.name, "terminating", stuck, grace(3600)),
	}
	f.uid = f.node(f.name).UID
	f.apply(strings.ReplaceAll(fullBudget, "APP", f.name+"-budgeted"))
	f.Until("the budget counts the pod", func() bool {
		budgets := f.Client.PolicyV1().PodDisruptionBudgets(f.Namespace)
		budget, err := budgets.Get(f.Ctx, f.name+"-budgeted", metav1.GetOptions{})
		f.Must(err, "read budget")
		return budget.Status.CurrentHealthy == 1
	})
}

const fullBudget = `
apiVersion: policy/v1
kind: PodDisruptionBudget
metadata: {name: APP, namespace: NAMESPACE}
spec: {minAvailable: 1, selector: {matchLabels: {app: APP}}}
`

func (f *faultedEnd) start() {
	f.deleteWithGrace(f.name+"-terminating", 3600)
	f.delete(f.name)
}

// faultedResult is what must not depend on faults. Seconds may: a request that is lost is sent again after a second.
type faultedResult struct {
	phase  termination.Phase
	counts termination.Counts
	// cut are the pods that were cut short or deleted against what protects them, with their grace period, and why.
	cut   map[string]int64
	why   map[string]string
	left  int
	disks string
}

// is reports whether both are the same. If an eviction was refused, that is why a pod was deleted, and a pod may be
// named that otherwise would have been evicted. An eviction at L that a busy API server does not answer in half a second
// counts as refused, for 30 s in the namespace of all nodes.
func (r faultedResult) is(want faultedResult, refused bool) bool {
	want.why = maps.Clone(want.why)
	for name, why := range r.why {
		if slices.Contains([]string{why, want.why[name]}, string(pod.EvictionRefused)) {
			want.why[name] = why
		}
	}
	if refused {
		r.why = want.why
		if _, named := want.cut["free"]; !named {
			delete(r.cut, "free")
		}
	}
	return reflect.DeepEqual(r, want)
}

// result waits for the end of the node.
func (f *faultedEnd) result() faultedResult {
	f.awaitGone(f.name)
	f.AwaitEvent(machines.Event{Volume: f.disk(f.name), Event: machines.Detached})
	report := f.awaitPhase(f.uid, termination.PhaseEnded)
	r := faultedResult{phase: report.Phase, counts: report.Counts, left: len(report.Left), cut: map[string]int64{},
		why: map[string]string{}, disks: f.Story(machines.Event{Volume: f.disk(f.name)})}
	for _, cut := range report.CutShort {
		name := strings.TrimPrefix(cut.Pod, f.Namespace+"/"+f.name+"-")
		r.cut[name], r.why[name] = cut.Given+cut.Missing, cut.Reason
	}
	for _, pod := range f.pods {
		if f.getPod(pod.Name) != nil {
			r.left++
		}
	}
	return r
}

// startEndingBehind is startEnding with a proxy between node-terminator and the API server.
func startEndingBehind(t *testing.T, nodes int, config faultproxy.Config, flags ...string) *ending {
	t.Helper()
	e := startEnding(t, nodes, flags...)
	e.Must(e.terminator.Kill(), "kill node-terminator")
	_, e.kubeconfig = e.NewFaultProxy(sandbox.NodeTerminatorAccount, config)
	e.begin()
	return e
}
