package csi_test

import (
	"context"
	"errors"
	"path/filepath"
	"strings"
	"testing"
	"time"

	spec "github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/exeunt-io/exeunt/pkg/csimock"
	"github.com/exeunt-io/exeunt/pkg/provisioner/csi"
)

// socket is a socket that serves one mock driver after the other.
type socket struct {
	t      *testing.T
	path   string
	server *csimock.Server
}

// start starts a driver with the configuration, in place of the former driver.
func (s *socket) start(config csimock.Config) {
	s.t.Helper()
	if s.server != nil {
		s.stop()
	}
	var err error
	if s.server, err = csimock.Start(context.WithoutCancel(s.t.Context()), config, s.path); err != nil {
		s.t.Fatal(err)
	}
}

func (s *socket) stop() {
	s.t.Helper()
	if err := s.server.Stop(); err != nil {
		s.t.Error(err)
	}
	s.server = nil
}

// connectSocket connects to a first driver and returns the channel of reported changes.
func connectSocket(t *testing.T, config csimock.Config) (*socket, *csi.Driver, chan error) {
	t.Helper()
	s := &socket{t: t, path: filepath.Join(t.TempDir(), "csi.sock")}
	s.start(config)
	t.Cleanup(func() { s.stop() })
	changes := make(chan error, 1)
	driver, err := csi.Connect(t.Context(), csi.Config{
		Address: s.path, Timeout: 10 * time.Second, Topology: true, Metrics: csi.NewMetrics(),
		Changed: func(err error) { changes <- err },
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = driver.Close() })
	return s, driver, changes
}

// awaitCalls waits until the current driver has received the number of calls.
func (s *socket) awaitCalls(method string, times int) {
	s.t.Helper()
	ctx, stop := context.WithTimeout(s.t.Context(), 20*time.Second)
	defer stop()
	for {
		var calls int
		for _, call := range s.server.Calls() {
			if call.Method == method {
				calls++
			}
		}
		if calls >= times {
			return
		}
		select {
		case <-ctx.Done():
			s.t.Fatalf("%s: %d calls, want %d", method, calls, times)
		case <-time.After(10 * time.Millisecond):
		}
	}
}

func TestChangedDriverIsReported(t *testing.T) {
	before := csimock.DefaultCapabilities().With(csimock.Topology)
	here, there := []map[string]string{{"host": "1"}}, []map[string]string{{"host": "2"}}
	for name, tc := range map[string]struct {
		after csimock.Config
		says  []string
	}{
		"new capability":      {csimock.Config{Capabilities: before.With(csimock.Publish), Topologies: here}, []string{"has PUBLISH_UNPUBLISH_VOLUME"}},
		"missing capability":  {csimock.Config{Capabilities: before.Without(csimock.Clones), Topologies: here}, []string{"has no CLONE_VOLUME"}},
		"no topology":         {csimock.Config{Capabilities: csimock.DefaultCapabilities()}, []string{"has no VOLUME_ACCESSIBILITY_CONSTRAINTS"}},
		"other name":          {csimock.Config{Name: "other.csi", Capabilities: before, Topologies: here}, []string{"called other.csi"}},
		"other node topology": {csimock.Config{Capabilities: before, Topologies: there}, []string{"host:1", "host:2"}},
		"several changes": {csimock.Config{Capabilities: before.With(csimock.Publish).Without(csimock.Clones)},
			[]string{"has PUBLISH_UNPUBLISH_VOLUME", "has no CLONE_VOLUME"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, driver, changes := connectSocket(t, csimock.Config{Capabilities: before, Topologies: here})
			if _, err := driver.NodeTopology(t.Context()); err != nil {
				t.Fatal(err)
			}
			s.start(tc.after)
			select {
			case err := <-changes:
				for _, says := range append(tc.says, csimock.DefaultName) {
					if !strings.Contains(err.Error(), says) {
						t.Errorf("message %q lacks %q", err, says)
					}
				}
			case <-time.After(20 * time.Second):
				t.Fatal("no change was reported")
			}
		})
	}
}

