package blackbox

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"
)

const (
	// repository is the root of the repository, seen from this package.
	repository = "../../../.."
	// patience bounds a start or a stop on a busy machine.
	patience = 2 * time.Minute
)

// findBinary returns the path of the built program.
var findBinary = sync.OnceValues(func() (string, error) {
	if directory := os.Getenv("EXEUNT_BIN"); directory != "" {
		return filepath.Abs(filepath.Join(directory, "controlplane"))
	}
	if output, err := exec.Command("make", "-C", repository, "controlplane").CombinedOutput(); err != nil {
		return "", fmt.Errorf("build controlplane: %w\n%s", err, output)
	}
	return filepath.Abs(filepath.Join(repository, "bin", "controlplane"))
})

// controlPlane is a process that has been ready.
type controlPlane struct {
	command *exec.Cmd
	// dir is the data directory, url the address, readyFile the file that reports readiness.
	dir, url, readyFile string
	exited              chan struct{}
	exitErr             error
}

// command returns the program with args, not started.
func command(t *testing.T, args ...string) *exec.Cmd {
	t.Helper()
	binary, err := findBinary()
	if err != nil {
		t.Fatal(err)
	}
	return exec.Command(binary, args...)
}

// start runs a control plane on dir, or on a new directory if dir is "", until the test
// ends, and waits until the control plane is ready.
func start(t *testing.T, dir string, args ...string) *controlPlane {
	t.Helper()
	if dir == "" {
		dir = t.TempDir()
	}
	plane := &controlPlane{dir: dir, readyFile: filepath.Join(t.TempDir(), "ready"), exited: make(chan struct{})}
	args = append([]string{"--data-dir", dir, "--in-memory-speed", "--ready-file", plane.readyFile}, args...)
	plane.run(t, command(t, args...))
	return plane
}

// run starts command, waits for its ready line and records its URL.
func (p *controlPlane) run(t *testing.T, command *exec.Cmd) {
	t.Helper()
	var log bytes.Buffer
	command.Stderr = &log
	command.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	stdout, err := command.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	p.command = command
	line := make(chan string, 1)
	go func() {
		scanner := bufio.NewScanner(stdout)
		for scanner.Scan() {
			line <- scanner.Text()
		}
		p.exitErr = command.Wait()
		close(p.exited)
	}()
	t.Cleanup(func() {
		p.stop(t)
		if t.Failed() {
			t.Logf("log of the control plane:\n%s", &log)
		}
	})
	select {
	case text := <-line:
		p.url = strings.TrimPrefix(text, "controlplane: ready ")
	case <-p.exited:
		t.Fatalf("control plane ended before it was ready: %v\n%s", p.exitErr, &log)
	case <-time.After(patience):
		t.Fatal("control plane is not ready")
	}
}

// stop sends SIGTERM and waits until the process has ended.
func (p *controlPlane) stop(t *testing.T) {
	t.Helper()
	if err := p.command.Process.Signal(syscall.SIGTERM); err != nil && !errors.Is(err, os.ErrProcessDone) {
		t.Fatal(err)
	}
	select {
	case <-p.exited:
	case <-time.After(patience):
		t.Fatal("control plane does not stop")
	}
}

// kubeconfig returns the kubeconfig that the program writes for args, such as --user NAME.
func (p *controlPlane) kubeconfig(t *testing.T, args ...string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "kubeconfig")
	args = append([]string{"kubeconfig", "--data-dir", p.dir, "--out", file}, args...)
	if output, err := command(t, args...).CombinedOutput(); err != nil {
		t.Fatalf("%s: %v\n%s", args, err, output)
	}
	return file
}

// admin returns the client of the administrator.
func (p *controlPlane) admin(t *testing.T) kubernetes.Interface {
	t.Helper()
	return client(t, filepath.Join(p.dir, "admin.kubeconfig"))
}

// client returns a client for a kubeconfig.
func client(t *testing.T, kubeconfig string) kubernetes.Interface {
	t.Helper()
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	return kubernetes.NewForConfigOrDie(config)
}

// deadline returns a context that ends before the timeout of go test.
func deadline(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	t.Cleanup(cancel)
	return ctx
}
