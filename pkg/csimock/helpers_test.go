package csimock_test

import (
	"context"
	"net"
	"os"
	"path/filepath"
	"testing"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"
	"google.golang.org/grpc/test/bufconn"

	"github.com/exeunt-io/exeunt/pkg/csimock"
)

const gib = int64(1) << 30

// clients are the four services of one driver.
type clients struct {
	csi.IdentityClient
	csi.ControllerClient
	csi.GroupControllerClient
	csi.NodeClient
}

// start serves a driver on a socket until the test ends.
func start(t testing.TB, config csimock.Config) (*csimock.Server, clients) {
	t.Helper()
	socket := filepath.Join(shortDir(t), "csi.sock")
	server, err := csimock.Start(t.Context(), config, socket)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := server.Stop(); err != nil {
			t.Error(err)
		}
	})
	return server, clientsOf(dial(t, socket))
}

// shortDir returns a directory whose path leaves room for that of a socket,
// which has 107 bytes.
func shortDir(t testing.TB) string {
	t.Helper()
	directory, err := os.MkdirTemp("", "csimock")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := os.RemoveAll(directory); err != nil {
			t.Error(err)
		}
	})
	return directory
}

// dial connects to a socket until the test ends.
func dial(t testing.TB, socket string) *grpc.ClientConn {
	t.Helper()
	return connect(t, "unix:"+socket)
}

// dialMemory connects to a listener without a socket until the test ends.
func dialMemory(t testing.TB, listener *bufconn.Listener) *grpc.ClientConn {
	t.Helper()
	return connect(t, "passthrough:memory", grpc.WithContextDialer(
		func(ctx context.Context, _ string) (net.Conn, error) { return listener.DialContext(ctx) },
	))
}

// connect opens a connection until the test ends.
func connect(t testing.TB, target string, options ...grpc.DialOption) *grpc.ClientConn {
	t.Helper()
	connection, err := grpc.NewClient(target, append(options, grpc.WithTransportCredentials(insecure.NewCredentials()))...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := connection.Close(); err != nil {
			t.Error(err)
		}
	})
	return connection
}

// clientsOf returns the services behind a connection.
func clientsOf(connection *grpc.ClientConn) clients {
	return clients{
		csi.NewIdentityClient(connection),
		csi.NewControllerClient(connection),
		csi.NewGroupControllerClient(connection),
		csi.NewNodeClient(connection),
	}
}

// mounted is the capability to mount a volume in the given mode.
func mounted(mode csi.VolumeCapability_AccessMode_Mode) *csi.VolumeCapability {
	return &csi.VolumeCapability{
		AccessType: &csi.VolumeCapability_Mount{Mount: &csi.VolumeCapability_MountVolume{}},
		AccessMode: &csi.VolumeCapability_AccessMode{Mode: mode},
	}
}

// single is the capability that most tests use.
func single() *csi.VolumeCapability {
	return mounted(csi.VolumeCapability_AccessMode_SINGLE_NODE_WRITER)
}

// raw is the capability to use a volume as a block device.
func raw() *csi.VolumeCapability {
	return &csi.VolumeCapability{
		AccessType: &csi.VolumeCapability_Block{Block: &csi.VolumeCapability_BlockVolume{}},
		AccessMode: &csi.VolumeCapability_AccessMode{Mode: csi.VolumeCapability_AccessMode_SINGLE_NODE_WRITER},
	}
}

// volumeRequest asks for a volume of 1 GiB.
func volumeRequest(name string) *csi.CreateVolumeRequest {
	return &csi.CreateVolumeRequest{
		Name:               name,
		CapacityRange:      &csi.CapacityRange{RequiredBytes: gib},
		VolumeCapabilities: []*csi.VolumeCapability{single()},
	}
}

// fromSnapshot is a snapshot as the source of a volume.
func fromSnapshot(id string) *csi.VolumeContentSource {
	return &csi.VolumeContentSource{Type: &csi.VolumeContentSource_Snapshot{
		Snapshot: &csi.VolumeContentSource_SnapshotSource{SnapshotId: id},
	}}
}

// fromVolume is a volume as the source of another.
func fromVolume(id string) *csi.VolumeContentSource {
	return &csi.VolumeContentSource{Type: &csi.VolumeContentSource_Volume{
		Volume: &csi.VolumeContentSource_VolumeSource{VolumeId: id},
	}}
}

// create creates a volume and returns its ID.
func create(t testing.TB, driver clients, request *csi.CreateVolumeRequest) string {
	t.Helper()
	response, err := driver.CreateVolume(t.Context(), request)
	if err != nil {
		t.Fatal(err)
	}
	return response.GetVolume().GetVolumeId()
}

// takeSnapshot takes a snapshot and returns its ID.
func takeSnapshot(t testing.TB, driver clients, name, volume string) string {
	t.Helper()
	response, err := driver.CreateSnapshot(t.Context(), &csi.CreateSnapshotRequest{Name: name, SourceVolumeId: volume})
	if err != nil {
		t.Fatal(err)
	}
	return response.GetSnapshot().GetSnapshotId()
}

// expectCode checks the code of a call, and that a failure says something.
func expectCode(t testing.TB, err error, want codes.Code) {
	t.Helper()
	if status.Code(err) != want {
		t.Errorf("the call ended with %v (%v), want %v", status.Code(err), err, want)
	}
	if err != nil && status.Convert(err).Message() == "" {
		t.Error("the failure has no message")
	}
}
