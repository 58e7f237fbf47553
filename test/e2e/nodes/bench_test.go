package nodes

import (
	"errors"
	"fmt"
	"maps"
	"math"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/exeunt-io/exeunt/pkg/termination"
	"github.com/exeunt-io/exeunt/test/e2e/harness"
	"github.com/exeunt-io/exeunt/test/sandbox"
)

// podsPerNode is the number of pods on each node of the benchmarks.
const podsPerNode = 30

// longLeases has kubelets that renew their Leases each 10 s, as real ones do: those of many nodes are load.
var longLeases = harness.Setup{MachineFlags: "--lease-duration=40s", LoopFlags: "--node-monitor-grace-period=50s"}

// startBenchmark starts so many machines, and node-terminator with their socket.
func startBenchmark(b *testing.B, setup harness.Setup, nodes int, flags ...string) *ending {
	b.Helper()
	return startEndingWith(b, setup, nodes, append(flags, "--instances=socket", "--instances-socket=SOCKET")...)
}

// parallel calls f for 0 to n-1, at most so many at a time.
func parallel(n, atOnce int, f func(int)) {
	var running sync.WaitGroup
	slots := make(chan struct{}, atOnce)
	for i := range n {
		slots <- struct{}{}
		running.Go(func() {
			defer func() { <-slots }()
			f(i)
		})
	}
	running.Wait()
}

// fill creates so many pods on each node, and waits until all run.
func (e *ending) fill(nodes []string, each int, change ...func(*v1.Pod)) {
	e.T.Helper()
	parallel(len(nodes)*each, 50, func(i int) { e.bindPod(nodes[i/each], fmt.Sprint("p", i%each), change...) })
	e.awaitPods(nodes, len(nodes)*each)
}

// awaitPods waits until so many pods are ready, all of them on the nodes.
func (e *ending) awaitPods(nodes []string, count int) (pods []v1.Pod) {
	e.T.Helper()
	on := sets.New(nodes...)
	e.awaitList("all pods are ready", func() bool {
		pods = e.podList()
		return len(pods) == count && !slices.ContainsFunc(pods, func(one v1.Pod) bool {
			return !isReady(one) || one.DeletionTimestamp != nil || !on.Has(one.Spec.NodeName)
		})
	})
	return pods
}

// awaitList is Until for a condition that reads a long list or log: each half second.
func (e *ending) awaitList(what string, holds func() bool) {
	e.T.Helper()
	e.Until(what, func() bool {
		if holds() {
			return true
		}
		sandbox.Pause(e.Ctx, 500*time.Millisecond)
		return false
	})
}

func (e *ending) podList() []v1.Pod {
	e.T.Helper()
	list, err := e.Client.CoreV1().Pods(e.Namespace).List(e.Ctx, metav1.ListOptions{ResourceVersion: "0"})
	e.Must(err, "list pods")
	return list.Items
}

// ceiling fills the nodes with pods, and returns how long a loop takes that ends them.
func (e *ending) ceiling(nodes []string, end func(pod string) error, change ...func(*v1.Pod)) time.Duration {
	e.T.Helper()
	e.fill(nodes, podsPerNode, change...)
	began := time.Now()
	parallel(len(nodes)*podsPerNode, 64, func(i int) {
		e.Must(end(fmt.Sprint(nodes[i/podsPerNode], "-p", i%podsPerNode)), "end pod")
	})
	took := time.Since(began)
	e.awaitList("no pod is left", func() bool { return len(e.podList()) == 0 })
	return took
}

// serve labels the nodes, and waits until node-terminator knows their machines.
func (e *ending) serve(nodes []string) {
	e.T.Helper()
	parallel(len(nodes), 20, func(i int) { e.label(nodes[i], "15m") })
	for _, name := range nodes {
		e.seen(name)
	}
}

// endBy has all nodes end at one time, so long after now.
func (e *ending) endBy(nodes []string, after time.Duration) time.Time {
	e.T.Helper()
	end := time.Now().Add(after).UTC().Truncate(time.Second)
	parallel(len(nodes), 20, func(i int) {
		e.patch(nodes[i], fmt.Sprintf(`{"metadata":{"annotations":{"%s":"%s"}}}`, termination.TimestampAnnotation,
			end.Format(time.RFC3339)))
	})
	return end
}

