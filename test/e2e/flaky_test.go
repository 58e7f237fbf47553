package e2e

import (
	"cmp"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"sync"

	"github.com/exeunt-io/exeunt/internal/sandbox"
	"github.com/exeunt-io/exeunt/pkg/csimock"
)

// flaky is a driver in this process that says when a fault strikes, and that can be
// struck by a restart.
type flaky struct {
	*scene
	config   csimock.Config
	socket   string
	restarts bool

	mu       sync.Mutex
	server   *csimock.Server
	restart  sync.WaitGroup
	pending  []csimock.Fault
	latches  map[string]chan struct{}
	stopping bool
	// faulty counts the calls with a fault, by method; paused keeps those that change
	// volumes from going on.
	faulty map[string]int
	paused chan struct{}
}

func newFlaky(s *scene, restarts bool) *flaky {
	s.t.Helper()
	dir, err := os.MkdirTemp("", "csi-")
	s.must(err, "make directory")
	d := &flaky{scene: s, socket: filepath.Join(dir, "csi.sock"), restarts: restarts, latches: map[string]chan struct{}{}, faulty: map[string]int{}}
	d.config = csimock.Config{
		Name: s.namespace + ".example.com", StateFile: filepath.Join(dir, "volumes"),
		Struck: d.struck, Answered: d.answered,
	}
	d.server, err = csimock.Start(s.t.Context(), d.config, d.socket)
	s.must(err, "start driver")
	s.t.Cleanup(func() {
		d.resume()
		d.mu.Lock()
		d.stopping = true
		d.mu.Unlock()
		d.restart.Wait()
		_ = d.server.Stop()
		_ = os.RemoveAll(dir)
	})
	return d
}

// inject adds faults, which outlive a restart until they have struck.
func (d *flaky) inject(faults []csimock.Fault) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.pending = append(d.pending, faults...)
	return d.server.Inject(faults...)
}

func (d *flaky) struck(f csimock.Fault) {
	d.hit("struck", target{f.Method, f.Volume})
	d.mu.Lock()
	d.faulty[f.Method]++
	paused := d.paused
	d.mu.Unlock()
	if paused != nil && f.Volume != "" {
		<-paused
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.pending = slices.DeleteFunc(d.pending, func(p csimock.Fault) bool { return p.Method == f.Method && p.Volume == f.Volume })
	if d.restarts && !d.stopping {
		d.restart.Go(d.startAgain)
	}
}

// pause keeps calls with a fault that are about a volume under way until resume.
func (d *flaky) pause() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.paused = make(chan struct{})
}

func (d *flaky) resume() {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.paused != nil {
		close(d.paused)
		d.paused = nil
	}
}

// faultyCalls returns how many calls had a fault, by method.
func (d *flaky) faultyCalls() map[string]int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return maps.Clone(d.faulty)
}

// startAgain ends the driver, and what hangs in it, and starts it with what it has
// on disk.
func (d *flaky) startAgain() {
	d.mu.Lock()
	old := d.server
	d.mu.Unlock()
	_ = old.Stop()
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.server != old { // another fault did it
		return
	}
	config := d.config
	config.Faults = slices.Clone(d.pending)
	server, err := csimock.Start(d.t.Context(), config, d.socket)
	if err != nil {
		d.t.Errorf("start the driver again: %v", err)
		return
	}
	d.server = server
}

func (d *flaky) answered(call csimock.Call) {
	for _, about := range []string{call.Name, call.Volume, ""} {
		d.hit("answered", target{call.Method, about})
	}
}

// latch is closed once the call was seen so far, since the last arm.
func (d *flaky) latch(seen string, t target) <-chan struct{} {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.latchOf(seen, t)
}

func (d *flaky) latchOf(seen string, t target) chan struct{} {
	key := seen + " " + t.method + " " + t.volume
	if d.latches[key] == nil {
		d.latches[key] = make(chan struct{})
	}
	return d.latches[key]
}

func (d *flaky) hit(seen string, t target) {
	d.mu.Lock()
	defer d.mu.Unlock()
	latch := d.latchOf(seen, t)
	select {
	case <-latch:
	default:
		close(latch)
	}
}

// arm forgets what was seen.
func (d *flaky) arm() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.latches = map[string]chan struct{}{}
}

// volumes are the names of the volumes, by handle.
func (d *flaky) volumes() map[string]string {
	d.mu.Lock()
	defer d.mu.Unlock()
	all := map[string]string{}
	for _, volume := range d.server.Volumes() {
		all[volume.ID] = volume.Name
	}
	return all
}

// kubelet runs a provisioner, and starts it again whenever it ends by itself.
type kubelet struct {
	*scene
	socket string
	// name is what the process is called, args are further flags.
	name string
	args []string

	mu      sync.Mutex
	stopped bool
	process *sandbox.Process
	ended   chan struct{}
}

func (k *kubelet) start() {
	k.t.Helper()
	k.stopped, k.ended = false, make(chan struct{})
	first := make(chan struct{})
	go k.run(first)
	<-first
}

func (k *kubelet) run(first chan struct{}) {
	defer close(k.ended)
	for once := sync.OnceFunc(func() { close(first) }); ; {
		k.mu.Lock()
		if k.stopped {
			k.mu.Unlock()
			once()
			return
		}
		process, err := k.plane.StartProvisioner(k.ctx, &sandbox.Driver{Socket: k.socket}, sandbox.Controller{
			Name: cmp.Or(k.name, "provisioner-"+k.namespace), HonorReclaimPolicy: true,
			Args: append([]string{"--timeout=1s", "--retry-interval-start=50ms", "--retry-interval-max=500ms", "--worker-threads=10"}, k.args...),
		})
		k.process = process
		k.mu.Unlock()
		if err != nil {
			k.t.Errorf("start provisioner: %v", err)
			once()
			return
		}
		once()
		<-process.Done()
	}
}

// kill ends the provisioner with SIGKILL, as a node that loses power does.
func (k *kubelet) kill() {
	k.t.Helper()
	if process := k.last(); process != nil {
		k.must(process.Kill(), "kill provisioner")
	}
	<-k.ended
}

// stop ends the provisioner with SIGTERM, as the deletion of its pod does.
func (k *kubelet) stop() {
	k.t.Helper()
	if process := k.last(); process != nil {
		k.must(process.Stop(k.ctx), "stop provisioner")
	}
	<-k.ended
}

// last returns the process, which is not started again.
func (k *kubelet) last() *sandbox.Process {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.stopped = true
	return k.process
}

// logContains reports whether the last process has logged the text.
func (k *kubelet) logContains(text string) bool {
	k.mu.Lock()
	process := k.process
	k.mu.Unlock()
	return process != nil && k.scene.logContains(process, text)
}
