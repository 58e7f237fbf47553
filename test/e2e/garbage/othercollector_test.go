package garbage

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/exeunt-io/exeunt/deploy"
	"github.com/exeunt-io/exeunt/test/e2e/harness"
	"github.com/exeunt-io/exeunt/test/sandbox"
)

// Upstream's collector, which was not switched off, works beside ours: log, event, metric and debugging page say so.
func TestOtherCollectorIsNoticed(t *testing.T) {
	t.Parallel()
	port := harness.FreePort(t)
	r := start(t, stock, false)
	beside := *r
	beside.side, beside.flags = ours, servingFlags(port)
	var err error
	beside.kubeconfig, err = r.plane.Kubeconfig(t.Context(), sandbox.ServiceAccount(deploy.Namespace,
		deploy.GarbageCollectorAccount))
	must(t, err, "write kubeconfig")
	beside.launch(t)
	t.Cleanup(func() { beside.stop(t) })
	w := beside.world(t)
	w.await("the log says so", func() bool { return w.logs("Another garbage collector is at work") })
	if page := w.page(port, "/metrics", http.StatusOK); !strings.Contains(page, "garbage_collector_other_collector 1") {
		t.Error("the metric does not say so")
	}
	if page := w.page(port, "/debug/controllers/garbagecollector/graph?format=json&uid=none",
		http.StatusOK); !strings.Contains(page, `"otherCollector":true`) {
		t.Errorf("debugging page: %s", page)
	}
	w.await("an event says so", func() bool {
		events, err := w.typed.CoreV1().Events(metav1.NamespaceSystem).
			List(w.ctx, metav1.ListOptions{FieldSelector: "reason=OtherGarbageCollector"})
		must(t, err, "list events")
		return len(events.Items) == 1 && events.Items[0].InvolvedObject.Name == "garbage-collector"
	})
}

// A collector that is alone does not notice itself, and leaves no test Lease.
func TestOnlyCollectorIsNotReported(t *testing.T) {
	t.Parallel()
	port := harness.FreePort(t)
	w := start(t, ours, false, servingFlags(port)...).world(t)
	w.await("a check has ended", func() bool { return w.logs("No other garbage collector is at work") })
	w.await("the test Lease is gone", func() bool {
		list, err := w.typed.CoordinationV1().Leases(metav1.NamespaceSystem).
			List(w.ctx, metav1.ListOptions{LabelSelector: "exeunt.io/garbage-collector-canary"})
		must(t, err, "list leases")
		return len(list.Items) == 0
	})
	if page := w.page(port, "/metrics", http.StatusOK); !strings.Contains(page, "garbage_collector_other_collector 0") ||
		w.logs("Another garbage collector") {
		t.Error("the collector reports another one")
	}
}

func servingFlags(port int) []string {
	return []string{fmt.Sprint("--secure-port=", port),
		"--authorization-always-allow-paths=/readyz,/debug/controllers/garbagecollector/graph,/metrics"}
}
