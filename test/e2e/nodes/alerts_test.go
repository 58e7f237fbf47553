package nodes

import (
	"fmt"
	"testing"

	"github.com/exeunt-io/exeunt/test/e2e/harness"
)

// The alerts and the dashboard are worth nothing if a metric has another name.
func TestAlertsAndDashboardUseServedMetrics(t *testing.T) {
	port := harness.FreePort(t)
	e := startEnding(t, 2, "--leader-elect=true", "--instances=socket", "--instances-socket=SOCKET", fmt.Sprint("--secure-port=", port),
		"--authorization-always-allow-paths=/metrics")
	name := e.take("20s")
	e.seen(name)
	e.protectByBudget(e.pod(name, "stuck", stuck, grace(60), e.withDisk("data"))) // is cut short, and its machine stopped
	e.delete(name)
	e.awaitGone(name)
	served := e.ControllerMetrics(port)
	checked := 0
	for _, query := range harness.MonitoringQueries(t) {
		if query.OfNodeTerminator() {
			query.ExpectServed(t, served)
			checked++
		}
	}
	if checked < 8 {
		t.Errorf("%d queries are about node-terminator", checked)
	}
}
