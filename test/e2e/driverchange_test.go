package e2e

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/exeunt-io/exeunt/internal/sandbox"
)

// startDriverAt starts a mock driver with the name at the socket.
func (s *scene) startDriverAt(socket, name string, args ...string) *sandbox.Process {
	s.t.Helper()
	path, err := binaries().Path("csimock")
	s.must(err, "find the driver")
	process, err := sandbox.Start(s.ctx, sandbox.Program{
		Path: path, Args: append([]string{"--endpoint=" + socket, "--driver-name=" + name}, args...),
		LogFile: filepath.Join(s.dir, "driver.log"), ReadyLine: "csimock: driver ",
	})
	s.must(err, "start driver")
	s.t.Cleanup(func() { _ = process.Kill() })
	return process
}

// A new version of a driver that is started beside a provisioner that runs can do more,
// or less, than that one knows of.
func TestAProvisionerEndsOnceItsDriverIsAnotherOneAndGoesOnIfItIsTheSame(t *testing.T) {
	t.Parallel()
	for change, says := range map[string]string{"--with=publish": "it has PUBLISH_UNPUBLISH_VOLUME", "--without=clones": "it has no CLONE_VOLUME"} {
		t.Run(change, func(t *testing.T) {
			t.Parallel()
			s := enter(t, shared(t, setup{honor: true}))
			dir, err := os.MkdirTemp("", "csi-") // short enough for a socket
			s.must(err, "make directory")
			t.Cleanup(func() { _ = os.RemoveAll(dir) })
			socket, name := filepath.Join(dir, "csi.sock"), s.namespace+".example.com"
			driver := s.startDriverAt(socket, name)
			sidecar := s.startSidecar(&sandbox.Driver{Socket: socket}, "provisioner-"+s.namespace, nil, "--leader-election")
			s.awaitLog(sidecar, "\"Working\"")

			s.must(driver.Stop(s.ctx), "stop driver")
			driver = s.startDriverAt(socket, name)
			s.awaitLog(sidecar, "the driver is what it was")

			s.must(driver.Stop(s.ctx), "stop driver")
			s.startDriverAt(socket, name, change)
			select {
			case <-sidecar.Done():
			case <-s.ctx.Done():
				t.Fatal("the provisioner goes on with what it knows of the driver before")
			}
			s.forget(sidecar)
			if err := sidecar.Err(); err == nil || !strings.Contains(err.Error(), "exit status 1") || !strings.Contains(err.Error(), says) {
				t.Errorf("the provisioner ended with %v, want exit status 1 and %q", err, says)
			}
		})
	}
}
