package csi_test

import (
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/exeunt-io/exeunt/pkg/csimock"
	"github.com/exeunt-io/exeunt/pkg/provisioner/csi"
)

// scrape returns the metrics as they are served.
func scrape(t *testing.T, mux *http.ServeMux) string {
	t.Helper()
	answer := httptest.NewRecorder()
	mux.ServeHTTP(answer, httptest.NewRequest(http.MethodGet, "/metrics", http.NoBody))
	return answer.Body.String()
}

var migratedCallCases = map[string]struct {
	migrated bool
	want     []string
}{
	"driver that replaced a plugin": {true, []string{
		`method_name="/csi.v1.Controller/DeleteVolume",migrated="false"} 1`,
		`method_name="/csi.v1.Controller/DeleteVolume",migrated="true"} 2`,
		`method_name="/csi.v1.Controller/ControllerGetCapabilities",migrated="false"} 1`,
	}},
	"other driver": {false, []string{
		`method_name="/csi.v1.Controller/DeleteVolume"} 3`, `method_name="/csi.v1.Controller/ControllerGetCapabilities"} 1`,
	}},
}

// The endpoint serves the metrics before the driver's name is known.
func TestMigratedCallsAreLabeled(t *testing.T) {
	const count = `csi_sidecar_operations_seconds_count\{driver_name="csimock.exeunt.io",grpc_status_code="OK",`
	for name, tc := range migratedCallCases {
		t.Run(name, func(t *testing.T) {
			socket := filepath.Join(t.TempDir(), "csi.sock")
			server, err := csimock.Start(t.Context(), csimock.Config{}, socket)
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = server.Stop() })
			calls, others, mux := csi.NewMetrics(), prometheus.NewRegistry(), http.NewServeMux()
			others.MustRegister(prometheus.NewCounter(prometheus.CounterOpts{Name: "other"}))
			calls.WithAdditionalRegistry(others).RegisterToServer(mux, "/metrics")
			if text := scrape(t, mux); !strings.Contains(text, "other 0") {
				t.Errorf("other metrics are not served:\n%s", text)
			}
			driver, err := csi.Connect(t.Context(), csi.Config{
				Address: socket, Timeout: time.Minute, Metrics: calls,
				Migrated: func(driver string) bool { return driver == csimock.DefaultName && tc.migrated },
			})
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = driver.Close() })
			for _, ctx := range []struct{ migrated bool }{{true}, {false}, {true}} {
				call := t.Context()
				if ctx.migrated {
					call = csi.Migrated(call)
				}
				if err := driver.DeleteVolume(call, "gone", nil); err != nil {
					t.Fatal(err)
				}
			}
			text := scrape(t, mux)
			for _, want := range tc.want {
				if !regexp.MustCompile(count + regexp.QuoteMeta(want)).MatchString(text) {
					t.Errorf("want %s in\n%s", want, text)
				}
			}
			if !strings.Contains(text, "other 0") {
				t.Error("other metrics are no longer served")
			}
		})
	}
}
