package csi_test

import (
	"context"
	"net"
	"path/filepath"
	"strings"
	"testing"
	"time"

	spec "github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/exeunt-io/exeunt/pkg/provisioner/csi"
)

// talkative is a driver that describes a volume at length.
type talkative struct {
	spec.UnimplementedIdentityServer
	spec.UnimplementedControllerServer
}

func (talkative) GetPluginInfo(context.Context, *spec.GetPluginInfoRequest) (*spec.GetPluginInfoResponse, error) {
	return &spec.GetPluginInfoResponse{Name: "talkative.csi"}, nil
}

func (talkative) GetPluginCapabilities(context.Context,
	*spec.GetPluginCapabilitiesRequest) (*spec.GetPluginCapabilitiesResponse, error) {
	return &spec.GetPluginCapabilitiesResponse{}, nil
}

func (talkative) Probe(context.Context, *spec.ProbeRequest) (*spec.ProbeResponse, error) {
	return &spec.ProbeResponse{Ready: wrapperspb.Bool(true)}, nil
}

func (talkative) ControllerGetCapabilities(context.Context,
	*spec.ControllerGetCapabilitiesRequest) (*spec.ControllerGetCapabilitiesResponse, error) {
	return &spec.ControllerGetCapabilitiesResponse{Capabilities: []*spec.ControllerServiceCapability{{Type: &spec.ControllerServiceCapability_Rpc{
		Rpc: &spec.ControllerServiceCapability_RPC{Type: spec.ControllerServiceCapability_RPC_CREATE_DELETE_VOLUME},
	}}}}, nil
}

func (talkative) CreateVolume(context.Context, *spec.CreateVolumeRequest) (*spec.CreateVolumeResponse, error) {
	return &spec.CreateVolumeResponse{Volume: &spec.Volume{VolumeId: "disk",
		VolumeContext: map[string]string{"k": strings.Repeat("v", 5<<20)}}}, nil
}

// gRPC refuses an answer of more than 4 MiB, and says ResourceExhausted, as a driver does that has created no
// volume.
func TestLongAnswerIsRead(t *testing.T) {
	socket := filepath.Join(t.TempDir(), "csi.sock")
	listener, err := net.Listen("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	server := grpc.NewServer()
	spec.RegisterIdentityServer(server, talkative{})
	spec.RegisterControllerServer(server, talkative{})
	go func() { _ = server.Serve(listener) }()
	t.Cleanup(server.Stop)
	driver, err := csi.Connect(t.Context(), csi.Config{Address: socket, Timeout: time.Minute, Metrics: csi.NewMetrics()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = driver.Close() })
	if response, err := driver.CreateVolume(t.Context(), &spec.CreateVolumeRequest{Name: "volume"}); err != nil ||
		response.GetVolume().GetVolumeId() != "disk" {
		t.Errorf("CreateVolume = %v", err)
	}
}
