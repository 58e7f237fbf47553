package csi_test

import (
	"context"
	"testing"
	"time"

	spec "github.com/container-storage-interface/spec/lib/go/csi"

	"github.com/exeunt-io/exeunt/pkg/csimock"
)

// external-provisioner ends when the connection is lost, so that its next process calls the driver
// only after Probe succeeded and the name was read. A driver that is not ready, or another one
// at the socket, may answer that a volume does not exist: then its disk is left behind.
func TestDriverIsCalledOnlyOnceItIsKnownAgain(t *testing.T) {
	for name, config := range map[string]csimock.Config{
		"driver that is not ready": {Faults: []csimock.Fault{{Method: "Probe", Hang: true}}},
		"another driver":           {Name: "other.csi", Faults: []csimock.Fault{{Method: "GetPluginInfo", Latency: 2 * time.Second}}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, driver, _ := connectSocket(t, csimock.Config{})
			s.start(config)
			for end := time.Now().Add(5 * time.Second); time.Now().Before(end); <-time.After(10 * time.Millisecond) {
				ctx, stop := context.WithTimeout(t.Context(), 100*time.Millisecond)
				_ = driver.DeleteVolume(ctx, "handle", nil)
				_, _ = driver.CreateVolume(ctx, &spec.CreateVolumeRequest{Name: "volume"})
				stop()
			}
			for _, call := range s.server.Calls() {
				if call.Method == "DeleteVolume" || call.Method == "CreateVolume" {
					t.Fatalf("%s is called: %s", call.Method, call.Code)
				}
			}
		})
	}
}
