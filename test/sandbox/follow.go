package sandbox

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"iter"
	"os"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
)

// followPoll is the interval at which followed files are read.
const followPoll = 10 * time.Millisecond

// follow yields the existing and the future values in a file of JSON lines until ctx ends
// or an error occurs, which it yields last. The file may not exist yet.
func follow[T any](ctx context.Context, path string) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		lines, err := awaitLines(ctx, path)
		if lines == nil {
			if err != nil {
				yield(*new(T), err)
			}
			return
		}
		defer lines.file.Close()
		for {
			value, err := await[T](ctx, lines)
			if ctx.Err() != nil || !yield(value, err) || err != nil {
				return
			}
		}
	}
}

// readAll returns the values in a file of JSON lines, without an unfinished last line.
func readAll[T any](path string) ([]T, error) {
	lines, err := openLines(path)
	if err != nil {
		return nil, err
	}
	defer lines.file.Close()
	var values []T
	for {
		line, err := lines.next()
		if line == nil {
			return values, err
		}
		value, err := decode[T](line, path)
		if err != nil {
			return values, err
		}
		values = append(values, value)
	}
}

// await waits for the next line and decodes it.
func await[T any](ctx context.Context, lines *lines) (value T, err error) {
	var line []byte
	err = wait.PollUntilContextCancel(ctx, followPoll, true, func(context.Context) (bool, error) {
		line, err = lines.next()
		return line != nil, err
	})
	if err != nil {
		return value, err
	}
	return decode[T](line, lines.file.Name())
}

// auditStart is what each line of an audit log begins with.
var auditStart = []byte(`{"kind":"Event","apiVersion":"audit.k8s.io/v1"`)

// decode reads a value from a line of the file at path. A killed API server may leave a line
// of its audit log unfinished, and the next one appends its first line to that one.
func decode[T any](line []byte, path string) (value T, err error) {
	if err := json.Unmarshal(line, &value); err != nil {
		if at := bytes.LastIndex(line, auditStart); at > 0 {
			return decode[T](line[at:], path)
		}
		return value, fmt.Errorf("read line of %s: %w", path, err)
	}
	return value, nil
}

// lines reads whole lines from a growing file.
type lines struct {
	file   *os.File
	reader *bufio.Reader
	// partial is the beginning of an unfinished line.
	partial []byte
}

// openLines opens the file at path.
func openLines(path string) (*lines, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("open lines: %w", err)
	}
	return &lines{file: file, reader: bufio.NewReader(file)}, nil
}

// awaitLines opens the file at path once it exists. It returns nil if ctx ends
// first.
func awaitLines(ctx context.Context, path string) (opened *lines, err error) {
	err = wait.PollUntilContextCancel(ctx, followPoll, true, func(context.Context) (bool, error) {
		opened, err = openLines(path)
		if errors.Is(err, fs.ErrNotExist) {
			return false, nil
		}
		return err == nil, err
	})
	if ctx.Err() != nil {
		err = nil
	}
	return opened, err
}

// next returns the next line, or nil while there is none.
func (l *lines) next() ([]byte, error) {
	text, err := l.reader.ReadBytes('\n')
	l.partial = append(l.partial, text...)
	if errors.Is(err, io.EOF) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", l.file.Name(), err)
	}
	line := l.partial
	l.partial = nil
	return line, nil
}
