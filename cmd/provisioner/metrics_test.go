package main

import (
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/exeunt-io/exeunt/pkg/csimock"
	"github.com/exeunt-io/exeunt/pkg/provisioner/csi"
)

// The endpoint is served before the driver's name is known. A driver that replaced an in-tree plugin,
// such as ebs.csi.aws.com, gets metrics with another label then.
func TestCallsOfDriverThatReplacedAPluginAreServed(t *testing.T) {
	socket := filepath.Join(t.TempDir(), "csi.sock")
	server, err := csimock.Start(t.Context(), csimock.Config{}, socket)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = server.Stop() })
	for name, replaced := range map[string]bool{"driver that replaced a plugin": true, "other driver": false} {
		t.Run(name, func(t *testing.T) {
			calls := csi.NewMetrics()
			handler := metricsHandler(calls, nil)
			driver, err := csi.Connect(t.Context(), csi.Config{Address: socket, Timeout: time.Minute, Metrics: calls,
				Migrated: func(string) bool { return replaced }})
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = driver.Close() })
			if err := driver.DeleteVolume(t.Context(), "gone", nil); err != nil {
				t.Fatal(err)
			}
			answer := httptest.NewRecorder()
			handler.ServeHTTP(answer, httptest.NewRequest(http.MethodGet, "/metrics", http.NoBody))
			if !strings.Contains(answer.Body.String(), `method_name="/csi.v1.Controller/DeleteVolume"`) {
				t.Error("the metric csi_sidecar_operations_seconds lacks the call of DeleteVolume")
			}
		})
	}
}
