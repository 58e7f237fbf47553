package programs

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"maps"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	spec "github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	v1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/exeunt-io/exeunt/internal/sandbox"
	"github.com/exeunt-io/exeunt/test/e2e/harness"
)

// planted is a secret of which every dump, in lines of 16 bytes too, shows the first of
// the fragments. One of its values begins the other, and one is written differently in
// JSON and in quotes.
var (
	planted = map[string]string{
		"password": strings.Repeat("QZXJ", 16),
		"user":     strings.Repeat("QZXJ", 4),
		"phrase":   "VKWYVKWY&\"<VKWYVKWY>\nVKWYVKWY\\",
	}
	fragments = []string{planted["password"][:7], "VKWY"}
)

func TestSecretsAreNeverPrinted(t *testing.T) {
	t.Parallel()
	s := harness.Own(t, harness.Setup{NoProvisioner: true, ControllerFlags: "--v=10"})
	s.GrantSecrets()
	driver := startParrot(s)
	sidecar := s.StartProvisioner(driver, "provisioner", nil, "--v=10", "--retry-interval-start=100ms", "--retry-interval-max=100ms")
	_, err := s.Client.CoreV1().Secrets(s.Namespace).Create(s.Ctx, &v1.Secret{
		ObjectMeta: metav1.ObjectMeta{Name: "credentials"}, StringData: planted,
	}, metav1.CreateOptions{})
	s.Must(err, "create secret")
	createSecretClass(s, driver)

	refusals, leftovers := s.WatchEvents("ProvisioningFailed"), s.WatchEvents("ProvisioningCleanupFailed")
	claim := s.CreateClaim("claim", s.Namespace)
	refusals.Await(s, claim.Name, "parrot: I was given")
	leftovers.Await(s, claim.Name, `delete volume "volume of ***stripped***"`)
	refusals.Await(s, claim.Name, `"zone"="***stripped***"`)
	volume := s.AwaitBound("claim")
	s.DeleteVolume(volume.Name)
	s.DeleteClaim("claim")
	if message := s.AwaitEvent(volume, "VolumeFailedDelete"); !strings.Contains(message, "parrot") {
		t.Errorf("the event does not repeat what the driver said: %s", message)
	}
	s.AwaitVolumeGone(volume.Name)

	metrics, _ := s.HTTPGet(sidecar, "/metrics")
	places := map[string]string{"metrics": metrics, "volume": harness.AsText(t, volume), "events": s.AllEvents()}
	for _, process := range s.Processes {
		text, err := os.ReadFile(process.LogFile())
		s.Must(err, "read log")
		places["log of "+process.Name()] = string(text)
	}
	for place, text := range places {
		for _, fragment := range append(fragments, base64.StdEncoding.EncodeToString([]byte(planted["password"][:12]))) {
			if at := strings.Index(text, fragment); at >= 0 {
				t.Errorf("the secret is in the %s: %s", place, text[max(0, at-300):min(len(text), at+100)])
			}
		}
	}
	for _, proof := range []string{"***stripped***", "Volume created in the storage system", "Response Body", "/csi.v1.Controller/DeleteVolume"} {
		if log := places["log of "+sidecar.Name()]; !strings.Contains(log, proof) {
			t.Errorf("the log lacks %q, so that it proves nothing", proof)
		}
	}
}

// createSecretClass makes a class named for the test, whose secret is named by a
// template.
func createSecretClass(s *harness.Session, driver *sandbox.Driver) {
	s.T.Helper()
	class := harness.NewClass(s.Namespace, driver.DriverName, v1.PersistentVolumeReclaimDelete, storagev1.VolumeBindingImmediate)
	class.Parameters = map[string]string{
		"csi.storage.k8s.io/provisioner-secret-name":      "credentials",
		"csi.storage.k8s.io/provisioner-secret-namespace": "${pvc.namespace}",
	}
	class.AllowedTopologies = []v1.TopologySelectorTerm{{MatchLabelExpressions: []v1.TopologySelectorLabelRequirement{{Key: "zone", Values: []string{"a"}}}}}
	s.CreateStorageClass(class)
}

// parrot is a driver that repeats the secrets that it got: in what it says of failures,
// of which each call has one, and in what it says of the first volume that it makes.
type parrot struct {
	spec.UnimplementedIdentityServer
	spec.UnimplementedControllerServer
	name string

	mu   sync.Mutex
	said map[string]bool
}

