// Package machine asks a provider about the machine of one node, and turns it off. A call runs in the background: the rest
// of the node's work goes on meanwhile.
//
// What counts as half a proof, besides a silent kubelet: two answers Off, or Gone of a machine that was seen before, of
// which the second was asked for at least 2 s after the first had come.
package machine

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/exeunt-io/exeunt/pkg/nodeterminator/instances"
)

const (
	// firstPause and lastPause bound the time between two calls, which doubles while calls fail or nothing changes.
	firstPause, lastPause = time.Second, 30 * time.Second
	// stoppingPause is the longest time between two calls while the machine is being stopped.
	stoppingPause = 5 * time.Second
	// betweenAnswers is the time between the two answers of a proof.
	betweenAnswers = 2 * time.Second
)

// View is what is known of the machine.
type View struct {
	// State is the last answer, "" if there is none yet or the last call failed.
	State instances.State
	// Seen: the machine existed once.
	Seen bool
	// Off is the number of answers in a row that the machine is off or gone, at most 2.
	Off int
	// OffSince is when the first of them came.
	OffSince time.Time
	// NoStop: the provider cannot stop the machine and keep its disks.
	NoStop bool
	// Deleted: the provider took the request to delete the machine. NoDelete: it deletes none.
	Deleted, NoDelete bool
	// Err is why the last call failed.
	Err error
	// StopAfter is when Stop may be called again.
	StopAfter time.Time
}

// Machine is the machine of one node.
type Machine struct {
	provider instances.Provider
	instance instances.Instance
	notify   func()
	ctx      context.Context
	cancel   context.CancelFunc

	mu   sync.Mutex
	view View
	// asking, stopping, deleting: such a call is in flight.
	asking, stopping, deleting bool
	// pause is the time before the next Get, stopPause the one before the next Stop.
	pause, stopPause, deletePause time.Duration
	// deleteAfter is when Delete may be called again.
	deleteAfter time.Time
	next        *time.Timer
	// deletedAt is when the provider took the last request to delete the machine.
	deletedAt time.Time
	// epoch counts Reset: the answer to an older call proves nothing.
	epoch int
}

// New returns the machine of the instance. It is asked about at once, and then for as long as the context lasts. Seen
// says that an earlier process saw it. Notify is called after each answer.
func New(ctx context.Context, provider instances.Provider, instance instances.Instance, seen bool,
	notify func()) *Machine {
	m := &Machine{provider: provider, instance: instance, notify: notify, pause: firstPause, stopPause: firstPause,
		deletePause: firstPause}
	m.ctx, m.cancel = context.WithCancel(ctx)
	m.view.Seen = seen
	m.mu.Lock()
	defer m.mu.Unlock()
	m.askAfter(0)
	return m
}

// End ends all calls.
func (m *Machine) End() {
	m.cancel()
	m.mu.Lock()
	defer m.mu.Unlock()
	m.next.Stop()
}

// View returns what is known of the machine.
func (m *Machine) View() View {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.view
}

// Instance returns the instance that each call names.
func (m *Machine) Instance() instances.Instance { return m.instance }

// Reset forgets all answers: the kubelet of the machine lives.
func (m *Machine) Reset() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.epoch++
	m.view.State, m.view.Off, m.view.OffSince, m.view.StopAfter = "", 0, time.Time{}, time.Time{}
	m.pause, m.stopPause = firstPause, firstPause
	m.askAfter(firstPause)
}

// askAfter plans the next Get. The caller holds the mutex.
func (m *Machine) askAfter(wait time.Duration) {
	if m.next != nil {
		m.next.Stop()
	}
	m.next = time.AfterFunc(wait, m.ask)
}

// ask calls Get, unless such a call is in flight.
func (m *Machine) ask() {
	m.mu.Lock()
	if m.asking || m.ctx.Err() != nil {
		m.mu.Unlock()
		return
	}
	m.asking = true
	epoch, began := m.epoch, time.Now()
	m.mu.Unlock()
	state, err := m.provider.Get(m.ctx, m.instance)
	m.mu.Lock()
	m.asking = false
	if epoch == m.epoch {
		m.record(state, err, began)
	} else {
		m.askAfter(firstPause)
	}
	m.mu.Unlock()
	m.notify()
}

