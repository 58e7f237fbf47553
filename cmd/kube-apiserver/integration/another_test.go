package integration

import (
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
)

// startAnother runs our API server on the etcd of all until the end of the test, or until it is killed.
func startAnother(t *testing.T, name string, args ...string) (*server, *process) {
	t.Helper()
	s, p, err := shared.run(name, append([]string{"--kube-apiserver=" + program()}, args...)...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { p.end(syscall.SIGTERM) })
	return s, p
}

// begin starts a program, with its log in a file. A test that failed prints the end of the log.
func begin(t *testing.T, command *exec.Cmd) {
	t.Helper()
	log, err := os.CreateTemp(t.TempDir(), "log")
	if err != nil {
		t.Fatal(err)
	}
	command.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	command.Stderr = log
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if text, _ := os.ReadFile(log.Name()); t.Failed() {
			t.Logf("%s: ...%s", command.Path, text[max(0, len(text)-4000):])
		}
		_ = log.Close()
	})
}

// runBeside runs a program until the end of the test.
func runBeside(t *testing.T, program string, args ...string) {
	t.Helper()
	command := exec.Command(filepath.Join(binaries(), program), args...)
	begin(t, command)
	t.Cleanup(func() {
		_ = command.Process.Signal(syscall.SIGTERM)
		_ = command.Wait()
	})
}
