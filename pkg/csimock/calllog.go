package csimock

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"sync"
	"time"
)

// keptCalls is the minimum number of calls that a driver keeps in memory.
const keptCalls = 1 << 16

// Call is one finished call, and one line of the call log.
type Call struct {
	// Seq counts the calls of one driver from 1, in the order they finished.
	Seq uint64 `json:"seq"`
	// Time is when the call finished.
	Time time.Time `json:"time"`
	// Method is the short name of the RPC, such as CreateVolume.
	Method string `json:"method"`
	// Volume is the volume ID in the request or, for CreateVolume, in the response; empty
	// for none.
	Volume string `json:"volume,omitempty"`
	// Snapshot is the snapshot ID in the request or, for CreateSnapshot, in the response;
	// empty for none.
	Snapshot string `json:"snapshot,omitempty"`
	// Name is the requested name, empty for none.
	Name string `json:"name,omitempty"`
	// Code is the name of the gRPC code of the response, as codes.Code spells it.
	Code string `json:"code"`
	// Volumes is the number of volumes when the call finished.
	Volumes int `json:"volumes"`
	// DurationMS is the duration of the call in milliseconds.
	DurationMS int64 `json:"duration_ms"`
}

// callLog keeps the finished calls, in memory and in a file if there is one.
type callLog struct {
	mu    sync.Mutex
	seq   uint64
	calls []Call
	file  *os.File // nil for none
}

// openCallLog opens the call log for appending; an empty path is no file.
func openCallLog(path string) (*callLog, error) {
	if path == "" {
		return &callLog{}, nil
	}
	file, err := os.OpenFile(path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
	if err != nil {
		return nil, fmt.Errorf("open call log: %w", err)
	}
	return &callLog{file: file}, nil
}

// append assigns the next sequence number to a call, writes the call and returns it. volumes
// returns the number of volumes.
func (l *callLog) append(call Call, volumes func() int) (Call, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.seq++
	call.Seq, call.Volumes = l.seq, volumes()
	if len(l.calls) >= 2*keptCalls {
		l.calls = slices.Clone(l.calls[keptCalls:])
	}
	l.calls = append(l.calls, call)
	return call, l.write(call)
}

// write appends the line of a call to the file with one write.
func (l *callLog) write(call Call) error {
	if l.file == nil {
		return nil
	}
	line, err := json.Marshal(call)
	if err == nil {
		_, err = l.file.Write(append(line, '\n'))
	}
	if err != nil {
		return fmt.Errorf("append to call log: %w", err)
	}
	return nil
}

// all returns a copy of the calls, oldest first.
func (l *callLog) all() []Call {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clone(l.calls)
}

// close closes the file.
func (l *callLog) close() error {
	if l.file == nil {
		return nil
	}
	return l.file.Close()
}

// ReadCalls reads a call log file. An incomplete last line is ignored.
func ReadCalls(path string) ([]Call, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("read call log: %w", err)
	}
	defer file.Close()
	var calls []Call
	reader := bufio.NewReader(file)
	for {
		line, err := reader.ReadBytes('\n')
		if errors.Is(err, io.EOF) {
			return calls, nil
		}
		if err != nil {
			return nil, fmt.Errorf("read call log: %w", err)
		}
		var call Call
		if err := json.Unmarshal(line, &call); err != nil {
			return nil, fmt.Errorf("read call log %s: line %d: %w", path, len(calls)+1, err)
		}
		calls = append(calls, call)
	}
}
