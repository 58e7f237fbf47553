package harness

import (
	"maps"
	"os"
	"path/filepath"
	"slices"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/exeunt-io/exeunt/deploy"
	"github.com/exeunt-io/exeunt/pkg/csimock"
	"github.com/exeunt-io/exeunt/pkg/journal"
)

// Call is a call of a method, about the volume or about none.
type Call struct{ Method, Volume string }

// JournalEntries returns those of the driver's journal.
func (d *ScriptedDriver) JournalEntries(kind journal.Kind) []journal.Entry {
	d.T.Helper()
	j := journal.Journal{Namespace: deploy.Namespace, Driver: d.Config.Name}
	leases, err := d.Client.CoordinationV1().Leases(j.Namespace).List(d.Ctx, metav1.ListOptions{})
	d.Must(err, "list leases")
	var all []journal.Entry
	for i := range leases.Items {
		if is, _, ours := j.KindOf(&leases.Items[i]); ours && is == kind {
			found, broken := journal.Entries(&leases.Items[i])
			if len(broken) > 0 {
				d.T.Errorf("lease %s has entries that cannot be read: %v", leases.Items[i].Name, broken)
			}
			all = append(all, found...)
		}
	}
	return all
}

// ScriptedDriver is a driver in this process that says when a fault strikes, and that can be
// struck by a restart.
type ScriptedDriver struct {
	*Session
	Config   csimock.Config
	Socket   string
	restarts bool

	mu       sync.Mutex
	Server   *csimock.Server
	restart  sync.WaitGroup
	pending  []csimock.Fault
	latches  map[string]chan struct{}
	stopping bool
	// faulty counts the calls with a fault, by method; paused keeps those that change
	// volumes from going on.
	faulty map[string]int
	paused chan struct{}
}

// NewScriptedDriver starts a driver; restarts says that a fault restarts the driver.
func NewScriptedDriver(s *Session, restarts bool) *ScriptedDriver {
	s.T.Helper()
	dir, err := os.MkdirTemp("", "csi-")
	s.Must(err, "make directory")
	d := &ScriptedDriver{Session: s, Socket: filepath.Join(dir, "csi.sock"), restarts: restarts, latches: map[string]chan struct{}{}, faulty: map[string]int{}}
	d.Config = csimock.Config{
		Name: s.Namespace + ".example.com", StateFile: filepath.Join(dir, "volumes"),
		Struck: d.struck, Answered: d.answered,
	}
	d.Server, err = csimock.Start(s.T.Context(), d.Config, d.Socket)
	s.Must(err, "start driver")
	s.T.Cleanup(func() {
		d.Resume()
		d.mu.Lock()
		d.stopping = true
		d.mu.Unlock()
		d.restart.Wait()
		_ = d.Server.Stop()
		_ = os.RemoveAll(dir)
	})
	return d
}

// Inject adds faults, which outlive a restart until they have struck.
func (d *ScriptedDriver) Inject(faults []csimock.Fault) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.pending = append(d.pending, faults...)
	return d.Server.Inject(faults...)
}

func (d *ScriptedDriver) struck(f csimock.Fault) {
	d.hit("struck", Call{f.Method, f.Volume})
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

// Pause keeps calls with a fault that are about a volume under way until resume.
func (d *ScriptedDriver) Pause() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.paused = make(chan struct{})
}

// Resume ends Pause.
func (d *ScriptedDriver) Resume() {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.paused != nil {
		close(d.paused)
		d.paused = nil
	}
}

// FaultyCalls returns how many calls had a fault, by method.
func (d *ScriptedDriver) FaultyCalls() map[string]int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return maps.Clone(d.faulty)
}

// startAgain ends the driver, and what hangs in it, and starts it with what it has
// on disk.
func (d *ScriptedDriver) startAgain() {
	d.mu.Lock()
	old := d.Server
	d.mu.Unlock()
	_ = old.Stop()
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.Server != old { // another fault did it
		return
	}
	config := d.Config
	config.Faults = slices.Clone(d.pending)
	server, err := csimock.Start(d.T.Context(), config, d.Socket)
	if err != nil {
		d.T.Errorf("start the driver again: %v", err)
		return
	}
	d.Server = server
}

func (d *ScriptedDriver) answered(call csimock.Call) {
	for _, about := range []string{call.Name, call.Volume, ""} {
		d.hit("answered", Call{call.Method, about})
	}
}

// Seen is closed once the call was seen so far, since the last arm.
func (d *ScriptedDriver) Seen(seen string, t Call) <-chan struct{} {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.latchOf(seen, t)
}

func (d *ScriptedDriver) latchOf(seen string, t Call) chan struct{} {
	key := seen + " " + t.Method + " " + t.Volume
	if d.latches[key] == nil {
		d.latches[key] = make(chan struct{})
	}
	return d.latches[key]
}

func (d *ScriptedDriver) hit(seen string, t Call) {
	d.mu.Lock()
	defer d.mu.Unlock()
	latch := d.latchOf(seen, t)
	select {
	case <-latch:
	default:
		close(latch)
	}
}

// ForgetSeen forgets what was seen.
func (d *ScriptedDriver) ForgetSeen() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.latches = map[string]chan struct{}{}
}

// Volumes are the names of the volumes, by handle.
func (d *ScriptedDriver) Volumes() map[string]string {
	d.mu.Lock()
	defer d.mu.Unlock()
	all := map[string]string{}
	for _, volume := range d.Server.Volumes() {
		all[volume.ID] = volume.Name
	}
	return all
}
