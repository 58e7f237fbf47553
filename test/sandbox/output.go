package sandbox

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"strings"
)

const (
	// tailLines is the number of log lines in an error.
	tailLines = 15
	// tailBytes is the size of the end of a log that is read for them.
	tailBytes = 16 << 10
)

// announcer forwards the output of a program and finds its ready line. Only one goroutine
// writes to it.
type announcer struct {
	log    io.Writer
	prefix []byte
	// line is the beginning of the current line; nil once ready was sent.
	line []byte
	// ready gets the rest of the ready line, once.
	ready chan string
}

// newAnnouncer returns an announcer that waits for a line that begins with
// prefix, or is ready at once if that is empty.
func newAnnouncer(log io.Writer, prefix string) *announcer {
	output := &announcer{log: log, prefix: []byte(prefix), line: []byte{}, ready: make(chan string, 1)}
	if prefix == "" {
		output.announce(nil)
	}
	return output
}

// Write forwards text and searches it for the ready line.
func (a *announcer) Write(text []byte) (int, error) {
	written, err := a.log.Write(text)
	if a.line != nil {
		a.scan(text)
	}
	return written, err
}

// scan checks each line that text completes.
func (a *announcer) scan(text []byte) {
	a.line = append(a.line, text...)
	for {
		line, rest, complete := bytes.Cut(a.line, []byte("\n"))
		if !complete {
			return
		}
		if after, found := bytes.CutPrefix(line, a.prefix); found {
			a.announce(after)
			return
		}
		a.line = rest
	}
}

// announce sends the rest of the ready line and ends the search.
func (a *announcer) announce(rest []byte) {
	a.line = nil
	a.ready <- strings.TrimSpace(string(rest))
}

// logTail returns the last lines of a log for an error message, "" if there are none.
func logTail(path string) string {
	file, err := os.Open(path)
	if err != nil {
		return ""
	}
	defer file.Close()
	if info, err := file.Stat(); err == nil && info.Size() > tailBytes {
		if _, err := file.Seek(-tailBytes, io.SeekEnd); err != nil {
			return ""
		}
	}
	text, err := io.ReadAll(file)
	if err != nil || len(bytes.TrimSpace(text)) == 0 {
		return ""
	}
	lines := strings.Split(strings.TrimSpace(string(text)), "\n")
	lines = lines[max(0, len(lines)-tailLines):]
	return fmt.Sprintf("; the end of its log, %s:\n%s", path, strings.Join(lines, "\n"))
}
