package machines

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// Happening is what a line of the log tells.
type Happening string

// What happens to pods, machines and disks.
const (
	Started  Happening = "started"
	Sigterm  Happening = "sigterm"
	Sigkill  Happening = "sigkill"
	Exited   Happening = "exited"
	PowerOff Happening = "poweroff"

	Attached  Happening = "attached"
	Detached  Happening = "detached"
	Mounted   Happening = "mounted"
	Unmounted Happening = "unmounted"
	// TwoWriters: a disk was attached or mounted while a pod of another running machine has it mounted. The
	// line names that other pod and its node.
	TwoWriters Happening = "twoWriters"
)

// Event is a line of the log.
type Event struct {
	Time time.Time `json:"time"`
	Node string    `json:"node"`
	// Pod is namespace/name.
	Pod string    `json:"pod"`
	UID types.UID `json:"uid"`
	// Volume is the handle of the disk.
	Volume string    `json:"volume"`
	Event  Happening `json:"event"`
}

// write appends a line to the log. The caller holds the lock of the cloud, so the order is what happened.
func (c *Cloud) write(event Event) {
	event.Time = time.Now()
	line, err := json.Marshal(event)
	if err != nil {
		panic(err) // strings and times only
	}
	if _, err := c.log.Write(append(line, '\n')); err != nil {
		c.warn(fmt.Errorf("write log: %w", err))
	}
}

// ReadLog returns the events of a log, which may be written to meanwhile.
func ReadLog(file string) ([]Event, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	text = text[:bytes.LastIndexByte(text, '\n')+1]
	decoder := json.NewDecoder(bytes.NewReader(text))
	var events []Event
	for {
		var event Event
		err := decoder.Decode(&event)
		if err == io.EOF {
			return events, nil
		}
		if err != nil {
			return nil, fmt.Errorf("parse log of machines: %w", err)
		}
		events = append(events, event)
	}
}
