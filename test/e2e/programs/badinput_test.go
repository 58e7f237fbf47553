package programs

import (
	"context"
	"net"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	v1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/exeunt-io/exeunt/deploy"
	"github.com/exeunt-io/exeunt/pkg/finalizer"
	"github.com/exeunt-io/exeunt/test/e2e/harness"
	"github.com/exeunt-io/exeunt/test/sandbox"
)

func TestInvalidInputEndsProgramWithCause(t *testing.T) {
	c := harness.Join(t, harness.Setup{}).Cluster
	kubeconfig := c.Plane.AdminKubeconfig
	silent := listenSilently(t)
	for name, tc := range map[string]struct {
		program string
		args    []string
		says    []string
	}{
		"pv-controller: unknown gate": {"pv-controller", []string{"--kubeconfig=" + kubeconfig,
			"--feature-gates=HonourPVReclaimPolicy=true"}, []string{"HonourPVReclaimPolicy", "known:"}},
		"provisioner: unknown gate":            {"provisioner", []string{"--kubeconfig=" + kubeconfig, "--feature-gates=Nope=true"}, []string{"Nope", "known:"}},
		"pv-controller: gate without value":    {"pv-controller", []string{"--feature-gates=HonorPVReclaimPolicy"}, []string{"HonorPVReclaimPolicy"}},
		"pv-controller: unreadable kubeconfig": {"pv-controller", []string{"--kubeconfig=/nowhere/config"}, []string{"/nowhere/config", "--kubeconfig"}},
		"provisioner: unreadable kubeconfig": {"provisioner", []string{"--kubeconfig=/nowhere/config",
			"--csi-address=" + c.Driver.Socket}, []string{"/nowhere/config", "--kubeconfig"}},
		"pv-controller: misspelled flag": {"pv-controller", []string{"--kubeconfg=x"}, []string{"--kubeconfg", "there is no flag --kubeconfg"}},
		"pv-controller: flag of another loop": {"pv-controller", []string{"--concurrent-gc-syncs", "5"},
			[]string{"--concurrent-gc-syncs", "garbage-collector-controller", "remove it here"}},
		"pv-controller: unsupported flag": {"pv-controller", []string{"--use-service-account-credentials"},
			[]string{"--use-service-account-credentials", "rbac.yaml"}},
		"provisioner: missing socket": {"provisioner", []string{"--kubeconfig=" + kubeconfig,
			"--csi-address=/nowhere/csi.sock", "--driver-wait=1s"}, []string{"/nowhere/csi.sock", "--csi-address"}},
		"provisioner: silent socket": {"provisioner", []string{"--kubeconfig=" + kubeconfig,
			"--csi-address=" + silent, "--driver-wait=1s", "--timeout=500ms"}, []string{silent, "--csi-address"}},
		"provisioner: invalid limit": {"provisioner", []string{"--worker-threads=0"}, []string{"--worker-threads"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			expectRefusal(t, tc.program, tc.args, tc.says)
		})
	}
}

// expectRefusal runs the program, which must end with an error whose last line has all of
// the texts.
func expectRefusal(t *testing.T, program string, args, says []string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), harness.Timeout)
	defer cancel()
	path, err := harness.Binaries().Path(program)
	if err != nil {
		t.Fatal(err)
	}
	output, err := exec.CommandContext(ctx, path, args...).CombinedOutput()
	if ctx.Err() != nil || err == nil {
		t.Fatalf("%s %v: %v, want a failure; it printed:\n%s", program, args, err, output)
	}
	lines := strings.Split(strings.TrimSpace(string(output)), "\n")
	for _, word := range says {
		if !strings.Contains(lines[len(lines)-1], word) {
			t.Errorf("%s %v: the last line does not name %q:\n%s", program, args, word, output)
		}
	}
	if strings.Contains(string(output), "Usage:") || strings.Contains(string(output), "goroutine ") {
		t.Errorf("%s %v: too much output:\n%s", program, args, output)
	}
}

// listenSilently returns a socket that accepts connections and never answers.
func listenSilently(t *testing.T) string {
	t.Helper()
	socket := filepath.Join(t.TempDir(), "s")
	listener, err := new(net.ListenConfig).Listen(t.Context(), "unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = listener.Close() })
	return socket
}

func TestDriverWithoutCreateVolumeIsRejected(t *testing.T) {
	c := harness.Join(t, harness.Setup{}).Cluster
	driver, err := sandbox.StartDriver(t.Context(), sandbox.DriverConfig{Binaries: harness.Binaries(), Dir: t.TempDir(),
		Name: "read.only", Args: []string{"--without=create-delete,clones,snapshots,group-snapshots"}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = driver.Stop(context.Background()) })
	expectRefusal(t, "provisioner", []string{"--kubeconfig=" + c.Plane.AdminKubeconfig, "--csi-address=" + driver.Socket},
		[]string{"read.only", "CREATE_DELETE_VOLUME"})
}

func TestRejectedVolumeHandleKeepsFinalizerAndGetsEvent(t *testing.T) {
	s := harness.Join(t, harness.Setup{})
	volume := s.CreateVolume("bad", v1.PersistentVolumeReclaimDelete, func(v *v1.PersistentVolume) {
		v.Spec.CSI.VolumeHandle = strings.Repeat("x", 300)
	})
	s.CreateClaim("claim", s.Namespace)
	s.AwaitBound("claim")
	s.ExpectFinalizer(volume, true)
	s.DeleteClaim("claim")
	if message := s.AwaitEvent(volume, "VolumeFailedDelete"); !strings.Contains(message, s.Driver.DriverName) {
		t.Errorf("the event does not name the driver: %s", message)
	}
	s.AwaitVolume(volume.Name, "keeps its finalizer", func(v *v1.PersistentVolume) bool {
		return v.DeletionTimestamp == nil && v.Status.Phase == v1.VolumeReleased &&
			finalizer.Has(v.Finalizers, finalizer.External)
	})
}

func TestForeignStorageClassIsIgnored(t *testing.T) {
	s := harness.Join(t, harness.Setup{})
	class := harness.NewClass(s.Namespace, "someone.else", v1.PersistentVolumeReclaimDelete,
		storagev1.VolumeBindingImmediate)
	s.CreateStorageClass(class)
	claim := s.CreateClaim("claim", class.Name)
	if message := s.AwaitEvent(claim, "ExternalProvisioning"); !strings.Contains(message, "someone.else") {
		t.Errorf("the event does not name the provisioner: %s", message)
	}
	s.PassQueues()
	now := s.AwaitClaim("claim", "waits",
		func(c *v1.PersistentVolumeClaim) bool { return c.Status.Phase == v1.ClaimPending })
	events, err := sandbox.ReadAudit(s.Plane.AuditLog)
	s.Must(err, "read audit log")
	for _, event := range events {
		if event.User == "system:serviceaccount:"+deploy.Namespace+":"+deploy.Provisioner && event.Writes() &&
			event.Namespace == s.Namespace && event.Name == now.Name {
			t.Errorf("our provisioner wrote: %+v", event)
		}
	}
}

func TestUnsupportedClassParametersGetEvent(t *testing.T) {
	s := harness.Join(t, harness.Setup{})
	claim := s.CreateClaim("claim", harness.DeleteClass, func(c *v1.PersistentVolumeClaim) {
		c.Spec.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{"tier": "gold"}}
	})
	if message := s.AwaitEvent(claim, "ProvisioningFailed"); !strings.Contains(message, "Selector") {
		t.Errorf("the event does not name the selector: %s", message)
	}
}
