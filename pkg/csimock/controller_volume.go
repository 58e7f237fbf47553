package csimock

import (
	"cmp"
	"context"
	"maps"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// CreateVolume creates a volume, or returns the existing volume with the name.
func (s *controllerServer) CreateVolume(_ context.Context,
	request *csi.CreateVolumeRequest) (*csi.CreateVolumeResponse, error) {
	wanted, err := s.checkCreateVolume(request)
	if err != nil {
		return nil, err
	}
	s.store.Lock()
	defer s.store.Unlock()
	if existing, found := s.store.volumes.byName[request.GetName()]; found {
		if err := compatible(existing, request, wanted); err != nil {
			return nil, err
		}
		return &csi.CreateVolumeResponse{Volume: s.describe(existing)}, nil
	}
	volume, err := s.newVolume(request, wanted)
	if err != nil {
		return nil, err
	}
	s.store.addVolume(volume)
	return &csi.CreateVolumeResponse{Volume: s.describe(volume)}, nil
}

// checkCreateVolume refuses an invalid request and capabilities that are off, and returns
// the requested accesses.
func (s *controllerServer) checkCreateVolume(request *csi.CreateVolumeRequest) ([]Access, error) {
	if err := cmp.Or(
		checkText("name", request.GetName()),
		checkRange(request.GetCapacityRange()),
		checkMap("parameters", request.GetParameters()),
		s.checkMutable(request.GetMutableParameters()),
		s.checkSource(request.GetVolumeContentSource()),
		s.checkTopology(request.GetAccessibilityRequirements(), Topology),
	); err != nil {
		return nil, err
	}
	return parseAccesses(s.config.Capabilities, request.GetVolumeCapabilities())
}

// checkSource refuses a content source that the driver does not support.
func (s *controllerServer) checkSource(source *csi.VolumeContentSource) error {
	switch {
	case source == nil:
		return nil
	case source.GetSnapshot() != nil:
		if !s.config.Capabilities.Has(Snapshots) {
			return status.Error(codes.InvalidArgument,
				"volume_content_source is a snapshot, but the driver does not have CREATE_DELETE_SNAPSHOT")
		}
		return checkText("snapshot_id", source.GetSnapshot().GetSnapshotId())
	case source.GetVolume() != nil:
		if !s.config.Capabilities.Has(Clones) {
			return status.Error(codes.InvalidArgument,
				"volume_content_source is a volume, but the driver does not have CLONE_VOLUME")
		}
		return checkText("volume_id", source.GetVolume().GetVolumeId())
	}
	return status.Error(codes.InvalidArgument, "volume_content_source must be a snapshot or a volume")
}

// checkTopology refuses empty requirements, and requirements without the capability.
func (s *controllerServer) checkTopology(wanted *csi.TopologyRequirement, needed Capability) error {
	switch {
	case wanted == nil:
		return nil
	case !s.config.Capabilities.Has(needed):
		return status.Errorf(codes.InvalidArgument,
			"accessibility_requirements is set, but the driver does not have the capability %s", needed)
	case len(wanted.GetRequisite())+len(wanted.GetPreferred()) == 0:
		return status.Error(codes.InvalidArgument, "accessibility_requirements must have requisite or preferred topologies")
	}
	return nil
}

// compatible returns AlreadyExists if the existing volume differs from the request.
func compatible(existing *Volume, request *csi.CreateVolumeRequest, wanted []Access) error {
	difference := ""
	limit := request.GetCapacityRange().GetLimitBytes()
	switch {
	case existing.Capacity < request.GetCapacityRange().GetRequiredBytes(), limit > 0 && existing.Capacity > limit:
		difference = "capacity"
	case !maps.Equal(existing.Parameters, request.GetParameters()):
		difference = "parameters"
	case !within(existing.Mutable, request.GetMutableParameters()):
		difference = "mutable parameters"
	case existing.Source != sourceOf(request.GetVolumeContentSource()):
		difference = "content source"
	case !accessibleFrom(existing.Topology, request.GetAccessibilityRequirements()):
		difference = "topology"
	}
	for _, access := range wanted {
		if !existing.serves(access) {
			difference = "volume capabilities"
		}
	}
	if difference == "" {
		return nil
	}
	return status.Errorf(codes.AlreadyExists, "volume %q already exists with different %s", request.GetName(), difference)
}

// newVolume returns the requested volume, without adding it to the store.
func (s *controllerServer) newVolume(request *csi.CreateVolumeRequest, wanted []Access) (*Volume, error) {
	source := sourceOf(request.GetVolumeContentSource())
	least, err := s.sourceSize(source)
	if err != nil {
		return nil, err
	}
	capacity, err := s.newCapacity(request.GetCapacityRange(), least)
	if err != nil {
		return nil, err
	}
	topology, err := selectTopology(s.topologiesFor(source), request.GetAccessibilityRequirements())
	if err != nil {
		return nil, err
	}
	return &Volume{
		Record:     s.store.newRecord("vol", request.GetName()),
		Capacity:   capacity,
		Access:     wanted,
		Parameters: request.GetParameters(),
		Mutable:    request.GetMutableParameters(),
		Source:     source,
		Topology:   topology,
		Health:     s.config.healthOf(request.GetName()),
	}, nil
}

// sourceOf returns the content source of a request.
func sourceOf(source *csi.VolumeContentSource) Source {
	return Source{
		Snapshot: source.GetSnapshot().GetSnapshotId(),
		Volume:   source.GetVolume().GetVolumeId(),
	}
}

// sourceSize returns the minimum size in bytes of a volume with the source, 0 without a
// source, and NotFound for a missing source.
func (s *controllerServer) sourceSize(source Source) (int64, error) {
	switch {
	case source.Snapshot != "":
		snapshot, found := s.store.snapshots.byID[source.Snapshot]
		if !found {
			return 0, status.Errorf(codes.NotFound, "source snapshot %q does not exist", source.Snapshot)
		}
		return snapshot.Size, nil
	case source.Volume != "":
		volume, found := s.store.volumes.byID[source.Volume]
		if !found {
			return 0, status.Errorf(codes.NotFound, "source volume %q does not exist", source.Volume)
		}
		return volume.Capacity, nil
	}
	return 0, nil
}

// topologiesFor returns the possible topologies of a volume with the source: those of the
// driver, or the topology of the source snapshot.
func (s *controllerServer) topologiesFor(source Source) []map[string]string {
	snapshot, found := s.store.snapshots.byID[source.Snapshot]
	if !found || len(snapshot.Topology) == 0 || !s.config.Capabilities.Has(SnapshotTopology) {
		return s.config.Topologies
	}
	return []map[string]string{snapshot.Topology}
}

// DeleteVolume deletes a volume that is not in use. A missing volume is a success.
func (s *controllerServer) DeleteVolume(_ context.Context,
	request *csi.DeleteVolumeRequest) (*csi.DeleteVolumeResponse, error) {
	id := resolve(request.GetVolumeId())
	if err := checkText("volume_id", id); err != nil {
		return nil, err
	}
	s.store.Lock()
	defer s.store.Unlock()
	volume, found := s.store.volumes.byID[id]
	if !found {
		return &csi.DeleteVolumeResponse{}, nil
	}
	if volume.inUse() {
		return nil, status.Errorf(codes.FailedPrecondition,
			"volume %q is in use: it is published to %d nodes, staged at %d paths and published at %d paths",
			volume.ID, len(volume.Published), len(volume.Staged), len(volume.Targets))
	}
	s.store.removeVolume(volume)
	return &csi.DeleteVolumeResponse{}, nil
}

// describe returns the CSI message of a volume.
func (d *Driver) describe(v *Volume) *csi.Volume {
	described := &csi.Volume{
		VolumeId:      v.ID,
		CapacityBytes: v.Capacity,
		VolumeContext: v.context(),
	}
	switch {
	case v.Source.Snapshot != "":
		described.ContentSource = &csi.VolumeContentSource{Type: &csi.VolumeContentSource_Snapshot{
			Snapshot: &csi.VolumeContentSource_SnapshotSource{SnapshotId: v.Source.Snapshot},
		}}
	case v.Source.Volume != "":
		described.ContentSource = &csi.VolumeContentSource{Type: &csi.VolumeContentSource_Volume{
			Volume: &csi.VolumeContentSource_VolumeSource{VolumeId: v.Source.Volume},
		}}
	}
	if len(v.Topology) > 0 && d.config.Capabilities.Has(Topology) {
		described.AccessibleTopology = []*csi.Topology{{Segments: maps.Clone(v.Topology)}}
	}
	return described
}

// context returns the volume context, as CreateVolume returned it.
func (v *Volume) context() map[string]string {
	return map[string]string{"name": v.Name}
}
