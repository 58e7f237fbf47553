// Package csi calls a CSI driver over its socket: it reads the driver's name and
// capabilities, sets a deadline for every call, and keeps secrets out of logs and errors.
// It decides nothing.
package csi

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"time"

	spec "github.com/container-storage-interface/spec/lib/go/csi"
	"github.com/kubernetes-csi/csi-lib-utils/connection"
	"github.com/kubernetes-csi/csi-lib-utils/rpc"
	"google.golang.org/grpc"
	"k8s.io/klog/v2"
)

// Config configures the connection to a driver.
type Config struct {
	// Address is the path of the socket, or unix://PATH.
	Address string
	// Timeout is the deadline of one call.
	Timeout time.Duration
	// Wait is the longest time until the driver's first answer; 0 waits for ever.
	Wait time.Duration
	// Topology is the feature gate; if false, the topology capability is ignored.
	Topology bool
	// Metrics counts the calls.
	Metrics *Metrics
	// Migrated reports whether the driver replaces an in-tree plugin. The metrics then label
	// calls for migrated volumes. Nil means never.
	Migrated func(driver string) bool
	// Changed is called once, with an error of type [Changed], if the driver reports another
	// name or other capabilities after a lost connection. Nil disables the check.
	Changed func(error)
}

// Driver is a connection to a CSI driver. [Connect] has read the driver's name and
// capabilities.
type Driver struct {
	info
	timeout    time.Duration
	connection *grpc.ClientConn
	// topology is the feature gate.
	topology bool
	// nodeTopology is the last reported topology of the node, nil before the first call.
	nodeTopology atomic.Pointer[map[string]string]
	// lost has an entry after a lost connection.
	lost chan struct{}
	// losses counts lost connections; known is that number when the driver was last known to be the
	// same, negative if nobody asks.
	losses, known atomic.Int64
	stop          context.CancelFunc
}

// info is the identity of a driver and its capabilities.
type info struct {
	name       string
	plugin     rpc.PluginCapabilitySet
	controller rpc.ControllerCapabilitySet
}

// errNoAnswer is the cause of the context's end after Config.Wait.
var errNoAnswer = errors.New("the driver did not answer in time")

// Connect waits until the driver answers and is ready. Its errors name the socket and the
// next step for the user.
func Connect(ctx context.Context, config Config) (*Driver, error) {
	address, err := addressOf(config.Address)
	if err != nil {
		return nil, err
	}
	waiting := ctx
	if config.Wait > 0 {
		var cancel context.CancelFunc
		waiting, cancel = context.WithTimeoutCause(ctx, config.Wait, errNoAnswer)
		defer cancel()
	}
	klog.FromContext(ctx).Info("Waiting for the CSI driver", "address", address)
	if isDenied(ctx, address) {
		klog.FromContext(ctx).Error(nil, "The socket of the CSI driver refuses this process; "+deniedHint, "address", address,
			"user", os.Getuid())
	}
	driver := &Driver{timeout: config.Timeout, topology: config.Topology, lost: make(chan struct{}, 1)}
	driver.connection, err = connection.Connect(waiting, address, config.Metrics, connection.WithTimeout(0),
		connection.OnConnectionLoss(driver.connectionLost))
	if err != nil {
		return nil, connectError(waiting, address, config.Wait, err)
	}
	if driver.info, err = driver.readInfo(waiting, config.nameMetrics); err != nil {
		return nil, errors.Join(connectError(waiting, address, config.Wait, err), driver.connection.Close())
	}
	ctx, driver.stop = context.WithCancel(ctx)
	driver.known.Store(-1)
	if config.Changed != nil {
		driver.known.Store(0)
		go driver.keepConnected(ctx)
		go driver.reportChange(ctx, config.Changed)
	}
	return driver, nil
}

// nameMetrics sets the driver's name in the metrics.
func (c Config) nameMetrics(driver string) {
	c.Metrics.SetDriverName(driver)
	if c.Migrated != nil && c.Migrated(driver) {
		c.Metrics.labelMigrated(driver)
	}
}

// deniedHint is what to do if the socket refuses this process.
const deniedHint = "run this container as the user of the socket: securityContext.runAsUser"

// isDenied reports whether the socket exists and this process may not connect to it. gRPC says only that there is no
// connection.
func isDenied(ctx context.Context, address string) bool {
	connection, err := (&net.Dialer{}).DialContext(context.WithoutCancel(ctx), "unix",
		strings.TrimPrefix(address, "unix://"))
	if err == nil {
		_ = connection.Close()
	}
	return errors.Is(err, fs.ErrPermission)
}