// record records an answer, and plans the next Get. The caller holds the mutex.
func (m *Machine) record(state instances.State, err error, began time.Time) {
	changed := state != m.view.State
	m.view.State, m.view.Err = state, err
	switch {
	case err != nil: // says nothing against earlier answers
		m.view.State = ""
		m.askAfter(max(m.nextPause(false, lastPause), retryAfter(err)))
		return
	case state == instances.Off, state == instances.Gone && m.view.Seen:
		m.recordOff(began)
		return
	}
	m.view.Off, m.view.OffSince = 0, time.Time{}
	m.view.Seen = m.view.Seen || state == instances.Running || state == instances.Stopping
	if state == instances.Running && began.Sub(m.deletedAt) > lastPause { // the request had no effect
		m.view.Deleted = false
	}
	limit := lastPause
	if state == instances.Stopping {
		limit = stoppingPause
	}
	m.askAfter(m.nextPause(changed, limit))
}

// recordOff counts an answer that the machine is off. One that was asked for too early after the first proves nothing.
func (m *Machine) recordOff(began time.Time) {
	m.view.Seen = true
	switch {
	case m.view.Off == 0:
		m.view.Off, m.view.OffSince = 1, time.Now()
	case m.view.Off == 1 && began.Sub(m.view.OffSince) >= betweenAnswers:
		m.view.Off, m.pause = 2, firstPause
	}
	if m.view.Off == 1 {
		m.askAfter(betweenAnswers)
		return
	}
	m.askAfter(m.nextPause(false, lastPause))
}

// nextPause returns the time before the next call, and doubles it for the one after.
func (m *Machine) nextPause(changed bool, limit time.Duration) time.Duration {
	if changed {
		m.pause = firstPause
	}
	wait := min(m.pause, limit)
	m.pause = min(2*m.pause, limit)
	return wait
}

// MayStop reports whether Stop would call the provider: no such call is in flight or failed just now.
func (m *Machine) MayStop() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.mayStop()
}

func (m *Machine) mayStop() bool {
	return !m.stopping && !m.view.NoStop && m.ctx.Err() == nil && !time.Now().Before(m.view.StopAfter)
}

// Stop calls Stop in the background, if it may. It reports whether it did.
func (m *Machine) Stop() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	if !m.mayStop() {
		return false
	}
	m.stopping = true
	go m.stop(m.epoch, time.Now())
	return true
}

func (m *Machine) stop(epoch int, began time.Time) {
	state, err := m.provider.Stop(m.ctx, m.instance)
	m.mu.Lock()
	m.stopping = false
	wait := max(m.stopPause, retryAfter(err))
	m.view.StopAfter, m.stopPause = time.Now().Add(wait), min(2*m.stopPause, lastPause)
	if isUnsupported(err) {
		m.view.NoStop = true
	}
	if epoch == m.epoch {
		m.pause = firstPause
		m.record(state, err, began)
	}
	m.mu.Unlock()
	m.notify()
	time.AfterFunc(wait, m.notify)
}

// MayDelete reports whether Delete would call the provider.
func (m *Machine) MayDelete() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.mayDelete()
}

func (m *Machine) mayDelete() bool {
	return !m.deleting && !m.view.Deleted && !m.view.NoDelete && m.ctx.Err() == nil && !time.Now().Before(m.deleteAfter)
}

// Delete calls Delete in the background, if it may.
func (m *Machine) Delete() {
	m.mu.Lock()
	defer m.mu.Unlock()
	if !m.mayDelete() {
		return
	}
	m.deleting = true
	go m.delete(m.epoch, time.Now())
}

func (m *Machine) delete(epoch int, began time.Time) {
	state, err := m.provider.Delete(m.ctx, m.instance)
	m.mu.Lock()
	m.deleting = false
	m.view.Err = err
	m.view.NoDelete = m.view.NoDelete || isUnsupported(err)
	if err == nil {
		m.view.Deleted, m.deletedAt = true, time.Now()
	}
	if err == nil && epoch == m.epoch {
		m.pause = firstPause
		m.record(state, nil, began)
	}
	wait := max(m.deletePause, retryAfter(err))
	if err != nil {
		m.deleteAfter, m.deletePause = time.Now().Add(wait), min(2*m.deletePause, lastPause)
	}
	m.mu.Unlock()
	m.notify()
	if err != nil {
		time.AfterFunc(wait, m.notify)
	}
}

func isUnsupported(err error) bool {
	var said *instances.Error
	return errors.As(err, &said) && said.Unsupported
}

// retryAfter returns how long the provider wants no further call, at most lastPause: it must not keep a machine on.
func retryAfter(err error) time.Duration {
	var said *instances.Error
	if errors.As(err, &said) {
		return min(said.RetryAfter, lastPause)
	}
	return 0
}
