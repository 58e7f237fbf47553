package csimock

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"strings"
	"time"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc"
	"google.golang.org/protobuf/types/known/wrapperspb"
)

// grace is the time that Serve gives calls in progress to finish.
const grace = 3 * time.Second

// maxSocketPath is the maximum length in bytes of the path of a unix socket on Linux.
const maxSocketPath = 107

// socketPath returns the path in an endpoint: a plain path, unix:path or
// unix:///path.
func socketPath(endpoint string) (string, error) {
	path, found := strings.CutPrefix(endpoint, "unix://")
	if !found {
		path = strings.TrimPrefix(endpoint, "unix:")
	}
	if path == "" || strings.Contains(path, "://") {
		return "", fmt.Errorf("endpoint %q must be a path, unix:path or unix:///path", endpoint)
	}
	if len(path) > maxSocketPath {
		return "", fmt.Errorf("socket path %q has %d bytes, at most %d are allowed", path, len(path), maxSocketPath)
	}
	return path, nil
}

// Listen opens the unix socket of an endpoint. It replaces a stale socket, and refuses a
// socket with a server and a file that is not a socket. Closing the listener removes the
// socket.
func Listen(endpoint string) (net.Listener, error) {
	path, err := socketPath(endpoint)
	if err != nil {
		return nil, err
	}
	if err := removeStaleSocket(path); err != nil {
		return nil, err
	}
	listener, err := net.Listen("unix", path)
	if err != nil {
		return nil, fmt.Errorf("open socket: %w", err)
	}
	return listener, nil
}

// removeStaleSocket removes the socket of an earlier server.
func removeStaleSocket(path string) error {
	info, err := os.Lstat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("read socket: %w", err)
	}
	if info.Mode().Type() != fs.ModeSocket {
		return fmt.Errorf("%s exists and is not a socket", path)
	}
	if connection, err := net.Dial("unix", path); err == nil {
		return errors.Join(fmt.Errorf("socket %s is served by another program", path), connection.Close())
	}
	if err := os.Remove(path); err != nil {
		return fmt.Errorf("remove stale socket: %w", err)
	}
	return nil
}

// Serve serves calls until ctx ends, and closes the listener. Calls that wait in a fault
// are then interrupted, and other calls have three seconds to finish.
func (d *Driver) Serve(ctx context.Context, listener net.Listener) error {
	server := grpc.NewServer(grpc.UnaryInterceptor(d.intercept(ctx)))
	csi.RegisterIdentityServer(server, &identityServer{Driver: d})
	csi.RegisterControllerServer(server, &controllerServer{Driver: d})
	csi.RegisterGroupControllerServer(server, &groupServer{Driver: d})
	csi.RegisterNodeServer(server, &nodeServer{Driver: d})
	defer context.AfterFunc(ctx, func() { stop(server) })()
	if err := server.Serve(&countingListener{Listener: listener, open: &d.connections}); err != nil &&
		!errors.Is(err, grpc.ErrServerStopped) {
		return fmt.Errorf("serve CSI: %w", err)
	}
	return nil
}

// stop stops the server, after grace also with calls in progress.
func stop(server *grpc.Server) {
	defer time.AfterFunc(grace, server.Stop).Stop()
	server.GracefulStop()
}

// Server is a driver that is serving a socket.
type Server struct {
	*Driver
	cancel context.CancelFunc
	done   chan struct{}
	err    error // set before done is closed
}

// Start creates a driver and serves the socket until ctx ends or Stop is called. Clients
// can connect when Start returns.
func Start(ctx context.Context, config Config, socket string) (*Server, error) {
	driver, err := New(config)
	if err != nil {
		return nil, err
	}
	listener, err := Listen(socket)
	if err != nil {
		return nil, errors.Join(err, driver.Close())
	}
	ctx, cancel := context.WithCancel(ctx)
	s := &Server{Driver: driver, cancel: cancel, done: make(chan struct{})}
	go func() {
		defer close(s.done)
		s.err = errors.Join(driver.Serve(ctx, listener), driver.Close())
	}()
	return s, nil
}

// Stop stops the server, waits for its end and returns its error. Stop may be called more
// than once.
func (s *Server) Stop() error {
	s.cancel()
	return s.Wait()
}

// Wait waits for the end of the server and returns its error.
func (s *Server) Wait() error {
	<-s.done
	return s.err
}

// vendorVersion is the version that the driver reports.
const vendorVersion = "1"

// identityServer is the Identity service.
type identityServer struct {
	csi.UnimplementedIdentityServer
	*Driver
}

// GetPluginInfo returns the name and the version of the driver.
func (s *identityServer) GetPluginInfo(context.Context, *csi.GetPluginInfoRequest) (*csi.GetPluginInfoResponse, error) {
	return &csi.GetPluginInfoResponse{Name: s.config.Name, VendorVersion: vendorVersion}, nil
}

// GetPluginCapabilities returns the capabilities of the plugin.
func (s *identityServer) GetPluginCapabilities(context.Context,
	*csi.GetPluginCapabilitiesRequest) (*csi.GetPluginCapabilitiesResponse, error) {
	capabilities := advertised(s.config.Capabilities, pluginServices, pluginService)
	if s.config.Capabilities.Has(Expansion) {
		capabilities = append(capabilities, onlineExpansion())
	}
	return &csi.GetPluginCapabilitiesResponse{Capabilities: capabilities}, nil
}

// Probe reports that the driver is ready. A fault on Probe makes it unhealthy.
func (*identityServer) Probe(context.Context, *csi.ProbeRequest) (*csi.ProbeResponse, error) {
	return &csi.ProbeResponse{Ready: wrapperspb.Bool(true)}, nil
}

// pluginService returns a service as a plugin capability.
func pluginService(kind csi.PluginCapability_Service_Type) *csi.PluginCapability {
	return &csi.PluginCapability{Type: &csi.PluginCapability_Service_{
		Service: &csi.PluginCapability_Service{Type: kind},
	}}
}

// onlineExpansion returns the plugin capability to expand volumes in use.
func onlineExpansion() *csi.PluginCapability {
	return &csi.PluginCapability{Type: &csi.PluginCapability_VolumeExpansion_{
		VolumeExpansion: &csi.PluginCapability_VolumeExpansion{Type: csi.PluginCapability_VolumeExpansion_ONLINE},
	}}
}
