// Package csi calls a CSI driver over its socket: it finds out what the driver is
// called and can do, gives every call a deadline, and logs requests stripped of
// secrets. It decides nothing.
package csi

import (
	"context"
	"errors"
	"fmt"
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

// Config is how a driver is reached.
type Config struct {
	// Address is the path of the socket, or unix://PATH.
	Address string
	// Timeout bounds one call.
	Timeout time.Duration
	// Wait bounds the time until the driver answers for the first time; 0 is for ever.
	Wait time.Duration
	// Topology off has the driver taken for one without topology.
	Topology bool
	// Metrics counts the calls.
	Metrics *Metrics
	// Migrated says whether an in-tree plugin was migrated to the driver of that name,
	// so that calls about its volumes are counted apart; nil if to none.
	Migrated func(driver string) bool
	// Changed is told, once, that the driver was started again and is another one now,
	// by an error of type [Changed]. It is asked whenever a lost connection is back; nil
	// asks never.
	Changed func(error)
}

// Driver is a connection to a driver that has answered.
type Driver struct {
	told
	timeout    time.Duration
	connection *grpc.ClientConn
	// topology off has the driver taken for one without.
	topology bool
	// place is where the driver said that its node is, nil if it was not asked.
	place atomic.Pointer[map[string]string]
	// lost has an entry when the driver is to be asked what it is.
	lost chan struct{}
	stop context.CancelFunc
}

// told is what a driver says of itself.
type told struct {
	name       string
	plugin     rpc.PluginCapabilitySet
	controller rpc.ControllerCapabilitySet
}

// errWaited is the cause that ends the wait for a driver.
var errWaited = errors.New("it did not answer in time")

// Connect waits until the driver answers and says that it is ready. Its errors
// name the socket and what to look at.
func Connect(ctx context.Context, config Config) (*Driver, error) {
	address, err := addressOf(config.Address)
	if err != nil {
		return nil, err
	}
	asking := ctx
	if config.Wait > 0 {
		var cancel context.CancelFunc
		asking, cancel = context.WithTimeoutCause(ctx, config.Wait, errWaited)
		defer cancel()
	}
	klog.FromContext(ctx).Info("Waiting for the CSI driver", "address", address)
	driver := &Driver{timeout: config.Timeout, topology: config.Topology, lost: make(chan struct{}, 1)}
	driver.connection, err = connection.Connect(asking, address, config.Metrics, connection.WithTimeout(0), connection.OnConnectionLoss(driver.lose))
	if err != nil {
		return nil, unreachable(asking, address, config.Wait, err)
	}
	if driver.told, err = driver.ask(asking, config.begin); err != nil {
		return nil, errors.Join(unreachable(asking, address, config.Wait, err), driver.connection.Close())
	}
	ctx, driver.stop = context.WithCancel(ctx)
	if config.Changed != nil {
		go driver.redial(ctx)
		go driver.compare(ctx, config.Changed)
	}
	return driver, nil
}

// begin has the calls counted under the driver's name.
func (c Config) begin(driver string) {
	c.Metrics.SetDriverName(driver)
	if c.Migrated != nil && c.Migrated(driver) {
		c.Metrics.tellMigrated(driver)
	}
}

func unreachable(ctx context.Context, address string, wait time.Duration, err error) error {
	if errors.Is(context.Cause(ctx), errWaited) {
		return fmt.Errorf("no CSI driver answered at %s within %s; see whether it runs and listens there (--csi-address): %w", address, wait, err)
	}
	return fmt.Errorf("talk to the CSI driver at %s: %w", address, err)
}

// addressOf makes a path absolute, so that it cannot be taken for a host name.
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

// ask probes the driver and reads its name and capabilities; named is told the name
// before the rest is asked.
func (d *Driver) ask(ctx context.Context, named func(driver string)) (told, error) {
	if err := rpc.ProbeForever(ctx, d.connection, d.timeout); err != nil {
		return told{}, err
	}
	name, err := d.askName(ctx)
	if err != nil {
		return told{}, err
	}
	named(name)
	plugin, err := d.askPlugin(ctx)
	if err != nil {
		return told{}, fmt.Errorf("read plugin capabilities of driver %s: %w", name, err)
	}
	controller, err := d.askController(ctx)
	if err != nil {
		return told{}, fmt.Errorf("read controller capabilities of driver %s: %w", name, err)
	}
	return told{name: name, plugin: plugin, controller: controller}, nil
}

func (d *Driver) askName(ctx context.Context) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, d.timeout)
	defer cancel()
	name, err := rpc.GetDriverName(ctx, d.connection)
	if err != nil {
		return "", fmt.Errorf("read driver name: %w", err)
	}
	return name, nil
}

