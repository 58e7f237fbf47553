package harness

import (
	"cmp"
	"sync"

	"github.com/exeunt-io/exeunt/test/sandbox"
)

// Supervisor runs a provisioner and restarts it when it ends, as the kubelet does.
type Supervisor struct {
	*Session
	Socket string
	Name   string   // of the process
	Args   []string // further flags

	mu      sync.Mutex
	stopped bool
	process *sandbox.Process
	ended   chan struct{}
}

// Start starts the provisioner.
func (k *Supervisor) Start() {
	k.T.Helper()
	k.stopped, k.ended = false, make(chan struct{})
	first := make(chan struct{})
	go k.run(first)
	<-first
}

func (k *Supervisor) run(first chan struct{}) {
	defer close(k.ended)
	for once := sync.OnceFunc(func() { close(first) }); ; {
		k.mu.Lock()
		if k.stopped {
			k.mu.Unlock()
			once()
			return
		}
		process, err := k.Plane.StartProvisioner(k.Ctx, &sandbox.Driver{Socket: k.Socket}, sandbox.Controller{
			Name: cmp.Or(k.Name, "provisioner-"+k.Namespace), HonorReclaimPolicy: true,
			Args: append([]string{"--timeout=1s", "--retry-interval-start=50ms", "--retry-interval-max=500ms",
				"--worker-threads=10"}, k.Args...),
		})
		k.process = process
		k.mu.Unlock()
		if err != nil {
			k.T.Errorf("start provisioner: %v", err)
			once()
			return
		}
		once()
		<-process.Done()
	}
}

// Kill ends the provisioner with SIGKILL, as a node that loses power does.
func (k *Supervisor) Kill() {
	k.T.Helper()
	if process := k.last(); process != nil {
		k.Must(process.Kill(), "kill provisioner")
	}
	<-k.ended
}

// Stop ends the provisioner with SIGTERM, as the deletion of its pod does.
func (k *Supervisor) Stop() {
	k.T.Helper()
	if process := k.last(); process != nil {
		k.Must(process.Stop(k.Ctx), "stop provisioner")
	}
	<-k.ended
}

// last ends the restarts and returns the process.
func (k *Supervisor) last() *sandbox.Process {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.stopped = true
	return k.process
}

// HasLogged reports whether the last process has logged the text.
func (k *Supervisor) HasLogged(text string) bool {
	k.mu.Lock()
	process := k.process
	k.mu.Unlock()
	return process != nil && k.LogContains(process, text)
}
