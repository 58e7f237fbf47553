package integration

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/exeunt-io/exeunt/pkg/controller"
	"github.com/exeunt-io/exeunt/pkg/deadline"
	"github.com/exeunt-io/exeunt/pkg/nodeterminator/drain"
	"github.com/exeunt-io/exeunt/pkg/termination"
	"github.com/exeunt-io/exeunt/pkg/termination/node"
	"github.com/exeunt-io/exeunt/pkg/termination/pod"
	"github.com/exeunt-io/exeunt/test/e2e/harness"
	"github.com/exeunt-io/exeunt/test/sandbox"
)

// drainRig drains one node, as the controller of nodes does: it reconciles when the drainer says so, or its time has
// come. The test is the kubelet.
type drainRig struct {
	*harness.Session
	drainer *drain.Drainer
	node    *drain.Node
	name    string
	agent   string
	changed chan struct{}
	ends    func(namespace string) bool

	mu   sync.Mutex
	view drain.View
	last drain.Result
}

// startDisruptions starts a cluster whose budgets the real disruption controller keeps.
func startDisruptions(t *testing.T) *harness.Cluster {
	t.Helper()
	s := harness.Own(t, harness.Setup{NoPrograms: true})
	process, err := s.Plane.StartControllerManager(s.Ctx, "disruption-controller", sandbox.Controller{
		Args: []string{"--secure-port=0", "--kube-api-qps=5000", "--kube-api-burst=5000"}})
	s.Must(err, "start kube-controller-manager")
	s.Add(process)
	return s.Cluster
}

// newDrainRig returns a rig for a termination that was requested now, and has this time until P.
func newDrainRig(t *testing.T, c *harness.Cluster, untilP time.Duration, change ...func(*drainRig)) *drainRig {
	t.Helper()
	s := harness.NewSession(t, c)
	r := &drainRig{Session: s, name: "node-" + s.Namespace, agent: "drain-" + s.Namespace, changed: make(chan struct{}, 1)}
	now := time.Now()
	r.view = drain.View{Begun: now, Drain: true, Deadline: deadline.Of(now, deadline.Limited(untilP+deadline.Unmounting))}
	r.view.Times, r.view.Tainted = r.view.Deadline.Times(now, false), now
	for _, f := range change {
		f(r)
	}
	return r
}

// drain begins to drain, until the test ends.
func (r *drainRig) drain() {
	r.T.Helper()
	ctx, stop := context.WithCancel(r.Ctx)
	config := rest.CopyConfig(r.Plane.RESTConfig())
	config.UserAgent = r.agent
	evictions, forced, err := drain.Lanes(config)
	r.Must(err, "make clients")
	factory := informers.NewSharedInformerFactory(r.Client, 0)
	budgets := factory.Policy().V1().PodDisruptionBudgets().Informer()
	factory.StartWithContext(ctx)
	factory.WaitForCacheSync(ctx.Done())
	recorder, shutdown := controller.Recorder(ctx, r.Client, "node-terminator")
	r.drainer = drain.New(ctx, drain.Config{Client: kubernetes.NewForConfigOrDie(config),
		Evictions: evictions, Forced: forced,
		Budgets: budgets, NamespaceEnds: r.ends, Recorder: recorder, Notify: func(string) {
			select {
			case r.changed <- struct{}{}:
			default:
			}
		}})
	r.node = r.drainer.Node(r.name, types.UID(r.name))
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		r.run(ctx)
	}()
	r.T.Cleanup(func() {
		stop()
		<-ended
		r.drainer.Wait()
		factory.Shutdown()
		shutdown()
	})
}

func (r *drainRig) run(ctx context.Context) {
	for {
		r.mu.Lock()
		r.view.Now = time.Now()
		result, err := r.node.Reconcile(ctx, r.view)
		if err == nil {
			r.last = result
		}
		r.mu.Unlock()
		var timer <-chan time.Time
		if !result.Next.IsZero() {
			timer = time.After(time.Until(result.Next))
		}
		select {
		case <-ctx.Done():
			return
		case <-r.changed:
		case <-timer:
		}
	}
}

// await waits until the result is so.
func (r *drainRig) await(what string, holds func(drain.Result) bool) drain.Result {
	r.T.Helper()
	var found drain.Result
	r.Until(what, func() bool {
		r.mu.Lock()
		defer r.mu.Unlock()
		found = r.last
		return r.last.Synced && holds(r.last)
	})
	return found
}

// setView changes what the node says of its termination.
func (r *drainRig) setView(change func(*drain.View)) {
	r.mu.Lock()
	change(&r.view)
	r.mu.Unlock()
	r.changed <- struct{}{}
}

func (r *drainRig) pods() interface {
	Get(context.Context, string, metav1.GetOptions) (*v1.Pod, error)
	Delete(context.Context, string, metav1.DeleteOptions) error
} {
	return r.Client.CoreV1().Pods(r.Namespace)
}