// removeAll deletes the nodes, and returns when that began.
func (e *ending) removeAll(nodes []string, remove func(name string) error) time.Time {
	e.T.Helper()
	began := time.Now()
	parallel(len(nodes), 20, func(i int) {
		if err := remove(nodes[i]); err != nil && !apierrors.IsNotFound(err) {
			e.Must(err, "delete node")
		}
	})
	return began
}

func (e *ending) removeNode(name string) error {
	return e.Client.CoreV1().Nodes().Delete(e.Ctx, name, metav1.DeleteOptions{})
}

// asTermination sends what a termination sends about a node beside evictions, and a fourth patch for the DELETE of the node.
func (e *ending) asTermination(name string) {
	maps, text := e.Client.CoreV1().ConfigMaps(e.Namespace), []byte(`{"data":{"report.json":"`+strings.Repeat("x", 2000))
	report := &v1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "report-of-" + name}}
	_, err := maps.Create(e.Ctx, report, metav1.CreateOptions{})
	e.Must(err, "create report")
	for i := range 4 {
		e.patch(name, fmt.Sprintf(`{"metadata":{"annotations":{"example.com/step":"%d"}}}`, i))
		if i < 3 {
			_, err = maps.Patch(e.Ctx, report.Name, mergePatch, fmt.Appendf(text, `%d"}}`, i), metav1.PatchOptions{})
			e.Must(err, "patch report")
		}
	}
	for range 2 {
		_, err = e.Client.CoreV1().Nodes().Get(e.Ctx, name, metav1.GetOptions{})
		e.Must(err, "get node")
	}
	_, err = e.Client.StorageV1().VolumeAttachments().List(e.Ctx, metav1.ListOptions{})
	e.Must(err, "list attachments")
	pods, err := e.Client.CoreV1().Pods(metav1.NamespaceAll).Watch(e.Ctx, metav1.ListOptions{FieldSelector: "spec.nodeName=" + name})
	e.Must(err, "watch pods")
	defer pods.Stop()
	lease, err := e.Client.CoordinationV1().Leases(v1.NamespaceNodeLease).Watch(e.Ctx,
		metav1.ListOptions{FieldSelector: "metadata.name=" + name})
	e.Must(err, "watch Lease")
	defer lease.Stop()
}

// BenchmarkTermination deletes b.N nodes with 30 pods each at once, without budgets. It reports the time until the last
// eviction, against that of a loop that evicts as many pods, and of one that sends all other requests, too; the requests for
// a pod and for a node, and the memory of the program at its peak.
func BenchmarkTermination(b *testing.B) {
	benchmark(b, func(*ending, string) {}, (*ending).removeNode)
}

// BenchmarkTerminationByClaim deletes NodeClaims instead. Their requests are added to those of the nodes.
func BenchmarkTerminationByClaim(b *testing.B) {
	benchmark(b, func(e *ending, name string) {
		e.claim(name, termination.ClaimGroup, "15m")
		e.Until("the claim has the finalizer", func() bool { return termination.Protected(e.getClaim(name)) })
	}, func(e *ending, name string) error { return e.claims().Delete(e.Ctx, name, metav1.DeleteOptions{}) })
}

