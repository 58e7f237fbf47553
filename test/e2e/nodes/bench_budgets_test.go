package nodes

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/tools/cache"

	"github.com/exeunt-io/exeunt/test/sandbox"
)

// podsPerBudget is the number of pods of each Deployment.
const podsPerBudget = 10

// budgetManifest is a Deployment that may lack one pod.
const budgetManifest = `---
apiVersion: apps/v1
kind: Deployment
metadata: {name: APP, namespace: NAMESPACE}
spec:
  replicas: 10
  selector: {matchLabels: {app: APP}}
  template:
    metadata: {labels: {app: APP}, annotations: {cloudmock.exeunt.io/ready-after: 1s}}
    spec:
      nodeSelector: {fit: ""}
      containers: [{name: main, image: image}]
---
apiVersion: policy/v1
kind: PodDisruptionBudget
metadata: {name: APP, namespace: NAMESPACE}
spec: {maxUnavailable: 1, selector: {matchLabels: {app: APP}}}
`

// BenchmarkTerminationWithBudgets deletes b.N nodes with 30 pods each at once. Each ten pods have a budget with room
// for one, and replacements are ready after a second, on other nodes. It reports the time until the last eviction,
// against that of a loop that evicts the pods of each budget one after the other, once the budget has room; the
// evictions for a pod, and those that were refused; and how many of a budget were in flight at most.
func BenchmarkTerminationWithBudgets(b *testing.B) {
	e := startBenchmark(b, longLeases, 2*b.N)
	others, ours := e.Nodes[:b.N], e.Nodes[b.N:]
	count := b.N * podsPerNode
	e.fitAll(others)
	var text strings.Builder
	for i := range count / podsPerBudget {
		text.WriteString(strings.ReplaceAll(budgetManifest, "APP", fmt.Sprint("app-", i)))
	}
	e.apply(text.String())
	pods := e.awaitRoom(others, count)
	e.move(others, ours)
	ceiling := e.evictWithRoom(pods)
	pods = e.awaitRoom(ours, count)
	e.move(ours, others)
	e.serve(ours)
	began := e.removeAll(ours, e.removeNode)
	for _, name := range ours {
		e.awaitGone(name)
	}
	gone := time.Since(began)
	sent := e.requestsSince(began)
	evictions := sent.only(isEviction)
	evicted := evictions.last().Sub(began)
	refused := evictions.only(func(one sandbox.Event) bool { return one.Code >= 300 })
	b.Logf("%d nodes: loop %v, last eviction %v, last node gone %v, requests %v", b.N, ceiling, evicted, gone, sent)
	b.ReportMetric(evicted.Seconds()/ceiling.Seconds(), "times-ceiling")
	b.ReportMetric(evictions.per(count), "evictions/pod")
	b.ReportMetric(refused.per(count), "refused/pod")
	b.ReportMetric(sent.only(e.tellsOfPod).per(count), "events/pod")
	b.ReportMetric(float64(inFlight(evictions, pods)), "in-flight/budget")
}

// fitAll lets pods of all Deployments onto the nodes.
func (e *ending) fitAll(nodes []string) {
	e.T.Helper()
	parallel(len(nodes), 20, func(i int) { e.fit(nodes[i], "fit") })
}

// move lets new pods onto other nodes only.
func (e *ending) move(from, to []string) {
	e.T.Helper()
	parallel(len(from), 20, func(i int) { e.unfit(from[i], "fit") })
	e.fitAll(to)
}

// awaitRoom waits until so many pods are ready, all of them on the nodes, and each budget has room.
func (e *ending) awaitRoom(nodes []string, count int) []v1.Pod {
	e.T.Helper()
	pods := e.awaitPods(nodes, count)
	e.awaitBudgets(func(budget policyv1.PodDisruptionBudget) bool { return budget.Status.DisruptionsAllowed > 0 })
	return pods
}

func (e *ending) awaitBudgets(holds func(policyv1.PodDisruptionBudget) bool) {
	e.T.Helper()
	e.awaitList("all budgets are counted", func() bool {
		list, err := e.Client.PolicyV1().PodDisruptionBudgets(e.Namespace).List(e.Ctx,
			metav1.ListOptions{ResourceVersion: "0"})
		e.Must(err, "list budgets")
		return !slices.ContainsFunc(list.Items, func(one policyv1.PodDisruptionBudget) bool { return !holds(one) })
	})
}

