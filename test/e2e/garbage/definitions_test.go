package garbage

import (
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"testing"

	"github.com/exeunt-io/exeunt/test/e2e/harness"
)

// TestDefinitionsLeaveNothingBehind creates and deletes kinds with objects. The program must not grow.
func TestDefinitionsLeaveNothingBehind(t *testing.T) {
	t.Parallel()
	count := number(t, "EXEUNT_GC_DEFINITIONS", 20)
	port := harness.FreePort(t)
	r := start(t, ours, false, fmt.Sprint("--secure-port=", port), "--authorization-always-allow-paths=/metrics")
	const heapSlack = 24 << 20
	r.churn(t, atOnce)
	w := r.world(t)
	goroutines, heap, nodes := w.metric(port, "go_goroutines"), w.heap(port),
		w.metric(port, "garbage_collector_graph_nodes")
	for done := 0; done < count; done += atOnce {
		r.churn(t, min(atOnce, count-done))
	}
	w = r.worldIn(t, w.namespace) // the time of the former one may have passed
	w.await("the nodes of the deleted objects are gone", func() bool {
		return w.metric(port, "garbage_collector_graph_nodes") <= nodes+float64(3*count)
	})
	w.await("the goroutines of the deleted kinds are gone",
		func() bool { return w.metric(port, "go_goroutines") <= goroutines+10 })
	after := w.heap(port)
	if after > heap+heapSlack {
		t.Errorf("the heap grew from %.0f to %.0f bytes", heap, after)
	}
	t.Logf("%d definitions: goroutines %.0f then %.0f, heap %.1f then %.1f MiB", count, goroutines,
		w.metric(port, "go_goroutines"), heap/(1<<20), after/(1<<20))
}

// atOnce is the number of kinds that are created and deleted at once.
const atOnce = 5

// churn creates and deletes kinds in parallel.
func (r *rig) churn(t *testing.T, count int) {
	t.Run("churn", func(t *testing.T) {
		for i := range count {
			t.Run(fmt.Sprint(i), func(t *testing.T) {
				t.Parallel()
				r.world(t).churn()
			})
		}
	})
}

// churn creates a kind with an owner and dependents, deletes the owner, and then the kind while an
// object of it owns and is owned.
func (w *world) churn() {
	w.t.Helper()
	name := strings.ReplaceAll(w.namespace, "-", "") // a kind that was never there before
	churned := w.define("Churn"+name, "churn"+name)
	owner := w.create(configMaps, "owner")
	w.create(churned, "dependent", ownedBy(reference(owner)))
	last := w.create(churned, "last")
	w.create(secrets, "dependent", ownedBy(reference(last)))
	w.delete(configMaps, "owner", foreground)
	w.awaitGone(configMaps, "owner")
	w.expectGone(churned, "dependent")
	w.undefine(churned)
	w.awaitGone(secrets, "dependent")
	w.await("the collector drops the kind",
		func() bool { return w.logs(`"A kind is gone"`, `resource="`+churned.GroupResource().String()+`"`) })
	w.awaitUndefined(churned)
}

// heap returns the bytes of the heap in use.
func (w *world) heap(port int) float64 { return w.metric(port, "go_memstats_heap_inuse_bytes") }

// metric returns the value of a metric without labels.
func (w *world) metric(port int, name string) float64 {
	w.t.Helper()
	for line := range strings.Lines(w.page(port, "/metrics", http.StatusOK)) {
		if text, found := strings.CutPrefix(strings.TrimSpace(line), name+" "); found {
			value, err := strconv.ParseFloat(text, 64)
			must(w.t, err, "parse "+name)
			return value
		}
	}
	w.t.Fatalf("there is no metric %s", name)
	return 0
}
