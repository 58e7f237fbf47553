package integration

import (
	"bufio"
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
)

// patience bounds a start or a stop on a busy machine.
const patience = 3 * time.Minute

// binaries is the folder of the programs, EXEUNT_BIN.
func binaries() string {
	if folder := os.Getenv("EXEUNT_BIN"); folder != "" {
		return folder
	}
	return filepath.Join("..", "..", "..", "bin")
}

// lab is what all tests share: one etcd, and API servers on it.
type lab struct {
	folder   string
	endpoint string
	stops    []func()
	ours     func() (*server, error)
	stock    func() (*server, error)
	gateOff  func() (*server, error)
	uncached func() (*server, error)
	cbor     func() (*server, error)
}

var shared *lab

func TestMain(m *testing.M) {
	os.Exit(runAll(m))
}

// runAll starts etcd, runs all tests and stops every server.
func runAll(m *testing.M) int {
	folder, err := os.MkdirTemp("", "apiserver-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer func() { _ = os.RemoveAll(folder) }()
	shared = &lab{folder: folder}
	defer shared.stop()
	if shared.endpoint, err = shared.start("controlplane: etcd ", "etcd", "--in-memory-speed",
		"--data-dir="+filepath.Join(folder, "etcd")); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	program, err := filepath.Abs(filepath.Join(binaries(), "kube-apiserver"))
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	shared.ours = shared.serve("ours", "--kube-apiserver="+program)
	shared.stock = shared.serve("stock")
	shared.uncached = shared.serve("uncached", "--kube-apiserver="+program, "--extra-arg=watch-cache=false")
	shared.cbor = shared.serve("cbor", "--kube-apiserver="+program, "--feature-gates=CBORServingAndStorage=true")
	shared.gateOff = shared.serve("gate-off", "--kube-apiserver="+program,
		"--feature-gates=CustomResourceGracefulDeletion=false")
	return m.Run()
}

// start runs the program controlplane until the end, and returns what follows the prefix in its first line.
func (l *lab) start(prefix string, args ...string) (string, error) {
	command := exec.Command(filepath.Join(binaries(), "controlplane"), args...)
	command.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	var log strings.Builder
	command.Stderr = &log
	stdout, err := command.StdoutPipe()
	if err != nil {
		return "", err
	}
	if err := command.Start(); err != nil {
		return "", fmt.Errorf("start controlplane, which make controlplane builds: %w", err)
	}
	line, exited := make(chan string, 1), make(chan struct{})
	go func() {
		scanner := bufio.NewScanner(stdout)
		for scanner.Scan() {
			line <- scanner.Text()
		}
		_ = command.Wait()
		close(exited)
	}()
	l.stops = append(l.stops, func() {
		_ = command.Process.Signal(syscall.SIGTERM)
		select {
		case <-exited:
		case <-time.After(patience):
			_ = command.Process.Kill()
		}
	})
	select {
	case text := <-line:
		return strings.TrimPrefix(text, prefix), nil
	case <-exited:
		return "", fmt.Errorf("controlplane %q ended:\n%s", args, &log)
	case <-time.After(patience):
		return "", errors.New("controlplane is not ready")
	}
}

// serve returns a function that starts an API server when it is first called.
func (l *lab) serve(name string, args ...string) func() (*server, error) {
	return sync.OnceValues(func() (*server, error) {
		folder := filepath.Join(l.folder, name)
		args = append([]string{"--in-memory-speed", "--etcd=" + l.endpoint, "--data-dir=" + folder}, args...)
		url, err := l.start("controlplane: ready ", args...)
		if err != nil {
			return nil, err
		}
		return connect(url, filepath.Join(folder, "admin.kubeconfig"))
	})
}

// stop stops all programs, the last one first.
func (l *lab) stop() {
	for i := len(l.stops) - 1; i >= 0; i-- {
		l.stops[i]()
	}
}

// wait repeats a check until it returns nil.
func wait(t *testing.T, check func() error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	ticker := time.NewTicker(50 * time.Millisecond)
	defer ticker.Stop()
	for {
		err := check()
		if err == nil {
			return
		}
		select {
		case <-ctx.Done():
			t.Fatal(err)
		case <-ticker.C:
		}
	}
}