// pendingPod creates a Pending pod on the node with this grace period, and the changes.
func (r *drainRig) pendingPod(name string, grace int64, change ...func(*v1.Pod)) *v1.Pod {
	r.T.Helper()
	p := &v1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"app": "web"}},
		Spec: v1.PodSpec{NodeName: r.name, TerminationGracePeriodSeconds: &grace,
			Containers: []v1.Container{{Name: "main", Image: "image"}}}}
	for _, f := range change {
		f(p)
	}
	p, err := r.Client.CoreV1().Pods(r.Namespace).Create(r.Ctx, p, metav1.CreateOptions{})
	r.Must(err, "create pod")
	return p
}

// pod creates a Ready pod on the node with this grace period, and the changes.
func (r *drainRig) pod(name string, grace int64, change ...func(*v1.Pod)) *v1.Pod {
	r.T.Helper()
	p := r.pendingPod(name, grace, change...)
	p.Status.Phase = v1.PodRunning
	p.Status.Conditions = append(p.Status.Conditions, v1.PodCondition{Type: v1.PodReady, Status: v1.ConditionTrue})
	p, err := r.Client.CoreV1().Pods(r.Namespace).UpdateStatus(r.Ctx, p, metav1.UpdateOptions{})
	r.Must(err, "run pod")
	return p
}

func elsewhere(p *v1.Pod) { p.Spec.NodeName = "elsewhere" }

// budget creates a budget of all pods of the app, and waits until the disruption controller has seen it.
func (r *drainRig) budget(name string, minAvailable int, allowed int32) {
	r.T.Helper()
	atLeast := intstr.FromInt(minAvailable)
	client := r.Client.PolicyV1().PodDisruptionBudgets(r.Namespace)
	_, err := client.Create(r.Ctx, &policyv1.PodDisruptionBudget{ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: policyv1.PodDisruptionBudgetSpec{MinAvailable: &atLeast,
			Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}}}}, metav1.CreateOptions{})
	r.Must(err, "create budget")
	r.Until("the budget is observed", func() bool {
		b, err := client.Get(r.Ctx, name, metav1.GetOptions{})
		r.Must(err, "read budget")
		return b.Status.ObservedGeneration == b.Generation && b.Status.ExpectedPods > 0 &&
			b.Status.DisruptionsAllowed == allowed
	})
}

// end ends the pod, as the kubelet does.
func (r *drainRig) end(name string) {
	r.T.Helper()
	var none int64
	r.Must(r.pods().Delete(r.Ctx, name, metav1.DeleteOptions{GracePeriodSeconds: &none}), "end pod")
}

// awaitTerminating waits until the pod is being deleted.
func (r *drainRig) awaitTerminating(name string) *v1.Pod {
	r.T.Helper()
	var p *v1.Pod
	r.Until("pod "+name+" is Terminating", func() bool {
		var err error
		p, err = r.pods().Get(r.Ctx, name, metav1.GetOptions{})
		r.Must(err, "read pod")
		return p.DeletionTimestamp != nil
	})
	return p
}

func (r *drainRig) awaitGone(name string) {
	r.T.Helper()
	r.Until("pod "+name+" is gone", func() bool {
		_, err := r.pods().Get(r.Ctx, name, metav1.GetOptions{})
		return apierrors.IsNotFound(err)
	})
}

// expectLives fails if the pod is being deleted.
func (r *drainRig) expectLives(name string) {
	r.T.Helper()
	p, err := r.pods().Get(r.Ctx, name, metav1.GetOptions{})
	r.Must(err, "read pod")
	if p.DeletionTimestamp != nil {
		r.T.Errorf("pod %s is being deleted", name)
	}
}

// requests returns verb, subresource and code of the requests about the pod by the drainer.
func (r *drainRig) requests(name string) []string {
	r.T.Helper()
	events, err := sandbox.ReadAudit(r.Plane.AuditLog)
	r.Must(err, "read audit log")
	var found []string
	for _, e := range events {
		if e.UserAgent == r.agent && e.Resource == "pods" && e.Name == name && e.Writes() {
			found = append(found, fmt.Sprint(e.Verb, " ", e.Subresource, " ", e.Code))
		}
	}
	return found
}

func (r *drainRig) expectRequests(name string, want ...string) {
	r.T.Helper()
	var got []string
	r.Until("the requests are logged", func() bool {
		got = r.requests(name)
		return len(got) >= len(want)
	})
	if !slices.Equal(got, want) {
		r.T.Errorf("requests about pod %s: %q, want %q", name, got, want)
	}
}

// conditionOf returns the reason of the condition DisruptionTarget.
func conditionOf(p *v1.Pod) string {
	for _, c := range p.Status.Conditions {
		if c.Type == v1.DisruptionTarget {
			return c.Reason
		}
	}
	return ""
}

func leftOf(result drain.Result, p *v1.Pod) termination.Left {
	for _, left := range result.Left {
		if left.UID == string(p.UID) {
			return left
		}
	}
	return termination.Left{}
}

func hasReason(p *v1.Pod, reason pod.Reason) func(drain.Result) bool {
	return func(result drain.Result) bool { return leftOf(result, p).Reason == string(reason) }
}

func podsAre(pods node.Pods) func(drain.Result) bool {
	return func(result drain.Result) bool { return result.Pods == pods }
}
