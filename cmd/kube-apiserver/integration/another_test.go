package integration

import (
	"bufio"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// another is an API server of one test, on the etcd of all.
type another struct {
	*server
	process *os.Process
	exited  chan struct{}
}

// startAnother runs our API server until the end of the test, or until it is killed.
func startAnother(t *testing.T, name string, args ...string) another {
	t.Helper()
	folder := filepath.Join(shared.folder, name)
	program, err := filepath.Abs(filepath.Join(binaries(), "kube-apiserver"))
	if err != nil {
		t.Fatal(err)
	}
	command := exec.Command(filepath.Join(binaries(), "controlplane"), append([]string{"--in-memory-speed",
		"--kube-apiserver=" + program, "--etcd=" + shared.endpoint, "--data-dir=" + folder}, args...)...)
	stdout, err := command.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	begin(t, command)
	a := another{process: command.Process, exited: make(chan struct{})}
	ready := make(chan string, 1)
	go func() {
		for scanner := bufio.NewScanner(stdout); scanner.Scan(); {
			ready <- scanner.Text()
		}
		_ = command.Wait()
		close(a.exited)
	}()
	t.Cleanup(func() { a.end(syscall.SIGTERM) })
	select {
	case text := <-ready:
		if a.server, err = connect(strings.TrimPrefix(text, "controlplane: ready "),
			filepath.Join(folder, "admin.kubeconfig")); err != nil {
			t.Fatal(err)
		}
	case <-a.exited:
		t.Fatalf("%s ended", name)
	case <-time.After(patience):
		t.Fatalf("%s is not ready", name)
	}
	return a
}

// end sends a signal and waits. Kube-apiserver is killed together with the process that started it.
func (a another) end(signal syscall.Signal) {
	_ = a.process.Signal(signal)
	select {
	case <-a.exited:
	case <-time.After(patience):
		_ = a.process.Kill()
	}
}

// begin starts a program in a process group of its own, with its log in a file. A test that failed prints the end.
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
