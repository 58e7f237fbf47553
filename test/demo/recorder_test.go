package demo

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// memory is a printer that remembers what events say.
type memory struct {
	Printer
	mu   sync.Mutex
	said []string
}

func (m *memory) Event(event Event) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.said = append(m.said, event.What)
	return nil
}

// expect fails the test unless the printer got exactly these events so far.
func (m *memory) expect(t *testing.T, want ...string) {
	t.Helper()
	m.mu.Lock()
	defer m.mu.Unlock()
	if !slices.Equal(m.said, want) {
		t.Errorf("shown are %q, want %q", m.said, want)
	}
}

func TestRecorderWaitsForEarlierEvents(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		start, shown := time.Now(), &memory{}
		r := startRecorder(newTimeline(true, start), shown, func(err error) { t.Error(err) })
		r.tell(Event{What: "second", Time: start.Add(20 * time.Millisecond)})
		advance(delay / 2)
		r.tell(Event{What: "first", Time: start.Add(10 * time.Millisecond)})
		shown.expect(t)
		advance(delay)
		shown.expect(t, "first", "second")
		r.tell(Event{What: "last", Time: time.Now()})
		if err := r.finish(); err != nil {
			t.Error(err)
		}
		shown.expect(t, "first", "second", "last")
	})
}

// advance moves the fake clock of a bubble forward, and waits for its goroutines.
func advance(d time.Duration) {
	<-time.After(d)
	synctest.Wait()
}

func TestRecorderFailsWithThePrinter(t *testing.T) {
	ctx, fail := context.WithCancelCause(t.Context())
	r := startRecorder(newTimeline(true, begun), NewJSONPrinter(closedWriter{}), fail)
	r.tell(Event{Time: at(1)})
	<-ctx.Done()
	r.tell(Event{Time: at(2)})
	if err := r.finish(); !errors.Is(err, io.ErrClosedPipe) || !errors.Is(context.Cause(ctx), err) {
		t.Errorf("finish = %v, cause = %v, want %v", err, context.Cause(ctx), io.ErrClosedPipe)
	}
}

// writeLines writes values to a file of JSON lines and returns its path.
func writeLines(t *testing.T, values ...any) string {
	t.Helper()
	var text bytes.Buffer
	encoder := json.NewEncoder(&text)
	for _, value := range values {
		if err := encoder.Encode(value); err != nil {
			t.Fatal(err)
		}
	}
	path := filepath.Join(t.TempDir(), "lines")
	if err := os.WriteFile(path, text.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// object is a line of JSON.
type object = map[string]any

func TestFollowWritesEndsAtTheEndMark(t *testing.T) {
	request := func(verb, name string) object {
		return object{"verb": verb, "objectRef": object{"resource": volumes, "name": name},
			"user": object{"username": adminUser}}
	}
	path := writeLines(t, request("delete", "a"), request("get", "a"), request("get", "last"), request("delete", "b"))
	var events []Event
	if err := followWrites(t.Context(), path, "last", func(e Event) { events = append(events, e) }); err != nil {
		t.Fatal(err)
	}
	if got, want := whats(events), []string{"changes PV a"}; !slices.Equal(got, want) {
		t.Errorf("got events %q, want %q", got, want)
	}
}

func TestFollowCallsEndsAtListVolumes(t *testing.T) {
	call := func(method string) object { return object{"method": method, "volume": "vol-1", "code": "OK"} }
	path := writeLines(t, call("Probe"), call("CreateVolume"), call(listMethod), call("DeleteVolume"))
	var events []Event
	if err := followCalls(t.Context(), path, func(e Event) { events = append(events, e) }); err != nil {
		t.Fatal(err)
	}
	if got, want := whats(events), []string{"CreateVolume vol-1 → OK"}; !slices.Equal(got, want) {
		t.Errorf("got events %q, want %q", got, want)
	}
}

func TestBrokenLogIsNamedInTheError(t *testing.T) {
	path := writeLines(t, "no object")
	tell := func(e Event) { t.Errorf("got events %+v", e) }
	for name, err := range map[string]error{
		"audit log": followWrites(t.Context(), path, "last", tell),
		"call log":  followCalls(t.Context(), path, tell),
	} {
		if err == nil || !strings.Contains(err.Error(), path) {
			t.Errorf("%s: %v, want an error that names the file", name, err)
		}
	}
}

func TestFollowersEndWithTheirContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	path := filepath.Join(t.TempDir(), "none")
	if err := errors.Join(followWrites(ctx, path, "last", nil), followCalls(ctx, path, nil)); err != nil {
		t.Errorf("after the end of the context: %v", err)
	}
}
