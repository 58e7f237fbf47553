package integration

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
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

// program is the path of our API server.
func program() string { return filepath.Join(binaries(), "kube-apiserver") }

// lab is what all tests share: one etcd, and API servers on it.
type lab struct {
	folder   string
	endpoint string
	running  []*process
	ours     func() (*server, error)
	stock    func() (*server, error)
	gateOff  func() (*server, error)
	// gateOffAgain is another such server, for the noise of a benchmark.
	gateOffAgain func() (*server, error)
	uncached     func() (*server, error)
	cbor         func() (*server, error)
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
	endpoint, etcd, err := start("controlplane: etcd ", "etcd", "--in-memory-speed",
		"--data-dir="+filepath.Join(folder, "etcd"))
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	shared.endpoint, shared.running = endpoint, []*process{etcd}
	shared.ours = shared.serve("ours", "--kube-apiserver="+program())
	shared.stock = shared.serve("stock")
	shared.uncached = shared.serve("uncached", "--kube-apiserver="+program(), "--extra-arg=watch-cache=false")
	shared.cbor = shared.serve("cbor", "--kube-apiserver="+program(), "--feature-gates=CBORServingAndStorage=true")
	shared.gateOff = shared.serve("gate-off", "--kube-apiserver="+program(),
		"--feature-gates=CustomResourceGracefulDeletion=false")
	shared.gateOffAgain = shared.serve("gate-off-again", "--kube-apiserver="+program(),
		"--feature-gates=CustomResourceGracefulDeletion=false")
	return m.Run()
}

// process is a running program controlplane.
type process struct {
	command *exec.Cmd
	exited  chan struct{}
}

// end sends a signal and waits for the end of the process.
func (p *process) end(signal os.Signal) {
	_ = p.command.Process.Signal(signal)
	select {
	case <-p.exited:
	case <-time.After(patience):
		_ = p.command.Process.Kill()
	}
}

// start runs the program controlplane, and returns what follows the prefix in its first line.
func start(prefix string, args ...string) (string, *process, error) {
	command := exec.Command(filepath.Join(binaries(), "controlplane"), args...)
	command.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	var log strings.Builder
	command.Stderr = &log
	stdout, err := command.StdoutPipe()
	if err != nil {
		return "", nil, err
	}
	if err := command.Start(); err != nil {
		return "", nil, fmt.Errorf("start controlplane, which make controlplane builds: %w", err)
	}
	line, p := make(chan string, 1), &process{command, make(chan struct{})}
	go func() {
		scanner := bufio.NewScanner(stdout)
		for scanner.Scan() {
			line <- scanner.Text()
		}
		_ = command.Wait()
		close(p.exited)
	}()
	select {
	case text := <-line:
		return strings.TrimPrefix(text, prefix), p, nil
	case <-p.exited:
		return "", nil, fmt.Errorf("controlplane %q ended:\n%s", args, &log)
	case <-time.After(patience):
		p.end(syscall.SIGKILL)
		return "", nil, errors.New("controlplane is not ready")
	}
}

// run starts an API server on the shared etcd, whose data directory has a name.
func (l *lab) run(name string, args ...string) (*server, *process, error) {
	folder := filepath.Join(l.folder, name)
	args = append([]string{"--in-memory-speed", "--etcd=" + l.endpoint, "--data-dir=" + folder}, args...)
	url, p, err := start("controlplane: ready ", args...)
	if err != nil {
		return nil, nil, err
	}
	s, err := connect(url, filepath.Join(folder, "admin.kubeconfig"))
	return s, p, err
}

// serve returns a function that starts an API server when it is first called, until the end of all tests.
func (l *lab) serve(name string, args ...string) func() (*server, error) {
	return sync.OnceValues(func() (*server, error) {
		s, p, err := l.run(name, args...)
		if err == nil {
			l.running = append(l.running, p)
		}
		return s, err
	})
}

// stop stops all programs, the last one first.
func (l *lab) stop() {
	for _, p := range slices.Backward(l.running) {
		p.end(syscall.SIGTERM)
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