func TestUnchangedDriverIsNotReported(t *testing.T) {
	config := csimock.Config{Capabilities: csimock.DefaultCapabilities().With(csimock.Topology),
		Topologies: []map[string]string{{"host": "1"}}}
	s, driver, changes := connectSocket(t, config)
	if _, err := driver.NodeTopology(t.Context()); err != nil {
		t.Fatal(err)
	}
	for range 3 {
		s.start(config)
		s.awaitCalls("NodeGetInfo", 1)
		// The driver has answered; that the answer is read takes a moment.
		err := wait.PollUntilContextTimeout(t.Context(), 10*time.Millisecond, time.Minute, true,
			func(ctx context.Context) (bool, error) {
				_, err := driver.GetCapacity(ctx, &spec.GetCapacityRequest{})
				return err == nil, nil
			})
		if err != nil {
			t.Errorf("call after the restart: %v", err)
		}
	}
	select {
	case err := <-changes:
		t.Errorf("a change is reported: %v", err)
	default:
	}
}

// The node topology matters only with --node-deployment, which reads it.
func TestUnreadNodeTopologyMayChange(t *testing.T) {
	capabilities := csimock.DefaultCapabilities().With(csimock.Topology)
	s, _, changes := connectSocket(t, csimock.Config{Capabilities: capabilities,
		Topologies: []map[string]string{{"host": "1"}}})
	s.start(csimock.Config{Capabilities: capabilities, Topologies: []map[string]string{{"host": "2"}}})
	s.awaitCalls("ControllerGetCapabilities", 1)
	s.start(csimock.Config{Capabilities: capabilities.With(csimock.Publish),
		Topologies: []map[string]string{{"host": "2"}}})
	if err := <-changes; !strings.Contains(err.Error(), "PUBLISH_UNPUBLISH_VOLUME") ||
		strings.Contains(err.Error(), "host") {
		t.Errorf("want the capability only: %v", err)
	}
}

// A restarted driver may not be ready yet.
func TestFailingDriverIsAskedAgain(t *testing.T) {
	s, driver, changes := connectSocket(t, csimock.Config{})
	failing := csimock.Fault{Method: "GetPluginCapabilities", Code: codes.Internal, Times: 2}
	if err := s.server.Inject(failing, csimock.Fault{Method: "GetCapacity", Disconnect: true, Times: 1}); err != nil {
		t.Fatal(err)
	}
	if _, err := driver.GetCapacity(t.Context(), &spec.GetCapacityRequest{}); status.Code(err) != codes.Unavailable {
		t.Errorf("call that lost the connection: %v", err)
	}
	s.awaitCalls("GetPluginCapabilities", 1+2+1)
	s.awaitCalls("ControllerGetCapabilities", 1+1)
	select {
	case err := <-changes:
		t.Errorf("a change is reported: %v", err)
	default:
	}
}

// A request that no driver has received leaves nothing behind.
func TestUnsentRequestIsToldFromAFailure(t *testing.T) {
	s, driver, _ := connectSocket(t, csimock.Config{})
	create := func() error {
		_, err := driver.CreateVolume(t.Context(), &spec.CreateVolumeRequest{Name: "pvc-1"})
		return err
	}
	var unsent *csi.NotSent
	if err := s.server.Inject(csimock.Fault{Method: "CreateVolume", Code: codes.Unavailable, Times: 1}); err != nil {
		t.Fatal(err)
	}
	if err := create(); errors.As(err, &unsent) || status.Code(err) != codes.Unavailable {
		t.Errorf("the driver has answered: %v", err)
	}
	s.stop()
	if err := create(); !errors.As(err, &unsent) || status.Code(err) != codes.Unavailable {
		t.Errorf("the driver does not run: %v", err)
	}
	s.start(csimock.Config{})
}