func (d *Driver) askPlugin(ctx context.Context) (rpc.PluginCapabilitySet, error) {
	ctx, cancel := context.WithTimeout(ctx, d.timeout)
	defer cancel()
	return rpc.GetPluginCapabilities(ctx, d.connection)
}

func (d *Driver) askController(ctx context.Context) (rpc.ControllerCapabilitySet, error) {
	ctx, cancel := context.WithTimeout(ctx, d.timeout)
	defer cancel()
	return rpc.GetControllerCapabilities(ctx, d.connection)
}

// Name is the driver's own.
func (d *Driver) Name() string { return d.name }

// CreatesVolumes says whether the driver can create and delete volumes.
func (d *Driver) CreatesVolumes() bool {
	return d.plugin[spec.PluginCapability_Service_CONTROLLER_SERVICE] &&
		d.controller[spec.ControllerServiceCapability_RPC_CREATE_DELETE_VOLUME]
}

// Publishes says whether volumes are attached to nodes by the driver's controller.
func (d *Driver) Publishes() bool {
	return d.controller[spec.ControllerServiceCapability_RPC_PUBLISH_UNPUBLISH_VOLUME]
}

// Clones says whether the driver can make a volume from another one.
func (d *Driver) Clones() bool {
	return d.controller[spec.ControllerServiceCapability_RPC_CLONE_VOLUME]
}

// Snapshots says whether the driver can make snapshots.
func (d *Driver) Snapshots() bool {
	return d.controller[spec.ControllerServiceCapability_RPC_CREATE_DELETE_SNAPSHOT]
}

// Modifies says whether volumes take the parameters of a VolumeAttributesClass.
func (d *Driver) Modifies() bool {
	return d.controller[spec.ControllerServiceCapability_RPC_MODIFY_VOLUME]
}

// TellsCapacity says whether the driver knows how much is left.
func (d *Driver) TellsCapacity() bool {
	return d.controller[spec.ControllerServiceCapability_RPC_GET_CAPACITY]
}

// HasTopology says whether not every node can reach every volume.
func (d *Driver) HasTopology() bool {
	return d.topology && d.plugin[spec.PluginCapability_Service_VOLUME_ACCESSIBILITY_CONSTRAINTS]
}

// TellsWriters says whether the driver tells one writer from one node of writers.
func (d *Driver) TellsWriters() bool {
	return d.controller[spec.ControllerServiceCapability_RPC_SINGLE_NODE_MULTI_WRITER]
}

// CreateVolume asks for a volume. Errors are those of gRPC, with secrets hidden: their
// code says whether the driver may still be at it.
func (d *Driver) CreateVolume(ctx context.Context, request *spec.CreateVolumeRequest) (*spec.CreateVolumeResponse, error) {
	ctx, cancel := context.WithTimeout(ctx, d.timeout)
	defer cancel()
	response, err := spec.NewControllerClient(d.connection).CreateVolume(discreet(ctx, request.GetSecrets()), request)
	return response, redact(err, request.GetSecrets())
}

// DeleteVolume deletes the volume with the handle; success for one that does not
// exist is the driver's duty. Errors are those of gRPC, with secrets hidden.
func (d *Driver) DeleteVolume(ctx context.Context, handle string, secrets map[string]string) error {
	ctx, cancel := context.WithTimeout(ctx, d.timeout)
	defer cancel()
	_, err := spec.NewControllerClient(d.connection).DeleteVolume(discreet(ctx, secrets), &spec.DeleteVolumeRequest{VolumeId: handle, Secrets: secrets})
	return redact(err, secrets)
}

// GetCapacity asks how much is left. Errors are those of gRPC, unchanged.
func (d *Driver) GetCapacity(ctx context.Context, request *spec.GetCapacityRequest) (*spec.GetCapacityResponse, error) {
	ctx, cancel := context.WithTimeout(ctx, d.timeout)
	defer cancel()
	return spec.NewControllerClient(d.connection).GetCapacity(ctx, request)
}

// NodeTopology asks where the node is that the driver's socket belongs to. It is
// empty if every node is alike to the driver.
func (d *Driver) NodeTopology(ctx context.Context) (map[string]string, error) {
	place, err := d.askPlace(ctx)
	if err != nil {
		return nil, err
	}
	d.place.Store(&place)
	return place, nil
}

func (d *Driver) askPlace(ctx context.Context) (map[string]string, error) {
	ctx, cancel := context.WithTimeout(ctx, d.timeout)
	defer cancel()
	info, err := spec.NewNodeClient(d.connection).NodeGetInfo(ctx, &spec.NodeGetInfoRequest{})
	if err != nil {
		return nil, fmt.Errorf("ask driver %s for its node: %w", d.name, err)
	}
	return info.GetAccessibleTopology().GetSegments(), nil
}

// Close ends the connection.
func (d *Driver) Close() error {
	d.stop()
	return d.connection.Close()
}
