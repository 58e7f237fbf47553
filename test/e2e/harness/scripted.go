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

// Call is a CSI call; Volume is empty for calls about no volume.
type Call struct{ Method, Volume string }

// JournalEntries returns the entries of the kind in the driver's journal.
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

// ScriptedDriver is a mock driver in this process. It signals injected faults, and a
// fault can restart it.
type ScriptedDriver struct {
	*Session
	Config   csimock.Config
	Socket   string
	restarts bool

	mu       sync.Mutex
	Server   *csimock.Server
	restart  sync.WaitGroup
	pending  []csimock.Fault
	seen     map[string]chan struct{}
	stopping bool
	// faulty counts the calls with a fault, by method.
	faulty map[string]int
	// paused blocks calls with a fault about a volume, until closed.
	paused chan struct{}
}

// NewScriptedDriver starts a driver; with restarts, every fault restarts the driver.
func NewScriptedDriver(s *Session, restarts bool) *ScriptedDriver {
	s.T.Helper()
	dir, err := os.MkdirTemp("", "csi-")
	s.Must(err, "make directory")
	d := &ScriptedDriver{Session: s, Socket: filepath.Join(dir, "csi.sock"), restarts: restarts,
		seen: map[string]chan struct{}{}, faulty: map[string]int{}}
	d.Config = csimock.Config{
		Name: s.Namespace + ".example.com", StateFile: filepath.Join(dir, "volumes"),
		FaultApplied: d.recordFault, CallFinished: d.answered,
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

// Inject adds faults. A fault that has not happened yet survives a restart.
func (d *ScriptedDriver) Inject(faults []csimock.Fault) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.pending = append(d.pending, faults...)
	return d.Server.Inject(faults...)
}

func (d *ScriptedDriver) recordFault(f csimock.Fault) {
	d.recordProgress("faulted", Call{f.Method, f.Volume})
	d.mu.Lock()
	d.faulty[f.Method]++
	paused := d.paused
	d.mu.Unlock()
	if paused != nil && f.Volume != "" {
		<-paused
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.pending = slices.DeleteFunc(d.pending,
		func(p csimock.Fault) bool { return p.Method == f.Method && p.Volume == f.Volume })
	if d.restarts && !d.stopping {
		d.restart.Go(d.startAgain)
	}
}

// Pause blocks calls with a fault about a volume until Resume.
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

// startAgain ends the driver with all its calls, and starts it from its state on disk.
func (d *ScriptedDriver) startAgain() {
	d.mu.Lock()
	old := d.Server
	d.mu.Unlock()
	_ = old.Stop()
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.Server != old { // another fault has restarted it
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
		d.recordProgress("answered", Call{call.Method, about})
	}
}

// Seen returns a channel that is closed once the call has made the given progress
// since the last ForgetSeen: "faulted" once the fault applies, "answered" once it returned.
func (d *ScriptedDriver) Seen(progress string, call Call) <-chan struct{} {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.channelOf(progress, call)
}

func (d *ScriptedDriver) channelOf(progress string, call Call) chan struct{} {
	key := progress + " " + call.Method + " " + call.Volume
	if d.seen[key] == nil {
		d.seen[key] = make(chan struct{})
	}
	return d.seen[key]
}

func (d *ScriptedDriver) recordProgress(progress string, call Call) {
	d.mu.Lock()
	defer d.mu.Unlock()
	channel := d.channelOf(progress, call)
	select {
	case <-channel:
	default:
		close(channel)
	}
}

// ForgetSeen forgets all calls so far.
func (d *ScriptedDriver) ForgetSeen() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.seen = map[string]chan struct{}{}
}

// Volumes returns the names of the stored volumes, by handle.
func (d *ScriptedDriver) Volumes() map[string]string {
	d.mu.Lock()
	defer d.mu.Unlock()
	all := map[string]string{}
	for _, volume := range d.Server.Volumes() {
		all[volume.ID] = volume.Name
	}
	return all
}
