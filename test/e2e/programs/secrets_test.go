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

	"github.com/exeunt-io/exeunt/test/e2e/harness"
	"github.com/exeunt-io/exeunt/test/sandbox"
)

// planted is a secret. Every dump of a value, also in lines of 16 bytes, has the first
// fragment. One value is a prefix of another, and one is escaped in JSON and in quotes.
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
	driver := startEchoDriver(s)
	sidecar := s.StartProvisioner(driver, "provisioner", nil, "--v=10", "--retry-interval-start=100ms", "--retry-interval-max=100ms")
	_, err := s.Client.CoreV1().Secrets(s.Namespace).Create(s.Ctx, &v1.Secret{
		ObjectMeta: metav1.ObjectMeta{Name: "credentials"}, StringData: planted,
	}, metav1.CreateOptions{})
	s.Must(err, "create secret")
	createSecretClass(s, driver)

	refusals, leftovers := s.WatchEvents("ProvisioningFailed"), s.WatchEvents("ProvisioningCleanupFailed")
	claim := s.CreateClaim("claim", s.Namespace)
	refusals.Await(s, claim.Name, "echoDriver: I was given")
	leftovers.Await(s, claim.Name, `delete volume "volume of ***stripped***"`)
	refusals.Await(s, claim.Name, `"zone"="***stripped***"`)
	volume := s.AwaitBound("claim")
	s.DeleteVolume(volume.Name)
	s.DeleteClaim("claim")
	if message := s.AwaitEvent(volume, "VolumeFailedDelete"); !strings.Contains(message, "echoDriver") {
		t.Errorf("the event does not have the error of the driver: %s", message)
	}
	s.AwaitVolumeGone(volume.Name)

	metrics, _ := s.HTTPGet(sidecar, "/metrics")
	places := map[string]string{"metrics": metrics, "volume": harness.AsText(t, volume), "events": s.AllEvents()}
	for _, process := range s.Processes() {
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
			t.Errorf("the log lacks %q, so the test shows nothing", proof)
		}
	}
}

// createSecretClass creates a class whose secret name is a template.
func createSecretClass(s *harness.Session, driver *sandbox.Driver) {
	s.T.Helper()
	class := harness.NewClass(s.Namespace, driver.DriverName, v1.PersistentVolumeReclaimDelete,
		storagev1.VolumeBindingImmediate)
	class.Parameters = map[string]string{
		"csi.storage.k8s.io/provisioner-secret-name":      "credentials",
		"csi.storage.k8s.io/provisioner-secret-namespace": "${pvc.namespace}",
	}
	class.AllowedTopologies = []v1.TopologySelectorTerm{{MatchLabelExpressions: []v1.TopologySelectorLabelRequirement{{Key: "zone", Values: []string{"a"}}}}}
	s.CreateStorageClass(class)
}

// echoDriver repeats the secrets of requests: in the error with which the first call of
// each kind fails, and in the handle and topology of the first volume.
type echoDriver struct {
	spec.UnimplementedIdentityServer
	spec.UnimplementedControllerServer
	name string

	mu   sync.Mutex
	said map[string]bool
}

// startEchoDriver serves in this process until the test ends.
func startEchoDriver(s *harness.Session) *sandbox.Driver {
	s.T.Helper()
	dir, err := os.MkdirTemp("", "csi-")
	s.Must(err, "make directory")
	socket := filepath.Join(dir, "csi.sock")
	listener, err := new(net.ListenConfig).Listen(s.Ctx, "unix", socket)
	s.Must(err, "listen")
	server, driver := grpc.NewServer(), &echoDriver{name: s.Namespace + ".example.com", said: map[string]bool{}}
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

// fail returns an error with the secrets on the first call for the subject.
func (p *echoDriver) fail(what string, code codes.Code, secrets map[string]string) error {
	if !maps.Equal(secrets, planted) {
		return status.Error(codes.Unauthenticated, "echoDriver: the secret is wrong")
	}
	if !p.first(what) {
		return nil
	}
	written, err := json.Marshal(secrets)
	if err != nil {
		return err
	}
	return status.Errorf(code, "echoDriver: I was given %v, in quotes %q, in JSON %s", secrets, secrets, written)
}

func (p *echoDriver) first(what string) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	said := p.said[what]
	p.said[what] = true
	return !said
}

// GetPluginInfo returns the name of the driver.
func (p *echoDriver) GetPluginInfo(context.Context, *spec.GetPluginInfoRequest) (*spec.GetPluginInfoResponse, error) {
	return &spec.GetPluginInfoResponse{Name: p.name, VendorVersion: "v1"}, nil
}

// GetPluginCapabilities returns controller and topology capabilities.
func (p *echoDriver) GetPluginCapabilities(context.Context,
	*spec.GetPluginCapabilitiesRequest) (*spec.GetPluginCapabilitiesResponse, error) {
	var capabilities []*spec.PluginCapability
	for _, service := range []spec.PluginCapability_Service_Type{spec.PluginCapability_Service_CONTROLLER_SERVICE,
		spec.PluginCapability_Service_VOLUME_ACCESSIBILITY_CONSTRAINTS} {
		capabilities = append(capabilities,
			&spec.PluginCapability{Type: &spec.PluginCapability_Service_{Service: &spec.PluginCapability_Service{Type: service}}})
	}
	return &spec.GetPluginCapabilitiesResponse{Capabilities: capabilities}, nil
}

// Probe reports readiness.
func (p *echoDriver) Probe(context.Context, *spec.ProbeRequest) (*spec.ProbeResponse, error) {
	return &spec.ProbeResponse{}, nil
}

// ControllerGetCapabilities returns the capability to create and delete volumes.
func (p *echoDriver) ControllerGetCapabilities(context.Context,
	*spec.ControllerGetCapabilitiesRequest) (*spec.ControllerGetCapabilitiesResponse, error) {
	return &spec.ControllerGetCapabilitiesResponse{Capabilities: []*spec.ControllerServiceCapability{{Type: &spec.ControllerServiceCapability_Rpc{
		Rpc: &spec.ControllerServiceCapability_RPC{Type: spec.ControllerServiceCapability_RPC_CREATE_DELETE_VOLUME},
	}}}}, nil
}

// CreateVolume fails at first. The topology and the handle of the first volume are
// secrets.
func (p *echoDriver) CreateVolume(_ context.Context,
	request *spec.CreateVolumeRequest) (*spec.CreateVolumeResponse, error) {
	if err := p.fail("CreateVolume", codes.InvalidArgument, request.GetSecrets()); err != nil {
		return nil, err
	}
	created := &spec.Volume{
		VolumeId: "volume-" + request.GetName(), CapacityBytes: request.GetCapacityRange().GetRequiredBytes(),
		AccessibleTopology: []*spec.Topology{{Segments: map[string]string{"zone": "a"}}},
	}
	if secrets := request.GetSecrets(); p.first("volume") {
		created.VolumeId, created.VolumeContext = "volume of "+secrets["password"], secrets
		created.AccessibleTopology[0].Segments["zone"] = secrets["phrase"]
	}
	return &spec.CreateVolumeResponse{Volume: created}, nil
}

// DeleteVolume fails on the first call for each volume.
func (p *echoDriver) DeleteVolume(_ context.Context,
	request *spec.DeleteVolumeRequest) (*spec.DeleteVolumeResponse, error) {
	return &spec.DeleteVolumeResponse{}, p.fail("DeleteVolume "+request.GetVolumeId(), codes.Internal,
		request.GetSecrets())
}