// evictWithRoom evicts the pods of each budget one after the other, and returns how long that took.
func (e *ending) evictWithRoom(pods []v1.Pod) time.Duration {
	e.T.Helper()
	byBudget := map[string][]v1.Pod{}
	rooms := map[string]chan struct{}{}
	for _, pod := range pods {
		app := pod.Labels["app"]
		byBudget[app], rooms[app] = append(byBudget[app], pod), make(chan struct{}, 1)
	}
	stop := e.watchRooms(rooms)
	defer stop()
	var running sync.WaitGroup
	slots := make(chan struct{}, 64)
	began := time.Now()
	for app, some := range byBudget {
		running.Go(func() {
			for _, pod := range some {
				e.evictOnce(pod.Name, rooms[app], slots)
			}
		})
	}
	running.Wait()
	return time.Since(began)
}

// evictOnce evicts the pod once its budget has room. What the watch shows may be old: then the budget refuses.
func (e *ending) evictOnce(pod string, room <-chan struct{}, slots chan struct{}) {
	e.T.Helper()
	for {
		select {
		case <-room:
		case <-e.Ctx.Done():
			e.Must(e.Ctx.Err(), "await room in the budget of "+pod)
		}
		slots <- struct{}{}
		err := e.evict(pod)
		<-slots
		if !apierrors.IsTooManyRequests(err) {
			e.Must(err, "evict pod")
			return
		}
	}
}

// watchRooms tells each budget that has room, until stop is called.
func (e *ending) watchRooms(rooms map[string]chan struct{}) (stop func()) {
	e.T.Helper()
	factory := informers.NewSharedInformerFactoryWithOptions(e.Client, 0, informers.WithNamespace(e.Namespace))
	tell := func(object any) {
		if budget := object.(*policyv1.PodDisruptionBudget); budget.Status.DisruptionsAllowed > 0 {
			select {
			case rooms[budget.Name] <- struct{}{}:
			default:
			}
		}
	}
	_, err := factory.Policy().V1().PodDisruptionBudgets().Informer().AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc: tell, UpdateFunc: func(_, object any) { tell(object) }})
	e.Must(err, "watch budgets")
	ended := make(chan struct{})
	factory.Start(ended)
	factory.WaitForCacheSync(ended)
	return func() {
		close(ended)
		factory.Shutdown()
	}
}

// inFlight returns how many evictions of one budget were in flight at most.
func inFlight(evictions requests, pods []v1.Pod) int {
	budgets, byBudget := map[string]string{}, map[string]requests{}
	for _, pod := range pods {
		budgets[pod.Name] = pod.Labels["app"]
	}
	for _, one := range evictions {
		byBudget[budgets[one.Name]] = append(byBudget[budgets[one.Name]], one)
	}
	most := 0
	for _, some := range byBudget {
		for _, one := range some {
			sent := one.Time.Add(-one.Duration)
			most = max(most, len(some.only(func(other sandbox.Event) bool {
				return !other.Time.Add(-other.Duration).After(sent) && other.Time.After(sent)
			})))
		}
	}
	return most
}

// forcedGrace is the grace period of pods that are deleted at L.
const forcedGrace = 10