// benchmark prepares b.N nodes beside those of the loop, and deletes them.
func benchmark(b *testing.B, prepare func(*ending, string), remove func(*ending, string) error) {
	b.Helper()
	e := startBenchmark(b, harness.Setup{}, 2*b.N)
	loop, ours := e.Nodes[:b.N], e.Nodes[b.N:]
	evictions := e.ceiling(loop, e.evict)
	all := e.ceiling(loop, func(pod string) error {
		if name, is := strings.CutSuffix(pod, "-p0"); is {
			e.asTermination(name)
		}
		return e.evict(pod)
	})
	e.fill(ours, podsPerNode)
	e.serve(ours)
	parallel(b.N, 20, func(i int) { prepare(e, ours[i]) })
	began := e.removeAll(ours, func(name string) error { return remove(e, name) })
	for _, name := range ours {
		e.awaitGone(name)
	}
	e.Until("no claim is left", func() bool {
		claims, err := e.claims().List(e.Ctx, metav1.ListOptions{})
		e.Must(err, "list NodeClaims")
		return len(claims.Items) == 0
	})
	gone := time.Since(began)
	sent := e.requestsSince(began)
	pods, nodes := sent.only(writesPod), sent.only(concernsNode)
	evicted := pods.last().Sub(began)
	b.Logf("%d nodes: loops %v and %v, last eviction %v, last node gone %v, requests %v", b.N, evictions, all, evicted, gone,
		nodes)
	b.ReportMetric(evicted.Seconds()/evictions.Seconds(), "times-evictions")
	b.ReportMetric(evicted.Seconds()/all.Seconds(), "times-all-requests")
	b.ReportMetric(pods.per(b.N*podsPerNode), "requests/pod")
	b.ReportMetric(sent.only(e.tellsOfPod).per(b.N*podsPerNode), "events/pod")
	b.ReportMetric(nodes.per(b.N), "requests/node")
	b.ReportMetric(e.memory("VmHWM"), "MB")
}

// requests are those of node-terminator.
type requests []sandbox.Event

// requestsSince returns the requests that were answered since.
func (e *ending) requestsSince(began time.Time) requests {
	e.T.Helper()
	events, err := sandbox.ReadAudit(e.Plane.AuditLog)
	e.Must(err, "read audit log")
	return requests(events).only(func(one sandbox.Event) bool {
		return strings.HasPrefix(one.UserAgent, "node-terminator") && !one.Time.Before(began)
	})
}

// only returns the requests that match.
func (r requests) only(match func(sandbox.Event) bool) requests {
	var some requests
	for _, one := range r {
		if match(one) {
			some = append(some, one)
		}
	}
	return some
}

// per returns the number of requests for each of so many.
func (r requests) per(count int) float64 { return float64(len(r)) / float64(count) }

// last returns when the last request was answered, the zero time if there is none.
func (r requests) last() (at time.Time) {
	for _, one := range r {
		if one.Time.After(at) {
			at = one.Time
		}
	}
	return at
}

// String returns the number of requests of each kind.
func (r requests) String() string {
	kinds := map[string]int{}
	for _, one := range r {
		kinds[strings.TrimSuffix(fmt.Sprint(one.Verb, " ", one.Resource, "/", one.Subresource), "/")]++
	}
	var all []string
	for _, kind := range slices.Sorted(maps.Keys(kinds)) {
		all = append(all, fmt.Sprint(kinds[kind], " ", kind))
	}
	return strings.Join(all, ", ")
}

// writesPod reports whether the request ends a pod, or prepares that.
func writesPod(one sandbox.Event) bool { return one.Resource == "pods" && one.Writes() }

func isEviction(one sandbox.Event) bool {
	return one.Resource == "pods" && one.Subresource == "eviction"
}

func isDeletion(one sandbox.Event) bool { return one.Resource == "pods" && one.Verb == "delete" }

// concernsNode reports whether the request neither ends a pod nor sends an event.
func concernsNode(one sandbox.Event) bool { return !writesPod(one) && one.Resource != "events" }

// tellsOfPod reports whether the request sends an event about a pod: those of nodes have no namespace.
func (e *ending) tellsOfPod(one sandbox.Event) bool {
	return one.Resource == "events" && one.Namespace == e.Namespace
}

// quantile returns the value that this part of the times does not exceed, and sorts them.
func quantile(part float64, times []time.Duration) time.Duration {
	slices.Sort(times)
	return times[max(int(math.Ceil(part*float64(len(times))))-1, 0)]
}

var errNoMemory = errors.New("the status of the process lacks the field")

// memory returns a field of the status of node-terminator in MB: VmRSS, or VmHWM for its peak.
func (e *ending) memory(field string) float64 {
	e.T.Helper()
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", e.terminator.PID()))
	e.Must(err, "read status")
	_, after, found := strings.Cut(string(status), field+":")
	if !found {
		e.Must(errNoMemory, field)
	}
	kib, err := strconv.ParseFloat(strings.Fields(after)[0], 64)
	e.Must(err, "read memory")
	return kib / 1024
}
