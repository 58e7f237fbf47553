package provisioning

import (
	"context"
	"errors"

	spec "github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	v1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/exeunt-io/exeunt/pkg/provisioner/csibackend"
)

// local is the driver of one node, with every capability but topology.
type local struct {
	csibackend.Driver
	made int
	// full: the driver has no space.
	full bool
}

func (*local) Name() string          { return "ours" }
func (*local) HasTopology() bool     { return false }
func (*local) HasSingleWriter() bool { return true }
func (*local) Snapshots() bool       { return true }
func (*local) Clones() bool          { return true }
func (*local) Modifies() bool        { return true }

func (l *local) CreateVolume(_ context.Context, request *spec.CreateVolumeRequest) (*spec.CreateVolumeResponse, error) {
	l.made++
	if l.full {
		return nil, status.Error(codes.ResourceExhausted, "no space")
	}
	return &spec.CreateVolumeResponse{Volume: &spec.Volume{VolumeId: request.GetName(), CapacityBytes: 1 << 30}}, nil
}

// plugin is an in-tree plugin without volumes.
type plugin struct{}

func (plugin) Class(context.Context, *storagev1.StorageClass) (*storagev1.StorageClass, error) {
	return nil, errors.New("not of the plugin")
}

func (plugin) Volume(volume *v1.PersistentVolume) (*v1.PersistentVolume, error) {
	if volume.Spec.HostPath == nil {
		return nil, errors.New("not of the plugin")
	}
	volume = volume.DeepCopy()
	volume.Spec.CSI = &v1.CSIPersistentVolumeSource{Driver: "driver", VolumeHandle: volume.Spec.HostPath.Path}
	return volume, nil
}

func (plugin) InTree(*v1.PersistentVolume) (*v1.PersistentVolume, error) {
	return nil, errors.New("no such disk")
}

func (plugin) Disk(volume *v1.PersistentVolume) string {
	switch {
	case volume.Spec.HostPath != nil:
		return volume.Spec.HostPath.Path
	case volume.Spec.CSI != nil:
		return volume.Spec.CSI.VolumeHandle
	}
	return ""
}

// newNode returns a node in a zone.
func newNode(name, zone string) *v1.Node {
	return &v1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"zone": zone}}}
}

// newCSINode returns the CSINode of a node with the driver.
func newCSINode(name string, driver csibackend.Driver) *storagev1.CSINode {
	return &storagev1.CSINode{ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: storagev1.CSINodeSpec{Drivers: []storagev1.CSINodeDriver{
			{Name: driver.Name(), TopologyKeys: []string{"zone"}},
		}}}
}

// newBackend returns the backend of a driver without snapshots and topology.
func newBackend(config csibackend.InputsConfig) *csibackend.Backend {
	return &csibackend.Backend{Driver: config.Driver, Inputs: csibackend.NewInputs(config)}
}