// BenchmarkTerminationBlocked deletes b.N nodes with 30 pods each, which have one L. Each node has a budget without
// room, which changes once before L. It reports the time from L to the last DELETE, against that of a loop that sends
// as many DELETE requests with the same grace period, and of one that sends conditions and events, too; the evictions
// for each change of a budget; and the requests for each pod that is forced, its event included.
func BenchmarkTerminationBlocked(b *testing.B) {
	e := startBenchmark(b, longLeases, 3*b.N)
	ours, count := e.Nodes[2*b.N:], b.N*podsPerNode
	deletes := e.ceiling(e.Nodes[:b.N], e.deletePod, grace(forcedGrace))
	all := e.ceiling(e.Nodes[b.N:2*b.N], e.forcePod, grace(forcedGrace))
	e.fill(ours, podsPerNode, grace(forcedGrace), func(p *v1.Pod) { p.Labels["guard"] = p.Spec.NodeName })
	parallel(b.N, 20, func(i int) { e.guard(ours[i]) })
	e.awaitBudgets(func(one policyv1.PodDisruptionBudget) bool { return one.Status.CurrentHealthy == podsPerNode })
	e.serve(ours)
	// All first actions are written before L, and D is 20 s after R at least, so that P is 5 s before D.
	end := e.endBy(ours, 27*time.Second+time.Duration(b.N)*100*time.Millisecond)
	began := e.removeAll(ours, e.removeNode)
	parallel(b.N, 20, func(i int) { e.changeGuard(ours[i]) })
	for _, name := range ours {
		e.awaitGone(name)
	}
	sent := e.requestsSince(began)
	deletions, evictions := sent.only(isDeletion).firsts(), sent.only(isEviction)
	forced := sent.only(func(one sandbox.Event) bool {
		return e.tellsOfPod(one) || writesPod(one) && !isEviction(one)
	})
	l := end.Add(-(5 + forcedGrace) * time.Second)
	last := deletions.last().Sub(l)
	b.Logf("%d nodes: loops %v and %v, DELETE from %v to %v after L, %d at once, requests %v", b.N, deletes, all,
		deletions.first().Sub(l), last, len(deletions), sent)
	b.ReportMetric(last.Seconds()/deletes.Seconds(), "times-deletes")
	b.ReportMetric(last.Seconds()/all.Seconds(), "times-all-requests")
	b.ReportMetric(evictions.per(b.N), "evictions/change")
	b.ReportMetric(forced.per(count), "requests/pod")
}

// firsts returns the first request about each object: pods that are left when the machine is off are removed by a second one.
func (r requests) firsts() requests {
	slices.SortFunc(r, func(a, b sandbox.Event) int { return a.Time.Compare(b.Time) })
	seen := sets.New[string]()
	return r.only(func(one sandbox.Event) bool {
		defer seen.Insert(one.Name)
		return !seen.Has(one.Name)
	})
}

// first returns when the first request was sent, the zero time if there is none.
func (r requests) first() (at time.Time) {
	for _, one := range r {
		if sent := one.Time.Add(-one.Duration); at.IsZero() || sent.Before(at) {
			at = sent
		}
	}
	return at
}

// deletePod deletes the pod as node-terminator does at L.
func (e *ending) deletePod(name string) error {
	seconds := int64(forcedGrace)
	return e.Client.CoreV1().Pods(e.Namespace).Delete(e.Ctx, name, metav1.DeleteOptions{GracePeriodSeconds: &seconds})
}

// forcePod sends all requests that node-terminator sends for a pod at L: condition, DELETE and event.
func (e *ending) forcePod(name string) error {
	pods := e.Client.CoreV1().Pods(e.Namespace)
	_, err := pods.Patch(e.Ctx, name, types.StrategicMergePatchType,
		[]byte(`{"status":{"conditions":[{"type":"DisruptionTarget","status":"True","reason":"Loop"}]}}`),
		metav1.PatchOptions{}, "status")
	if err == nil {
		err = e.deletePod(name)
	}
	if err == nil {
		_, err = e.Client.CoreV1().Events(e.Namespace).Create(e.Ctx, &v1.Event{
			ObjectMeta:     metav1.ObjectMeta{GenerateName: "loop-"},
			InvolvedObject: v1.ObjectReference{Kind: "Pod", Namespace: e.Namespace, Name: name},
			Type:           v1.EventTypeWarning, Reason: "Disrupted", Message: "The loop ends the pod",
		}, metav1.CreateOptions{})
	}
	return err
}

// guard creates a budget for the pods of the node that has no room.
func (e *ending) guard(node string) {
	e.T.Helper()
	least := intstr.FromInt32(podsPerNode)
	_, err := e.Client.PolicyV1().PodDisruptionBudgets(e.Namespace).Create(e.Ctx, &policyv1.PodDisruptionBudget{
		ObjectMeta: metav1.ObjectMeta{Name: node},
		Spec: policyv1.PodDisruptionBudgetSpec{MinAvailable: &least,
			Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"guard": node}}},
	}, metav1.CreateOptions{})
	e.Must(err, "create budget")
}

// changeGuard changes the budget, which has no room after that either.
func (e *ending) changeGuard(node string) {
	e.T.Helper()
	_, err := e.Client.PolicyV1().PodDisruptionBudgets(e.Namespace).Patch(e.Ctx, node, mergePatch,
		fmt.Appendf(nil, `{"spec":{"minAvailable":%d}}`, podsPerNode+1), metav1.PatchOptions{})
	e.Must(err, "change budget")
}
