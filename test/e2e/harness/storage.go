package harness

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"

	spec "github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	v1 "k8s.io/api/core/v1"

	"github.com/exeunt-io/exeunt/pkg/csimock"
)

// StorageClient returns a CSI client of the driver.
func (s *Session) StorageClient() spec.ControllerClient {
	s.T.Helper()
	connection, err := grpc.NewClient("unix://"+s.Driver.Socket, grpc.WithTransportCredentials(insecure.NewCredentials()))
	s.Must(err, "connect to the driver")
	s.T.Cleanup(func() { _ = connection.Close() })
	return spec.NewControllerClient(connection)
}

// CreateStoredVolume creates a volume in the storage system, as an administrator does
// for a static PersistentVolume, and returns the handle.
func (s *Session) CreateStoredVolume(name string) string {
	s.T.Helper()
	created, err := s.StorageClient().CreateVolume(s.Ctx, &spec.CreateVolumeRequest{
		Name:          s.Namespace + "-" + name,
		CapacityRange: &spec.CapacityRange{RequiredBytes: 1 << 20},
		VolumeCapabilities: []*spec.VolumeCapability{{
			AccessType: &spec.VolumeCapability_Mount{Mount: &spec.VolumeCapability_MountVolume{}},
			AccessMode: &spec.VolumeCapability_AccessMode{Mode: spec.VolumeCapability_AccessMode_SINGLE_NODE_WRITER},
		}},
	})
	s.Must(err, "make volume in the storage system")
	return created.GetVolume().GetVolumeId()
}

// IsStored reports whether the storage system has the volume.
func (s *Session) IsStored(handle string) bool {
	s.T.Helper()
	page := ""
	for {
		list, err := s.StorageClient().ListVolumes(s.Ctx, &spec.ListVolumesRequest{StartingToken: page})
		s.Must(err, "list volumes of the storage system")
		for _, entry := range list.GetEntries() {
			if entry.GetVolume().GetVolumeId() == handle {
				return true
			}
		}
		if page = list.GetNextToken(); page == "" {
			return false
		}
	}
}

// CountCalls counts the finished calls of the method for the volume.
func (s *Session) CountCalls(method, handle string) int {
	s.T.Helper()
	all, err := csimock.ReadCalls(s.Driver.CallLog)
	s.Must(err, "read call log")
	count := 0
	for _, call := range all {
		if call.Method == method && call.Volume == handle {
			count++
		}
	}
	return count
}

// Handle returns the CSI volume handle.
func Handle(volume *v1.PersistentVolume) string { return volume.Spec.CSI.VolumeHandle }

// StoredVolume returns the volume in the storage system.
func (s *Session) StoredVolume(volume *v1.PersistentVolume) csimock.Volume {
	s.T.Helper()
	files, err := filepath.Glob(filepath.Join(s.Dir, "*.volumes"))
	if err != nil || len(files) != 1 {
		s.T.Fatalf("find the storage system's volumes: %v, %v", files, err)
	}
	data, err := os.ReadFile(files[0])
	s.Must(err, "read the storage system's volumes")
	var state struct{ Volumes []csimock.Volume }
	s.Must(json.Unmarshal(data, &state), "decode the storage system's volumes")
	i := slices.IndexFunc(state.Volumes, func(v csimock.Volume) bool { return v.ID == Handle(volume) })
	if i < 0 {
		s.T.Fatalf("the storage system does not have %s", Handle(volume))
	}
	return state.Volumes[i]
}