// startParrot serves in this process until the test ends.
func startParrot(s *harness.Session) *sandbox.Driver {
	s.T.Helper()
	dir, err := os.MkdirTemp("", "csi-")
	s.Must(err, "make directory")
	socket := filepath.Join(dir, "csi.sock")
	listener, err := new(net.ListenConfig).Listen(s.Ctx, "unix", socket)
	s.Must(err, "listen")
	server, driver := grpc.NewServer(), &parrot{name: s.Namespace + ".example.com", said: map[string]bool{}}
	spec.RegisterIdentityServer(server, driver)
	spec.RegisterControllerServer(server, driver)
	served := make(chan error, 1)
	go func() { served <- server.Serve(listener) }()
	s.T.Cleanup(func() {
		server.Stop()
		if err := <-served; err != nil {
			s.T.Error(err)
		}
		_ = os.RemoveAll(dir)
	})
	return &sandbox.Driver{DriverName: driver.name, Socket: socket}
}

// fail repeats the secrets the first time that it is called for something.
func (p *parrot) fail(what string, code codes.Code, secrets map[string]string) error {
	if !maps.Equal(secrets, planted) {
		return status.Error(codes.Unauthenticated, "parrot: the secret is wrong")
	}
	if !p.first(what) {
		return nil
	}
	written, err := json.Marshal(secrets)
	if err != nil {
		return err
	}
	return status.Errorf(code, "parrot: I was given %v, in quotes %q, in JSON %s", secrets, secrets, written)
}

func (p *parrot) first(what string) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	said := p.said[what]
	p.said[what] = true
	return !said
}

// GetPluginInfo says what it is called.
func (p *parrot) GetPluginInfo(context.Context, *spec.GetPluginInfoRequest) (*spec.GetPluginInfoResponse, error) {
	return &spec.GetPluginInfoResponse{Name: p.name, VendorVersion: "v1"}, nil
}

// GetPluginCapabilities says that it has a controller, and that volumes have a place.
func (p *parrot) GetPluginCapabilities(context.Context, *spec.GetPluginCapabilitiesRequest) (*spec.GetPluginCapabilitiesResponse, error) {
	var capabilities []*spec.PluginCapability
	for _, service := range []spec.PluginCapability_Service_Type{spec.PluginCapability_Service_CONTROLLER_SERVICE, spec.PluginCapability_Service_VOLUME_ACCESSIBILITY_CONSTRAINTS} {
		capabilities = append(capabilities, &spec.PluginCapability{Type: &spec.PluginCapability_Service_{Service: &spec.PluginCapability_Service{Type: service}}})
	}
	return &spec.GetPluginCapabilitiesResponse{Capabilities: capabilities}, nil
}

// Probe says that it is ready.
func (p *parrot) Probe(context.Context, *spec.ProbeRequest) (*spec.ProbeResponse, error) {
	return &spec.ProbeResponse{}, nil
}

// ControllerGetCapabilities says that it makes volumes.
func (p *parrot) ControllerGetCapabilities(context.Context, *spec.ControllerGetCapabilitiesRequest) (*spec.ControllerGetCapabilitiesResponse, error) {
	return &spec.ControllerGetCapabilitiesResponse{Capabilities: []*spec.ControllerServiceCapability{{Type: &spec.ControllerServiceCapability_Rpc{
		Rpc: &spec.ControllerServiceCapability_RPC{Type: spec.ControllerServiceCapability_RPC_CREATE_DELETE_VOLUME},
	}}}}, nil
}

// CreateVolume fails at first. The first volume is in a place that is called as a secret,
// and it is called as another.
func (p *parrot) CreateVolume(_ context.Context, request *spec.CreateVolumeRequest) (*spec.CreateVolumeResponse, error) {
	if err := p.fail("CreateVolume", codes.InvalidArgument, request.GetSecrets()); err != nil {
		return nil, err
	}
	made := &spec.Volume{
		VolumeId: "volume-" + request.GetName(), CapacityBytes: request.GetCapacityRange().GetRequiredBytes(),
		AccessibleTopology: []*spec.Topology{{Segments: map[string]string{"zone": "a"}}},
	}
	if secrets := request.GetSecrets(); p.first("volume") {
		made.VolumeId, made.VolumeContext = "volume of "+secrets["password"], secrets
		made.AccessibleTopology[0].Segments["zone"] = secrets["phrase"]
	}
	return &spec.CreateVolumeResponse{Volume: made}, nil
}

// DeleteVolume fails at first, for each volume.
func (p *parrot) DeleteVolume(_ context.Context, request *spec.DeleteVolumeRequest) (*spec.DeleteVolumeResponse, error) {
	return &spec.DeleteVolumeResponse{}, p.fail("DeleteVolume "+request.GetVolumeId(), codes.Internal, request.GetSecrets())
}
