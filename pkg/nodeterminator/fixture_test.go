package nodeterminator

import (
	"cmp"
	"context"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/client-go/tools/record"

	"github.com/exeunt-io/exeunt/pkg/controller"
	"github.com/exeunt-io/exeunt/pkg/controller/servertime"
	"github.com/exeunt-io/exeunt/pkg/nodeterminator/drain"
	"github.com/exeunt-io/exeunt/pkg/nodeterminator/instances"
	"github.com/exeunt-io/exeunt/pkg/termination"
	"github.com/exeunt-io/exeunt/pkg/termination/node"
)

// scriptedPods are the pods of a node, whose state the test sets. Views are what the controller said of them.
type scriptedPods struct {
	mu     sync.Mutex
	result drain.Result
	// last is the result once the node is released.
	last  drain.Result
	views []drain.View
	// earlier is the report that was restored.
	earlier termination.Report
	// restored is how often that was.
	restored int
	// sight is what is seen of a node that lives, and looks is how often it was looked at.
	sight drain.Sight
	looks int
	// forgotten are the nodes whose pods are not watched any more.
	forgotten []string
}

func (p *scriptedPods) Look(time.Time) drain.Sight {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.looks++
	return p.sight
}

func (p *scriptedPods) Restore(report termination.Report) (termination.Counts, []termination.CutShort) {
	p.earlier = report
	p.restored++
	return report.Counts, report.CutShort
}

func (p *scriptedPods) Reconcile(_ context.Context, view drain.View) (drain.Result, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.views = append(p.views, view)
	return p.result, nil
}

func (p *scriptedPods) Last() drain.Result {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.last
}

func (p *scriptedPods) Pods(string, types.UID) Pods { return p }

// Forget notes that the pods of the node are not watched any more.
func (p *scriptedPods) Forget(node string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.forgotten = append(p.forgotten, node)
}

// recorder returns a recorder that sends each event to the channel.
func recorder(told chan string) *record.FakeRecorder { return &record.FakeRecorder{Events: told} }

// seen returns all views.
func (p *scriptedPods) seen() []drain.View {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(p.views)
}

// removes reports whether pods were removed with grace 0.
func (p *scriptedPods) removes() bool {
	for _, view := range p.seen() {
		if view.Drain && view.Proven {
			return true
		}
	}
	return false
}

// machines is a provider whose answers the test sets. Calls are the verbs with the providerID.
type machines struct {
	mu    sync.Mutex
	state instances.State
	// states are those of machines that have another one.
	states map[string]instances.State
	calls  []string
}

// called returns all calls.
func (m *machines) called() []string {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.Clone(m.calls)
}

func (m *machines) call(verb string, i instances.Instance) (instances.State, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.calls = append(m.calls, verb+" "+i.ProviderID)
	return cmp.Or(m.states[i.ProviderID], m.state), nil
}

func (m *machines) Get(_ context.Context, i instances.Instance) (instances.State, error) {
	return m.call("get", i)
}

func (m *machines) Stop(_ context.Context, i instances.Instance) (instances.State, error) {
	return m.call("stop", i)
}

func (m *machines) Delete(_ context.Context, i instances.Instance) (instances.State, error) {
	return m.call("delete", i)
}

// world is a controller without its loops, in virtual time.
type world struct {
	*Controller
	t        *testing.T
	client   *fake.Clientset
	pods     *scriptedPods
	machines *machines
	// end ends the context of the controller.
	end context.CancelFunc
}

// inWorld runs a test with a controller whose API server has the objects.
func inWorld(t *testing.T, test func(w *world), objects ...runtime.Object) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		w := &world{t: t, client: fake.NewClientset(objects...), machines: &machines{state: instances.Running},
			pods: &scriptedPods{result: drain.Result{Synced: true, Settled: true}}}
		caches, err := NewCaches(informers.NewSharedInformerFactory(w.client, 0))
		if err != nil {
			t.Fatal(err)
		}
		w.Controller = New(Config{Client: w.client, Caches: caches, Drainer: w.pods, Provider: node.Socket,
			Instances: w.machines, Recorder: &record.FakeRecorder{}, Clock: servertime.New(), Namespace: "exeunt-system"})
		ctx, end := context.WithCancel(t.Context())
		w.ctx, w.end = ctx, end
		go w.loop.Run(ctx, 0) // ends its queue
		test(w)
		end()
		<-time.After(controller.ShutdownGracePeriod + time.Second) // requests of workers end
		synctest.Wait()
		for _, one := range w.terminations {
			w.conclude(one)
		}
		synctest.Wait()
	})
}

// begun returns the termination of the node, which the cache has from now on.
func (w *world) begun(n *v1.Node) *nodeTermination {
	w.t.Helper()
	w.cached(n)
	one := w.follow(w.latest(n.Name), n.Name)
	if one == nil {
		w.t.Fatal("no termination")
	}
	synctest.Wait()
	return one
}

// cached puts the node into the cache.
func (w *world) cached(n *v1.Node) {
	w.t.Helper()
	if err := w.caches.Nodes.GetStore().Add(n); err != nil {
		w.t.Fatal(err)
	}
}

// before has a function run before each such request.
func (w *world) before(verb, resource string, run func(clienttesting.Action)) {
	w.client.PrependReactor(verb, resource, func(action clienttesting.Action) (bool, runtime.Object, error) {
		run(action)
		return false, nil, nil
	})
}

// renew renews the Lease of the node, as its kubelet does, and has the watch show it.
func (w *world) renew(name string) {
	w.t.Helper()
	leases := coordinationv1.SchemeGroupVersion.WithResource("leases")
	if err := w.client.Tracker().Update(leases, leaseAt(name, time.Now()), v1.NamespaceNodeLease); err != nil {
		w.t.Error(err)
	}
	<-time.After(time.Second)
}

func leaseAt(name string, at time.Time) *coordinationv1.Lease {
	renewed := metav1.NewMicroTime(at)
	return &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: v1.NamespaceNodeLease},
		Spec: coordinationv1.LeaseSpec{RenewTime: &renewed}}
}

// deletedNode returns a node that was deleted at this time, with the label.
func deletedNode(name, period string, at time.Time) *v1.Node {
	deleted, none := metav1.NewTime(at.Truncate(time.Second)), int64(0)
	return &v1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID("uid-" + name), ResourceVersion: "7",
		DeletionTimestamp: &deleted, DeletionGracePeriodSeconds: &none, Labels: map[string]string{termination.Label: period},
		Finalizers: []string{termination.Finalizer}}, Spec: v1.NodeSpec{ProviderID: "mock://" + name}}
}

// withFirstAction adds the taint of the first action.
func withFirstAction(n *v1.Node, at time.Time) *v1.Node {
	added := metav1.NewTime(at.Truncate(time.Second))
	n.Spec.Taints = append(n.Spec.Taints, v1.Taint{Key: termination.DisruptedTaint, Effect: v1.TaintEffectNoSchedule,
		TimeAdded: &added})
	return n
}
