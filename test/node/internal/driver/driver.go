// Package driver is a CSI driver whose volumes are directories of its node. It serves
// provisioner and kubelet on one socket, mounts volumes in pods, and logs its calls.
//
// DeleteVolume destroys the data, and refuses a volume that is still mounted.
package driver

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc"
	registration "k8s.io/kubelet/pkg/apis/pluginregistration/v1"
)

// Name is the name of the driver.
const Name = "directory.exeunt.io"

// CallLog is the file in the data directory with a line for each successful call that
// changes a volume: the method and the volume.
const CallLog = "calls.log"

// VolumesDir is the directory of volumes in the data directory.
const VolumesDir = "volumes"

// Config configures a driver.
type Config struct {
	// Node is the name of the node.
	Node string
	// Dir is the data directory.
	Dir string
	// Socket is served to provisioner and kubelet.
	Socket string
	// Registration is the directory in which kubelet looks for drivers.
	Registration string
}

// Driver is a CSI driver.
type Driver struct {
	csi.UnimplementedIdentityServer
	csi.UnimplementedControllerServer
	csi.UnimplementedNodeServer
	registration.UnsafeRegistrationServer
	config Config
	mu     sync.Mutex
}

// Serve runs a driver until ctx ends.
func Serve(ctx context.Context, config Config) error {
	if err := os.MkdirAll(filepath.Join(config.Dir, VolumesDir), 0o755); err != nil {
		return fmt.Errorf("create directory of volumes: %w", err)
	}
	driver := &Driver{config: config}
	failures := make(chan error, 2)
	for _, service := range driver.services() {
		listener, err := listen(service.socket)
		if err != nil {
			return err
		}
		go func() { failures <- service.server.Serve(listener) }()
		defer service.server.Stop()
	}
	select {
	case <-ctx.Done():
		return nil
	case err := <-failures:
		return fmt.Errorf("serve CSI: %w", err)
	}
}

// service is a server and its socket.
type service struct {
	socket string
	server *grpc.Server
}

// services returns the servers in the order in which they start. Kubelet calls the driver as
// soon as it finds the registration socket, and after a failure waits twice as long each time.
func (d *Driver) services() []service {
	server := grpc.NewServer(grpc.UnaryInterceptor(d.intercept))
	csi.RegisterIdentityServer(server, d)
	csi.RegisterControllerServer(server, d)
	csi.RegisterNodeServer(server, d)
	registrar := grpc.NewServer()
	registration.RegisterRegistrationServer(registrar, d)
	return []service{
		{d.config.Socket, server},
		{filepath.Join(d.config.Registration, Name+"-reg.sock"), registrar},
	}
}

// listen opens a socket, and replaces that of an earlier process.
func listen(socket string) (net.Listener, error) {
	if err := os.Remove(socket); err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, fmt.Errorf("remove stale socket %s: %w", socket, err)
	}
	listener, err := net.Listen("unix", socket)
	if err != nil {
		return nil, fmt.Errorf("open socket %s: %w", socket, err)
	}
	return listener, nil
}

// intercept handles one call at a time and logs successful ones.
func (d *Driver) intercept(ctx context.Context, request any, info *grpc.UnaryServerInfo,
	handler grpc.UnaryHandler) (any, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	response, err := handler(ctx, request)
	if err != nil {
		fmt.Fprintf(os.Stderr, "%s: %v\n", info.FullMethod, err)
		return nil, err
	}
	method := info.FullMethod[strings.LastIndex(info.FullMethod, "/")+1:]
	if named, found := request.(interface{ GetVolumeId() string }); found {
		err = d.log(method, named.GetVolumeId())
	} else if created, found := response.(*csi.CreateVolumeResponse); found {
		err = d.log(method, created.GetVolume().GetVolumeId())
	}
	return response, err
}

// log adds a line to the call log.
func (d *Driver) log(method, volume string) (err error) {
	file, err := os.OpenFile(filepath.Join(d.config.Dir, CallLog), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
	if err != nil {
		return fmt.Errorf("open call log: %w", err)
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	_, err = fmt.Fprintln(file, method, volume)
	return err
}

// GetInfo tells kubelet the name and the socket of the driver. Kubelet and the driver see
// the socket at the same path.
func (d *Driver) GetInfo(context.Context, *registration.InfoRequest) (*registration.PluginInfo, error) {
	return &registration.PluginInfo{
		Type: registration.CSIPlugin, Name: Name, Endpoint: d.config.Socket, SupportedVersions: []string{"1.0.0"},
	}, nil
}

// NotifyRegistrationStatus logs a failed registration, which kubelet retries.
func (d *Driver) NotifyRegistrationStatus(_ context.Context,
	status *registration.RegistrationStatus) (*registration.RegistrationStatusResponse, error) {
	if !status.GetPluginRegistered() {
		fmt.Fprintln(os.Stderr, "registration:", status.GetError())
	}
	return &registration.RegistrationStatusResponse{}, nil
}

// GetPluginInfo returns the name of the driver.
func (d *Driver) GetPluginInfo(context.Context, *csi.GetPluginInfoRequest) (*csi.GetPluginInfoResponse, error) {
	return &csi.GetPluginInfoResponse{Name: Name, VendorVersion: "v1"}, nil
}

// GetPluginCapabilities says that the driver has a Controller service.
func (d *Driver) GetPluginCapabilities(context.Context,
	*csi.GetPluginCapabilitiesRequest) (*csi.GetPluginCapabilitiesResponse, error) {
	return &csi.GetPluginCapabilitiesResponse{Capabilities: []*csi.PluginCapability{{Type: &csi.PluginCapability_Service_{
		Service: &csi.PluginCapability_Service{Type: csi.PluginCapability_Service_CONTROLLER_SERVICE},
	}}}}, nil
}

// Probe says that the driver is ready.
func (d *Driver) Probe(context.Context, *csi.ProbeRequest) (*csi.ProbeResponse, error) {
	return &csi.ProbeResponse{}, nil
}