func connectError(ctx context.Context, address string, wait time.Duration, err error) error {
	switch {
	case !errors.Is(context.Cause(ctx), errNoAnswer):
		return fmt.Errorf("talk to the CSI driver at %s: %w", address, err)
	case isDenied(ctx, address):
		return fmt.Errorf("the socket %s (--csi-address) refused this process, which runs as user %d, for %s; %s: %w",
			address, os.Getuid(), wait, deniedHint, err)
	}
	return fmt.Errorf("no CSI driver answered at %s within %s; see whether it runs and listens there (--csi-address): %w",
		address, wait, err)
}

// addressOf returns the address with an absolute path: gRPC would take a relative path for
// a host name.
func addressOf(address string) (string, error) {
	path, prefixed := strings.CutPrefix(address, "unix:")
	if prefixed {
		path = strings.TrimPrefix(path, "//")
	}
	switch {
	case path == "":
		return "", errors.New("--csi-address is empty; give the path of the driver's socket")
	case strings.Contains(path, "://"):
		return "", fmt.Errorf("--csi-address=%s is no socket; give the path of the driver's socket, such as /csi/csi.sock: drivers are reached over unix sockets only", address)
	}
	absolute, err := filepath.Abs(path)
	if err != nil {
		return "", fmt.Errorf("resolve --csi-address %q: %w", address, err)
	}
	return "unix://" + absolute, nil
}

// readInfo probes the driver and reads its name and capabilities. It calls named with the
// driver's name before the calls for capabilities, so that the metrics have the name.
func (d *Driver) readInfo(ctx context.Context, named func(driver string)) (info, error) {
	if err := rpc.ProbeForever(ctx, d.connection, d.timeout); err != nil {
		return info{}, err
	}
	name, err := d.readName(ctx)
	if err != nil {
		return info{}, err
	}
	named(name)
	plugin, err := d.readPlugin(ctx)
	if err != nil {
		return info{}, fmt.Errorf("read plugin capabilities of driver %s: %w", name, err)
	}
	controller, err := d.readController(ctx)
	if err != nil {
		return info{}, fmt.Errorf("read controller capabilities of driver %s: %w", name, err)
	}
	return info{name: name, plugin: plugin, controller: controller}, nil
}

func (d *Driver) readName(ctx context.Context) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, d.timeout)
	defer cancel()
	name, err := rpc.GetDriverName(ctx, d.connection)
	if err != nil {
		return "", fmt.Errorf("read driver name: %w", err)
	}
	return name, nil
}

func (d *Driver) readPlugin(ctx context.Context) (rpc.PluginCapabilitySet, error) {
	ctx, cancel := context.WithTimeout(ctx, d.timeout)
	defer cancel()
	return rpc.GetPluginCapabilities(ctx, d.connection)
}

func (d *Driver) readController(ctx context.Context) (rpc.ControllerCapabilitySet, error) {
	ctx, cancel := context.WithTimeout(ctx, d.timeout)
	defer cancel()
	return rpc.GetControllerCapabilities(ctx, d.connection)
}

// Name returns the name that the driver reports.
func (d *Driver) Name() string { return d.name }

// CreatesVolumes reports whether the driver can create and delete volumes.
func (d *Driver) CreatesVolumes() bool {
	return d.plugin[spec.PluginCapability_Service_CONTROLLER_SERVICE] &&
		d.controller[spec.ControllerServiceCapability_RPC_CREATE_DELETE_VOLUME]
}

// Publishes reports whether the driver's controller attaches volumes to nodes.
func (d *Driver) Publishes() bool {
	return d.controller[spec.ControllerServiceCapability_RPC_PUBLISH_UNPUBLISH_VOLUME]
}

// Clones reports whether the driver can clone volumes.
func (d *Driver) Clones() bool {
	return d.controller[spec.ControllerServiceCapability_RPC_CLONE_VOLUME]
}

// Snapshots reports whether the driver can create snapshots.
func (d *Driver) Snapshots() bool {
	return d.controller[spec.ControllerServiceCapability_RPC_CREATE_DELETE_SNAPSHOT]
}

// Modifies reports whether volumes accept the parameters of a VolumeAttributesClass.
func (d *Driver) Modifies() bool {
	return d.controller[spec.ControllerServiceCapability_RPC_MODIFY_VOLUME]
}

// ReportsCapacity reports whether the driver announces GET_CAPACITY.
func (d *Driver) ReportsCapacity() bool {
	return d.controller[spec.ControllerServiceCapability_RPC_GET_CAPACITY]
}

// ListsVolumes reports whether the driver can list its volumes.
func (d *Driver) ListsVolumes() bool {
	return d.controller[spec.ControllerServiceCapability_RPC_LIST_VOLUMES]
}

// ListsSnapshots reports whether the driver can list its snapshots.
func (d *Driver) ListsSnapshots() bool {
	return d.controller[spec.ControllerServiceCapability_RPC_LIST_SNAPSHOTS]
}

