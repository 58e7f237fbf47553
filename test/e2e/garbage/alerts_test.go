package garbage

import (
	"net/http"
	"strings"
	"testing"

	"github.com/exeunt-io/exeunt/test/e2e/harness"
)

// The alerts and the dashboard are worth nothing if a metric has another name.
func TestAlertsAndDashboardUseServedMetrics(t *testing.T) {
	t.Parallel()
	port := harness.FreePort(t)
	r := start(t, ours, true, append(servingFlags(port), "--unreadable-kind-timeout=1s")...)
	w := r.world(t)
	live := w.create(configMaps, "live")
	w.create(configMaps, "dependent", ownedBy(reference(live)), w.absentOwner())
	w.awaitOwners(configMaps, "dependent", "live") // a patch, which is counted
	w.gate.hold("secrets")
	w.gate.fail("secrets", true)
	w.create(configMaps, "owner")
	w.delete(configMaps, "owner", orphan)
	w.await("the unread kind is counted", func() bool {
		return strings.Contains(w.page(port, "/metrics", http.StatusOK),
			`garbage_collector_unread_kind{resource="secrets"} 1`)
	})
	served := w.page(port, "/metrics", http.StatusOK)
	checked := 0
	for _, query := range harness.MonitoringQueries(t) {
		if query.OfGarbageCollector() {
			query.ExpectServed(t, served)
			checked++
		}
	}
	if checked == 0 {
		t.Error("there are no alerts about garbage collection")
	}
	if !strings.Contains(served, "\nworkqueue_depth{name=\"garbage_collector_attempt_to_delete\"}") {
		t.Error("the collector does not serve the depth of its queue")
	}
}
