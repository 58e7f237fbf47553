package csi_test

import (
	"context"
	"path/filepath"
	"strings"
	"testing"
	"time"

	spec "github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/exeunt-io/exeunt/pkg/csimock"
	"github.com/exeunt-io/exeunt/pkg/provisioner/csi"
)

// plug is a socket at which one driver after the other answers.
type plug struct {
	t      *testing.T
	socket string
	server *csimock.Server
}

// start has a driver answer, in the place of the one before.
func (p *plug) start(config csimock.Config) {
	p.t.Helper()
	if p.server != nil {
		p.stop()
	}
	var err error
	if p.server, err = csimock.Start(context.WithoutCancel(p.t.Context()), config, p.socket); err != nil {
		p.t.Fatal(err)
	}
}

func (p *plug) stop() {
	p.t.Helper()
	if err := p.server.Stop(); err != nil {
		p.t.Error(err)
	}
	p.server = nil
}

// plugIn connects with a first driver, and returns what it is told of changes.
func plugIn(t *testing.T, config csimock.Config) (*plug, *csi.Driver, chan error) {
	t.Helper()
	p := &plug{t: t, socket: filepath.Join(t.TempDir(), "csi.sock")}
	p.start(config)
	t.Cleanup(func() { p.stop() })
	changes := make(chan error, 1)
	driver, err := csi.Connect(t.Context(), csi.Config{
		Address: p.socket, Timeout: 10 * time.Second, Topology: true, Metrics: csi.NewMetrics(), Changed: func(err error) { changes <- err },
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = driver.Close() })
	return p, driver, changes
}

// awaitCalls waits until the driver that answers now was called so often.
func (p *plug) awaitCalls(method string, times int) {
	p.t.Helper()
	ctx, stop := context.WithTimeout(p.t.Context(), 20*time.Second)
	defer stop()
	for {
		var calls int
		for _, call := range p.server.Calls() {
			if call.Method == method {
				calls++
			}
		}
		if calls >= times {
			return
		}
		select {
		case <-ctx.Done():
			p.t.Fatalf("%s: %d calls, want %d", method, calls, times)
		case <-time.After(10 * time.Millisecond):
		}
	}
}

func TestADriverThatComesBackAsAnotherOneIsNoticed(t *testing.T) {
	before := csimock.DefaultCapabilities().With(csimock.Topology)
	here, there := []map[string]string{{"host": "1"}}, []map[string]string{{"host": "2"}}
	for name, tc := range map[string]struct {
		after csimock.Config
		says  []string
	}{
		"with a capability more":    {csimock.Config{Capabilities: before.With(csimock.Publish), Topologies: here}, []string{"has PUBLISH_UNPUBLISH_VOLUME"}},
		"with a capability less":    {csimock.Config{Capabilities: before.Without(csimock.Clones), Topologies: here}, []string{"has no CLONE_VOLUME"}},
		"without topology":          {csimock.Config{Capabilities: csimock.DefaultCapabilities()}, []string{"has no VOLUME_ACCESSIBILITY_CONSTRAINTS"}},
		"called otherwise":          {csimock.Config{Name: "other.csi", Capabilities: before, Topologies: here}, []string{"called other.csi"}},
		"with its node elsewhere":   {csimock.Config{Capabilities: before, Topologies: there}, []string{"host:1", "host:2"}},
		"in more than one respects": {csimock.Config{Capabilities: before.With(csimock.Publish).Without(csimock.Clones)}, []string{"has PUBLISH_UNPUBLISH_VOLUME", "has no CLONE_VOLUME"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p, driver, changes := plugIn(t, csimock.Config{Capabilities: before, Topologies: here})
			if _, err := driver.NodeTopology(t.Context()); err != nil {
				t.Fatal(err)
			}
			p.start(tc.after)
			select {
			case err := <-changes:
				for _, says := range append(tc.says, csimock.DefaultName) {
					if !strings.Contains(err.Error(), says) {
						t.Errorf("%q does not say %q", err, says)
					}
				}
			case <-time.After(20 * time.Second):
				t.Fatal("nobody was told")
			}
		})
	}
}

func TestADriverThatComesBackAsItWasIsCalledAsBefore(t *testing.T) {
	config := csimock.Config{Capabilities: csimock.DefaultCapabilities().With(csimock.Topology), Topologies: []map[string]string{{"host": "1"}}}
	p, driver, changes := plugIn(t, config)
	if _, err := driver.NodeTopology(t.Context()); err != nil {
		t.Fatal(err)
	}
	for range 3 {
		p.start(config)
		p.awaitCalls("NodeGetInfo", 1)
		if _, err := driver.GetCapacity(t.Context(), &spec.GetCapacityRequest{}); err != nil {
			t.Errorf("a call after the driver is back: %v", err)
		}
	}
	select {
	case err := <-changes:
		t.Errorf("the driver is taken for another one: %v", err)
	default:
	}
}

// Where the node is matters to a provisioner of that node alone.
func TestANodeThatNobodyAskedForMayBeElsewhere(t *testing.T) {
	capabilities := csimock.DefaultCapabilities().With(csimock.Topology)
	p, _, changes := plugIn(t, csimock.Config{Capabilities: capabilities, Topologies: []map[string]string{{"host": "1"}}})
	p.start(csimock.Config{Capabilities: capabilities, Topologies: []map[string]string{{"host": "2"}}})
	p.awaitCalls("ControllerGetCapabilities", 1)
	p.start(csimock.Config{Capabilities: capabilities.With(csimock.Publish), Topologies: []map[string]string{{"host": "2"}}})
	if err := <-changes; !strings.Contains(err.Error(), "PUBLISH_UNPUBLISH_VOLUME") || strings.Contains(err.Error(), "host") {
		t.Errorf("only the capability counts: %v", err)
	}
}

// A driver that has just come back may still be starting.
func TestADriverThatDoesNotSayWhatItIsIsAskedAgain(t *testing.T) {
	p, driver, changes := plugIn(t, csimock.Config{})
	failing := csimock.Fault{Method: "GetPluginCapabilities", Code: codes.Internal, Times: 2}
	if err := p.server.Inject(failing, csimock.Fault{Method: "GetCapacity", Disconnect: true, Times: 1}); err != nil {
		t.Fatal(err)
	}
	if _, err := driver.GetCapacity(t.Context(), &spec.GetCapacityRequest{}); status.Code(err) != codes.Unavailable {
		t.Errorf("the call that cost the connection: %v", err)
	}
	p.awaitCalls("GetPluginCapabilities", 1+2+1)
	p.awaitCalls("ControllerGetCapabilities", 1+1)
	select {
	case err := <-changes:
		t.Errorf("the driver is taken for another one: %v", err)
	default:
	}
}
