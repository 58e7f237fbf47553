package cli

import (
	"bytes"
	"encoding/json"
	"errors"
	"os/exec"
	"strings"
	"testing"

	spec "github.com/container-storage-interface/spec/lib/go/csi"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/exeunt-io/exeunt/test/e2e/harness"
	"github.com/exeunt-io/exeunt/test/sandbox"
)

// auditReport is the output of "exeunt audit -o json".
type auditReport struct {
	Orphans []struct{ Handle, Name, Age, Size string }
	Ghosts  []struct{ Handle, Name, Cluster string }
	Shared  []struct {
		Handle  string
		Volumes []struct{ Cluster, Name string }
	}
	Enumerated bool
	Doubtful   []struct{ Handle, Reason string }
	Incomplete []string
}

// auditResult is the outcome of one command.
type auditResult struct {
	output, errors string
	status         int
	// peak is the peak resident memory of the process in KiB.
	peak int64
}

// runAudit runs "exeunt audit".
func runAudit(s *harness.Session, args ...string) auditResult {
	s.T.Helper()
	path, err := harness.Binaries().Path("exeunt")
	s.Must(err, "find exeunt")
	process := exec.CommandContext(s.Ctx, path, append([]string{"audit"}, args...)...)
	var output, failure bytes.Buffer
	process.Stdout, process.Stderr = &output, &failure
	err = process.Run()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		s.T.Fatalf("exeunt audit %q: %v", args, err)
	}
	return auditResult{output.String(), failure.String(), process.ProcessState.ExitCode(),
		peakMemory(process.ProcessState)}
}

// audit runs "exeunt audit" for the driver of the session as the administrator of its
// cluster.
func audit(s *harness.Session, args ...string) auditReport {
	s.T.Helper()
	return auditAs(s, s.Plane.AdminKubeconfig, args...)
}

// auditAs is audit with another kubeconfig.
func auditAs(s *harness.Session, kubeconfig string, args ...string) auditReport {
	s.T.Helper()
	return decodeAudit(s, runAudit(s,
		append([]string{"--csi-address=" + s.Driver.Socket, "--kubeconfig=" + kubeconfig, "--settle=0s", "-o=json"},
			args...)...))
}

// decodeAudit wants exit code 0 and a report in JSON with exactly the fields of the contract.
func decodeAudit(s *harness.Session, done auditResult) auditReport {
	s.T.Helper()
	if done.status != 0 {
		s.T.Fatalf("exit code %d:\n%s%s", done.status, done.output, done.errors)
	}
	var found auditReport
	decoder := json.NewDecoder(strings.NewReader(done.output))
	decoder.DisallowUnknownFields()
	s.Must(decoder.Decode(&found), "decode report")
	return found
}

// reasons returns the reasons of doubtful volumes by handle.
func (r auditReport) reasons() map[string]string {
	all := map[string]string{}
	for _, doubt := range r.Doubtful {
		all[doubt.Handle] = doubt.Reason
	}
	return all
}

// orphans returns the handles of orphans.
func (r auditReport) orphans() []string {
	var handles []string
	for _, orphan := range r.Orphans {
		handles = append(handles, orphan.Handle)
	}
	return handles
}

// withDriver returns a session with a driver of its own, whose flags are separated by spaces.
func withDriver(s *harness.Session, flags string) *harness.Session {
	s.T.Helper()
	own := *s.Cluster
	own.Dir = s.T.TempDir()
	var err error
	own.Driver, err = sandbox.StartDriver(s.Ctx, sandbox.DriverConfig{Binaries: harness.Binaries(), Dir: own.Dir,
		Name: s.Namespace + ".example.com", Args: strings.Fields(flags)})
	s.Must(err, "start driver")
	s.T.Cleanup(func() { s.StopProcess(own.Driver) })
	return &harness.Session{Cluster: &own, T: s.T, Ctx: s.Ctx, Namespace: s.Namespace}
}

// mount is the access of all volumes.
var mount = &spec.VolumeCapability{
	AccessType: &spec.VolumeCapability_Mount{Mount: &spec.VolumeCapability_MountVolume{}},
	AccessMode: &spec.VolumeCapability_AccessMode{Mode: spec.VolumeCapability_AccessMode_SINGLE_NODE_WRITER},
}

// store creates a volume of the name in the storage system, as a clone of source unless "".
func store(s *harness.Session, name, source string) string {
	s.T.Helper()
	request := &spec.CreateVolumeRequest{
		Name: name, CapacityRange: &spec.CapacityRange{RequiredBytes: 1 << 20},
		VolumeCapabilities: []*spec.VolumeCapability{mount},
	}
	if source != "" {
		request.VolumeContentSource = &spec.VolumeContentSource{Type: &spec.VolumeContentSource_Volume{Volume: &spec.VolumeContentSource_VolumeSource{VolumeId: source}}}
	}
	created, err := s.StorageClient().CreateVolume(s.Ctx, request)
	s.Must(err, "create volume in the storage system")
	return created.GetVolume().GetVolumeId()
}

// record creates a PersistentVolume of the driver with the handle.
func record(s *harness.Session, name, handle string) *v1.PersistentVolume {
	s.T.Helper()
	volume := s.NewVolume("x", v1.PersistentVolumeReclaimRetain)
	volume.Name = s.Namespace + "-" + name
	volume.Spec.CSI.VolumeHandle = handle
	created, err := s.Client.CoreV1().PersistentVolumes().Create(s.Ctx, volume, metav1.CreateOptions{})
	s.Must(err, "create PersistentVolume")
	return created
}

// handles returns all handles in the storage system.
func handles(s *harness.Session) []string {
	s.T.Helper()
	var all []string
	client, page := s.StorageClient(), ""
	for {
		list, err := client.ListVolumes(s.Ctx, &spec.ListVolumesRequest{StartingToken: page, MaxEntries: 5000})
		s.Must(err, "list volumes of the storage system")
		for _, entry := range list.GetEntries() {
			all = append(all, entry.GetVolume().GetVolumeId())
		}
		if page = list.GetNextToken(); page == "" {
			return all
		}
	}
}

// expectNoDeletion fails the test if the driver was called to delete anything.
func expectNoDeletion(s *harness.Session) {
	s.T.Helper()
	for _, method := range []string{"DeleteVolume", "DeleteSnapshot", "ControllerUnpublishVolume"} {
		if count := s.CountDriverCalls(s.Driver, method); count > 0 {
			s.T.Errorf("%d calls of %s", count, method)
		}
	}
}

// bare is a cluster without our programs.
var bare = harness.Setup{NoPrograms: true}

func join(t *testing.T) *harness.Session {
	t.Helper()
	return harness.Join(t, bare)
}
