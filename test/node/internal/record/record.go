// Package record is a program for pods that writes its times to a file, and reads such files for tests.
package record

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"
	"time"
)

// The events of a file.
const (
	// Written is an event of each interval while the program runs.
	Written = "written"
	// Signaled: the program got SIGTERM.
	Signaled = "sigterm"
	// Ended: the program ends by itself, as long after SIGTERM as it needs.
	Ended = "ended"
)

// interval is the time between two writes.
const interval = 100 * time.Millisecond

// Event is a line of a file.
type Event struct {
	Time time.Time
	Name string
}

// Events are the lines of a file, in their order.
type Events []Event

// Note appends an event to the file.
func Note(file, event string) (err error) {
	f, err := os.OpenFile(file, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
	if err != nil {
		return fmt.Errorf("open record: %w", err)
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	_, err = fmt.Fprintln(f, time.Now().UTC().Format(time.RFC3339Nano), event)
	return err
}

// Run appends an event each 100 ms, and goes on for a while after ctx ends; for ever if the time is negative.
func Run(ctx context.Context, file string, after time.Duration) error {
	tick := time.NewTicker(interval)
	defer tick.Stop()
	signaled, end := ctx.Done(), (<-chan time.Time)(nil)
	for {
		if err := Note(file, Written); err != nil {
			return err
		}
		select {
		case <-tick.C:
		case <-signaled:
			if err := Note(file, Signaled); err != nil {
				return err
			}
			signaled = nil
			if after >= 0 {
				end = time.After(after)
			}
		case <-end:
			return Note(file, Ended)
		}
	}
}

// Read returns the events of a file; none if there is no file. The last line of a killed program may be incomplete.
func Read(file string) (Events, error) {
	text, err := os.ReadFile(file)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read record: %w", err)
	}
	var events Events
	for line := range strings.Lines(string(text)) {
		if !strings.HasSuffix(line, "\n") {
			break
		}
		at, name, _ := strings.Cut(strings.TrimSpace(line), " ")
		parsed, err := time.Parse(time.RFC3339Nano, at)
		if err != nil {
			return nil, fmt.Errorf("read record %s: %w", file, err)
		}
		events = append(events, Event{Time: parsed, Name: name})
	}
	return events, nil
}

// First returns the time of the first event with the name, the zero time if there is none.
func (e Events) First(name string) time.Time {
	for _, event := range e {
		if event.Name == name {
			return event.Time
		}
	}
	return time.Time{}
}

// Count returns the number of events with the name.
func (e Events) Count(name string) (count int) {
	for _, event := range e {
		if event.Name == name {
			count++
		}
	}
	return count
}

// Last returns the time of the last event, the zero time if there is none.
func (e Events) Last() time.Time {
	if len(e) == 0 {
		return time.Time{}
	}
	return e[len(e)-1].Time
}
