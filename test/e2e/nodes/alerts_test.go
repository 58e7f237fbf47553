package nodes

import (
	"crypto/tls"
	"fmt"
	"io"
	"net/http"
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
	served := e.metrics(port)
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

// metrics returns the metrics of node-terminator.
func (e *ending) metrics(port int) string {
	e.T.Helper()
	request, err := http.NewRequestWithContext(e.Ctx, http.MethodGet, fmt.Sprintf("https://127.0.0.1:%d/metrics", port), nil)
	e.Must(err, "make request")
	// The program creates its certificate at start, so clients cannot verify it.
	client := http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true},
		DisableKeepAlives: true}}
	response, err := client.Do(request)
	e.Must(err, "read metrics")
	defer func() { _ = response.Body.Close() }()
	body, err := io.ReadAll(response.Body)
	e.Must(err, "read metrics")
	if response.StatusCode != http.StatusOK {
		e.T.Fatalf("%s: %s", response.Status, body)
	}
	return string(body)
}
