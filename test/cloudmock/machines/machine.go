package machines

import (
	"context"
	"strconv"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/exeunt-io/exeunt/pkg/nodeterminator/instances"
)

// machine is a node. All fields but the first are guarded by the lock of the cloud.
type machine struct {
	cloud      *Cloud
	index      int
	name       string
	providerID string

	power instances.State
	// said is the last lie of the socket, or "".
	said   instances.State
	faults map[Kind]Fault
	// boot ends when the machine loses power.
	boot     context.Context
	cutPower context.CancelFunc
	// kubelets counts the starts of the kubelet.
	kubelets int
	pods     map[types.UID]*pod

	// hadDriver: a pod of the driver has run on the machine.
	hadDriver bool
	// nodeUID is the UID of the Node that the machine has registered, or "".
	nodeUID types.UID
	// reported is Node.status.volumesInUse as last written.
	reported []v1.UniqueVolumeName
	changed  signal
	// writing serializes the writes of the Node's status.
	writing chan struct{}
}

func newMachine(c *Cloud, index int) *machine {
	number := strconv.Itoa(index)
	return &machine{
		cloud: c, index: index, name: "mock-" + number, providerID: "mock://instance-" + number,
		power: instances.Off, faults: map[Kind]Fault{}, pods: map[types.UID]*pod{}, changed: newSignal(),
		writing: make(chan struct{}, 1),
	}
}

// has reports whether the machine has the fault. The caller holds the lock.
func (m *machine) has(kind Kind) bool { _, has := m.faults[kind]; return has }

// runs reports whether the machine has power. The caller holds the lock.
func (m *machine) runs() bool { return m.power == instances.Running || m.power == instances.Stopping }

// kubeletRuns reports whether the kubelet works. The caller holds the lock.
func (m *machine) kubeletRuns() bool { return m.runs() && !m.has(KubeletDead) }

// connected reports whether the kubelet reaches the API server. The caller holds the lock.
func (m *machine) connected() bool { return m.kubeletRuns() && !m.has(Partition) }

// start turns the machine on. The caller holds the lock.
func (m *machine) start() {
	m.power, m.said = instances.Running, ""
	m.boot, m.cutPower = context.WithCancel(m.cloud.life)
	m.kubelets++
	boot := m.boot
	m.cloud.group.Go(func() { m.runKubelet(boot) })
	m.notify()
}

// turnOff takes the power: pods end without a signal, mounts are gone, attachments stay. The caller holds the lock.
func (m *machine) turnOff() {
	if !m.runs() {
		return
	}
	m.power = instances.Off
	m.cutPower()
	m.cloud.dropMounts(m)
	clear(m.pods)
	m.cloud.write(Event{Node: m.name, Event: PowerOff})
	m.notify()
	m.planReturn()
}

// planReturn turns a machine with the fault on again, later. The caller holds the lock.
func (m *machine) planReturn() {
	if fault, has := m.faults[ComesBack]; has && m.power == instances.Off {
		m.cloud.after(fault.wait(), func() {
			if m.power == instances.Off && m.has(ComesBack) {
				m.start()
			}
		})
	}
}

// remove deletes the machine. The caller holds the lock.
func (m *machine) remove(deleteDisks bool) {
	if m.power == instances.Gone {
		return
	}
	m.turnOff()
	m.power = instances.Gone
	m.cloud.dropDisks(m, deleteDisks)
}

// notify wakes everything of the machine that waits. The caller holds the lock.
func (m *machine) notify() {
	m.changed.send()
	for _, p := range m.pods {
		p.changed.send()
	}
}

// until waits until the condition holds, and returns false if the machine lost power before.
func (m *machine) until(ctx context.Context, holds condition) bool {
	return m.cloud.until(ctx, &m.changed, holds)
}

// catchUp lets a kubelet that reaches the API server again see all pods. The caller holds the lock.
func (m *machine) catchUp() {
	if m.connected() {
		for _, object := range m.cloud.podsOf(m.name) {
			m.see(object)
		}
	}
}

// condition reports whether it holds, and when it is to be evaluated again, if that is later than now. The lock is held
// meanwhile.
type condition func(now time.Time) (holds bool, next time.Time)

// signal wakes all that wait for it.
type signal struct{ closed chan struct{} }

func newSignal() signal { return signal{make(chan struct{})} }

// send wakes all that wait. The caller holds the lock.
func (s *signal) send() {
	close(s.closed)
	s.closed = make(chan struct{})
}

// until waits until the condition holds, and returns false if ctx ended before.
func (c *Cloud) until(ctx context.Context, changed *signal, holds condition) bool {
	for {
		c.mu.Lock()
		if ctx.Err() != nil {
			c.mu.Unlock()
			return false
		}
		now := time.Now()
		met, next := holds(now)
		woken := changed.closed
		c.mu.Unlock()
		if met {
			return true
		}
		var alarm <-chan time.Time
		if next.After(now) {
			alarm = time.After(next.Sub(now))
		}
		select {
		case <-woken:
		case <-alarm:
		case <-ctx.Done():
			return false
		}
	}
}

// after calls act under the lock, unless the cloud ends before.
func (c *Cloud) after(wait time.Duration, act func()) {
	c.group.Go(func() {
		select {
		case <-time.After(wait):
			c.mu.Lock()
			defer c.mu.Unlock()
			act()
		case <-c.life.Done():
		}
	})
}
