package nodes

import (
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/exeunt-io/exeunt/pkg/termination"
	"github.com/exeunt-io/exeunt/test/e2e/harness"
	"github.com/exeunt-io/exeunt/test/sandbox"
)

// podsPerNode is the number of pods on each node of the benchmark.
const podsPerNode = 30

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

// fill creates pods on the nodes, and waits until all run.
func (e *ending) fill(nodes []string) {
	e.T.Helper()
	parallel(len(nodes)*podsPerNode, 50, func(i int) { e.bindPod(nodes[i/podsPerNode], fmt.Sprint("p", i%podsPerNode)) })
	e.Until("all pods are ready", func() bool {
		ready := 0
		for _, one := range e.podList() {
			if isReady(one) {
				ready++
			}
		}
		return ready == len(nodes)*podsPerNode
	})
}

func (e *ending) podList() []v1.Pod {
	e.T.Helper()
	list, err := e.Client.CoreV1().Pods(e.Namespace).List(e.Ctx, metav1.ListOptions{ResourceVersion: "0"})
	e.Must(err, "list pods")
	return list.Items
}

// evictAll evicts the pods of the nodes in a loop, and returns how long that took: the ceiling.
func (e *ending) evictAll(nodes []string) time.Duration {
	e.T.Helper()
	began := time.Now()
	parallel(len(nodes)*podsPerNode, 64, func(i int) {
		name := fmt.Sprint(nodes[i/podsPerNode], "-p", i%podsPerNode)
		e.Must(e.Client.CoreV1().Pods(e.Namespace).EvictV1(e.Ctx, &policyv1.Eviction{
			ObjectMeta: metav1.ObjectMeta{Namespace: e.Namespace, Name: name}}), "evict pod")
	})
	return time.Since(began)
}

// BenchmarkTermination deletes b.N nodes with 30 pods each at once, without budgets. It reports the time until the last
// eviction, against that of a loop that evicts as many pods, the requests for a pod and for a node, and the memory of
// the program at its peak.
func BenchmarkTermination(b *testing.B) {
	benchmark(b, func(*ending, string) {}, func(e *ending, name string) error {
		return e.Client.CoreV1().Nodes().Delete(e.Ctx, name, metav1.DeleteOptions{})
	})
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
	e := startEndingWith(b, harness.Setup{}, 2*b.N, "--instances=socket", "--instances-socket=SOCKET")
	loop, ours := e.Nodes[:b.N], e.Nodes[b.N:]
	e.fill(loop)
	ceiling := e.evictAll(loop)
	e.Until("no pod is left", func() bool { return len(e.podList()) == 0 })
	e.fill(ours)
	parallel(b.N, 20, func(i int) { e.label(ours[i], "15m") })
	for _, name := range ours {
		e.seen(name)
	}
	parallel(b.N, 20, func(i int) { prepare(e, ours[i]) })
	began := time.Now()
	parallel(b.N, 20, func(i int) {
		if err := remove(e, ours[i]); err != nil && !apierrors.IsNotFound(err) {
			e.Must(err, "delete node")
		}
	})
	for _, name := range ours {
		e.awaitGone(name)
	}
	e.Until("no claim is left", func() bool {
		claims, err := e.claims().List(e.Ctx, metav1.ListOptions{})
		e.Must(err, "list NodeClaims")
		return len(claims.Items) == 0
	})
	gone := time.Since(began)
	evicted, pods, requests := e.requestsSince(began)
	b.Logf("%d nodes: loop %v, last eviction %v, last node gone %v, requests %v", b.N, ceiling, evicted, gone, requests)
	ofNodes := 0
	for _, count := range requests {
		ofNodes += count
	}
	b.ReportMetric(evicted.Seconds()/ceiling.Seconds(), "times-ceiling")
	b.ReportMetric(float64(pods)/float64(b.N*podsPerNode), "requests/pod")
	b.ReportMetric(float64(ofNodes)/float64(b.N), "requests/node")
	b.ReportMetric(e.peak(), "MB")
}

// requestsSince returns when the last eviction was answered, the number of requests that end pods, and all other requests
// of node-terminator, but for events.
func (e *ending) requestsSince(began time.Time) (evicted time.Duration, pods int, others map[string]int) {
	e.T.Helper()
	events, err := sandbox.ReadAudit(e.Plane.AuditLog)
	e.Must(err, "read audit log")
	others = map[string]int{}
	for _, one := range events {
		switch {
		case !strings.HasPrefix(one.UserAgent, "node-terminator") || one.Time.Before(began) || one.Resource == "events":
		case one.Resource == "pods" && one.Writes():
			pods++
			evicted = max(evicted, one.Time.Sub(began))
		default:
			others[one.Verb+" "+one.Resource]++
		}
	}
	return evicted, pods, others
}

var errNoPeak = errors.New("no VmHWM in the status of the process")

// peak returns the memory of node-terminator at its peak, in MB.
func (e *ending) peak() float64 {
	e.T.Helper()
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", e.terminator.PID()))
	e.Must(err, "read status")
	_, after, found := strings.Cut(string(status), "VmHWM:")
	if !found {
		e.Must(errNoPeak, "read memory")
	}
	kib, err := strconv.ParseFloat(strings.Fields(after)[0], 64)
	e.Must(err, "read memory")
	return kib / 1024
}
