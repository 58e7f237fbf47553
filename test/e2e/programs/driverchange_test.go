package programs

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/exeunt-io/exeunt/test/e2e/harness"
	"github.com/exeunt-io/exeunt/test/sandbox"
)

// startDriverAt starts a mock driver at the socket.
func startDriverAt(s *harness.Session, socket, name string, args ...string) *sandbox.Process {
	s.T.Helper()
	path, err := harness.Binaries().Path("csimock")
	s.Must(err, "find the driver")
	process, err := sandbox.Start(s.Ctx, sandbox.Program{
		Path: path, Args: append([]string{"--endpoint=" + socket, "--driver-name=" + name}, args...),
		LogFile: filepath.Join(s.Dir, "driver.log"), ReadyLine: "csimock: driver ",
	})
	s.Must(err, "start driver")
	s.T.Cleanup(func() { _ = process.Kill() })
	return process
}

// A new version of a driver may have other capabilities than the running provisioner has
// read.
func TestProvisionerEndsWhenDriverCapabilitiesChange(t *testing.T) {
	c := harness.Join(t, harness.Setup{}).Cluster
	for change, says := range map[string]string{"--with=publish": "it has PUBLISH_UNPUBLISH_VOLUME",
		"--without=clones": "it has no CLONE_VOLUME"} {
		t.Run(change, func(t *testing.T) {
			s := harness.NewSession(t, c)
			dir, err := os.MkdirTemp("", "csi-") // short enough for a socket
			s.Must(err, "make directory")
			t.Cleanup(func() { _ = os.RemoveAll(dir) })
			socket, name := filepath.Join(dir, "csi.sock"), s.Namespace+".example.com"
			driver := startDriverAt(s, socket, name)
			sidecar := s.StartProvisioner(&sandbox.Driver{Socket: socket}, "provisioner-"+s.Namespace, nil, "--leader-election")
			s.AwaitLog(sidecar, "\"Working\"")

			s.Must(driver.Stop(s.Ctx), "stop driver")
			driver = startDriverAt(s, socket, name)
			s.AwaitLog(sidecar, "the driver has not changed")

			s.Must(driver.Stop(s.Ctx), "stop driver")
			startDriverAt(s, socket, name, change)
			select {
			case <-sidecar.Done():
			case <-s.Ctx.Done():
				t.Fatal("the provisioner did not end after its driver has changed")
			}
			s.ExpectEnd(sidecar)
			if err := sidecar.Err(); err == nil || !strings.Contains(err.Error(), "exit status 1") ||
				!strings.Contains(err.Error(), says) {
				t.Errorf("the provisioner ended with %v, want exit status 1 and %q", err, says)
			}
		})
	}
}