// HasTopology reports whether the driver has topology: not every node reaches every volume.
func (d *Driver) HasTopology() bool {
	return d.topology && d.plugin[spec.PluginCapability_Service_VOLUME_ACCESSIBILITY_CONSTRAINTS]
}

// HasSingleWriter reports whether the driver distinguishes a single writer from several
// writers on one node (SINGLE_NODE_MULTI_WRITER).
func (d *Driver) HasSingleWriter() bool {
	return d.controller[spec.ControllerServiceCapability_RPC_SINGLE_NODE_MULTI_WRITER]
}

// CreateVolume calls the driver. Errors are gRPC errors with secrets hidden; by the gRPC
// code, the caller decides whether a volume may exist: an answer is never too long, for gRPC would say
// ResourceExhausted, as a driver that created no volume. The error is [NotSent] if no driver has received
// the call.
func (d *Driver) CreateVolume(ctx context.Context,
	request *spec.CreateVolumeRequest) (*spec.CreateVolumeResponse, error) {
	ctx, cancel := context.WithTimeout(ctx, d.timeout)
	defer cancel()
	known := &knownDriver{driver: d}
	response, err := spec.NewControllerClient(d.connection).CreateVolume(hideInLogs(ctx, request.GetSecrets()), request,
		grpc.PerRPCCredentials(known), grpc.MaxCallRecvMsgSize(math.MaxInt32))
	return response, known.orNotSent(redact(err, request.GetSecrets()))
}

// DeleteVolume calls the driver, which must return success for a volume that does not
// exist. Errors are gRPC errors with secrets hidden.
func (d *Driver) DeleteVolume(ctx context.Context, handle string, secrets map[string]string) error {
	ctx, cancel := context.WithTimeout(ctx, d.timeout)
	defer cancel()
	_, err := spec.NewControllerClient(d.connection).DeleteVolume(hideInLogs(ctx, secrets),
		&spec.DeleteVolumeRequest{VolumeId: handle, Secrets: secrets}, d.onceKnown())
	return redact(err, secrets)
}

// GetCapacity calls the driver. Errors are gRPC errors, unchanged.
func (d *Driver) GetCapacity(ctx context.Context, request *spec.GetCapacityRequest) (*spec.GetCapacityResponse, error) {
	ctx, cancel := context.WithTimeout(ctx, d.timeout)
	defer cancel()
	return spec.NewControllerClient(d.connection).GetCapacity(ctx, request, d.onceKnown())
}

// ListVolumes calls the driver for one page of its volumes. Errors are gRPC errors,
// unchanged.
func (d *Driver) ListVolumes(ctx context.Context, request *spec.ListVolumesRequest) (*spec.ListVolumesResponse, error) {
	ctx, cancel := context.WithTimeout(ctx, d.timeout)
	defer cancel()
	return spec.NewControllerClient(d.connection).ListVolumes(ctx, request, d.onceKnown())
}

// ListSnapshots calls the driver for one page of its snapshots. Errors are gRPC errors,
// unchanged.
func (d *Driver) ListSnapshots(ctx context.Context,
	request *spec.ListSnapshotsRequest) (*spec.ListSnapshotsResponse, error) {
	ctx, cancel := context.WithTimeout(ctx, d.timeout)
	defer cancel()
	return spec.NewControllerClient(d.connection).ListSnapshots(ctx, request, d.onceKnown())
}

// ValidateVolumeCapabilities calls the driver, which answers NotFound for a volume that
// does not exist. Errors are gRPC errors, unchanged.
func (d *Driver) ValidateVolumeCapabilities(ctx context.Context,
	request *spec.ValidateVolumeCapabilitiesRequest) (*spec.ValidateVolumeCapabilitiesResponse, error) {
	ctx, cancel := context.WithTimeout(ctx, d.timeout)
	defer cancel()
	return spec.NewControllerClient(d.connection).ValidateVolumeCapabilities(ctx, request, d.onceKnown())
}

// NodeTopology reads the topology of the driver's node, empty for a driver without
// topology.
func (d *Driver) NodeTopology(ctx context.Context) (map[string]string, error) {
	reported, err := d.readNodeTopology(ctx)
	if err != nil {
		return nil, err
	}
	d.nodeTopology.Store(&reported)
	return reported, nil
}

func (d *Driver) readNodeTopology(ctx context.Context) (map[string]string, error) {
	ctx, cancel := context.WithTimeout(ctx, d.timeout)
	defer cancel()
	info, err := spec.NewNodeClient(d.connection).NodeGetInfo(ctx, &spec.NodeGetInfoRequest{})
	if err != nil {
		return nil, fmt.Errorf("ask driver %s for its node: %w", d.name, err)
	}
	return info.GetAccessibleTopology().GetSegments(), nil
}

// Close closes the connection.
func (d *Driver) Close() error {
	d.stop()
	return d.connection.Close()
}
