package machines

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"time"
)

// Kind names a fault of a machine.
type Kind string

// The faults. Those of the socket concern the requests for the machine.
const (
	// KubeletDead: no Lease, no status, no signals; pods run and write on. A kubelet starts when the fault ends.
	KubeletDead Kind = "kubeletDead"
	// Partition: the kubelet works, and neither sees the API server nor writes to it.
	Partition Kind = "partition"
	// ComesBack: a machine without power starts again after some seconds.
	ComesBack Kind = "comesBack"
	// PoweredOff and Deleted: somebody else turns the machine off, or deletes the machine and keeps its disks.
	PoweredOff Kind = "poweredOff"
	Deleted    Kind = "deleted"
	// DetachFails: disks cannot be detached from the machine.
	DetachFails Kind = "detachFails"

	// StopFails: Stop answers with an error.
	StopFails Kind = "stopFails"
	// StopTakes: the machine runs for some seconds after Stop, and is Stopping meanwhile.
	StopTakes Kind = "stopTakes"
	// Lies: Stop answers Off, and get does, and the machine runs on.
	Lies Kind = "lies"
	// Slow: each answer takes 20 seconds, or as many as the fault says.
	Slow Kind = "slow"
	// Throttled: each request is refused with 429, to be sent again after some seconds.
	Throttled Kind = "throttled"
	// Foreign: the machine is of another cluster.
	Foreign Kind = "foreign"
)

// defaultWait is the time of a fault that names no seconds.
const defaultWait = 20 * time.Second

// Fault is an element of the file of faults.
type Fault struct {
	// Node is the name of a machine, or "*" for all.
	Node string `json:"node"`
	Kind Kind   `json:"fault"`
	// Seconds is the time that some faults take. 0 means 20.
	Seconds float64 `json:"seconds,omitempty"`
}

func (f Fault) wait() time.Duration {
	if f.Seconds == 0 {
		return defaultWait
	}
	return time.Duration(f.Seconds * float64(time.Second))
}

// readInterval is how often the file of faults is read.
const readInterval = 100 * time.Millisecond

// FaultsTaken returns the file that has what was last taken from a file of faults: who waits for it knows that these
// faults are in force.
func FaultsTaken(faults string) string { return faults + ".taken" }

// readFaults reads the file of faults until ctx ends. A file that cannot be parsed changes nothing.
func (c *Cloud) readFaults(ctx context.Context) {
	var last []byte
	for {
		text, err := os.ReadFile(c.config.Faults)
		if errors.Is(err, fs.ErrNotExist) {
			text, err = nil, nil
		}
		if err == nil && !bytes.Equal(text, last) {
			last = text
			if err = c.setFaults(text); err == nil {
				err = writeTaken(FaultsTaken(c.config.Faults), text)
			}
		}
		if err != nil {
			c.warn(fmt.Errorf("read faults: %w", err))
		}
		select {
		case <-time.After(readInterval):
		case <-ctx.Done():
			return
		}
	}
}

// writeTaken replaces the file at once: it is read meanwhile.
func writeTaken(file string, text []byte) error {
	if err := os.WriteFile(file+".new", text, 0o600); err != nil {
		return err
	}
	return os.Rename(file+".new", file)
}

// setFaults replaces the faults of all machines.
func (c *Cloud) setFaults(text []byte) error {
	var faults []Fault
	if len(bytes.TrimSpace(text)) > 0 {
		if err := json.Unmarshal(text, &faults); err != nil {
			return err
		}
	}
	for _, fault := range faults {
		if !kinds[fault.Kind] {
			return fmt.Errorf("unknown fault %q", fault.Kind)
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, m := range c.machines {
		m.setFaults(faults)
	}
	c.attacher.again()
	return nil
}

var kinds = map[Kind]bool{KubeletDead: true, Partition: true, ComesBack: true, PoweredOff: true, Deleted: true,
	DetachFails: true, StopFails: true, StopTakes: true, Lies: true, Slow: true, Throttled: true, Foreign: true}

// setFaults replaces the faults of a machine. The caller holds the lock.
func (m *machine) setFaults(faults []Fault) {
	before, after := m.faults, map[Kind]Fault{}
	for _, fault := range faults {
		if fault.Node == m.name || fault.Node == "*" {
			after[fault.Kind] = fault
		}
	}
	wasDead := m.has(KubeletDead)
	m.faults = after
	if wasDead && m.kubeletRuns() {
		m.kubelets++
	}
	if m.has(PoweredOff) {
		m.turnOff()
	}
	if m.has(Deleted) {
		m.remove(false)
	}
	if _, had := before[ComesBack]; !had {
		m.planReturn()
	}
	m.catchUp()
	m.notify()
}
