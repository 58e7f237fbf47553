package csimock_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"

	"github.com/exeunt-io/exeunt/pkg/csimock"
)

// The driver creates a volume, but the first call fails.
func Example() {
	directory, err := os.MkdirTemp("", "csimock")
	if err != nil {
		panic(err)
	}
	defer os.RemoveAll(directory)
	socket := filepath.Join(directory, "csi.sock")
	server, err := csimock.Start(context.Background(), csimock.Config{
		Capabilities: csimock.AllCapabilities().Without(csimock.Snapshots),
		Faults:       []csimock.Fault{{Method: "CreateVolume", Code: codes.DeadlineExceeded, Times: 1, After: true}},
	}, socket)
	if err != nil {
		panic(err)
	}
	connection, err := grpc.NewClient("unix:"+socket, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		panic(err)
	}
	defer connection.Close()
	request := &csi.CreateVolumeRequest{Name: "pvc-1", VolumeCapabilities: []*csi.VolumeCapability{{
		AccessType: &csi.VolumeCapability_Mount{Mount: &csi.VolumeCapability_MountVolume{}},
		AccessMode: &csi.VolumeCapability_AccessMode{Mode: csi.VolumeCapability_AccessMode_SINGLE_NODE_WRITER},
	}}}
	for range 2 {
		_, err := csi.NewControllerClient(connection).CreateVolume(context.Background(), request)
		fmt.Println("answer:", status.Code(err))
	}
	for _, call := range server.Calls() {
		fmt.Println(call.Seq, call.Method, call.Name, call.Code, "volumes:", call.Volumes)
	}
	if err := server.Stop(); err != nil {
		panic(err)
	}
	// Output:
	// answer: DeadlineExceeded
	// answer: OK
	// 1 CreateVolume pvc-1 DeadlineExceeded volumes: 1
	// 2 CreateVolume pvc-1 OK volumes: 1
}
