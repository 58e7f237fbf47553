package instances

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

const (
	// writableByOthers are the modes of a file that others than its owner may write.
	writableByOthers fs.FileMode = 0o022
	// maxLinks is how many symbolic links a path may have.
	maxLinks = 40
	// probeTimeout is how long Listen waits for an answer of whoever serves the socket.
	probeTimeout = 5 * time.Second
)

// Listen creates the socket with mode 0600, on other systems than Linux with that of the umask. A socket file that
// nobody serves is replaced.
func Listen(path string) (net.Listener, error) {
	if err := removeStale(path); err != nil {
		return nil, err
	}
	// The socket has its mode before it has a name: nobody else can connect in between.
	config := net.ListenConfig{Control: restrict}
	listener, err := config.Listen(context.Background(), "unix", path)
	if err != nil {
		return nil, fmt.Errorf("listen on socket %s: %w", path, rootOf(err))
	}
	return listener, nil
}

// removeStale removes the socket of a program that has ended.
func removeStale(path string) error {
	switch info, err := os.Lstat(path); {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return fmt.Errorf("find socket: %w", err)
	case info.Mode().Type() != fs.ModeSocket:
		return fmt.Errorf("%s exists and is no socket: remove it, or choose another path", path)
	}
	connection, err := net.DialTimeout("unix", path, probeTimeout)
	switch {
	case err == nil:
		_ = connection.Close()
		return fmt.Errorf("another program serves the socket %s: end it, or choose another path", path)
	case !errors.Is(err, syscall.ECONNREFUSED):
		return fmt.Errorf("find out who serves socket %s: %w", path, rootOf(err))
	}
	if err := os.Remove(path); err != nil {
		return fmt.Errorf("remove stale socket: %w", err)
	}
	return nil
}

// dial checks the socket and connects to it.
func dial(ctx context.Context, path string) (net.Conn, error) {
	if err := check(path); err != nil {
		return nil, err
	}
	connection, err := new(net.Dialer).DialContext(ctx, "unix", path)
	switch {
	case err == nil:
		return connection, nil
	case errors.Is(err, syscall.ECONNREFUSED):
		return nil, &failure{"no program serves socket " + path + ": start the program that turns machines off", err}
	}
	return nil, &failure{fmt.Sprintf("connect to socket %s: %v", path, rootOf(err)), err}
}

// isAbsent reports whether the check found no socket.
func isAbsent(err error) bool { return errors.Is(err, fs.ErrNotExist) }

// check refuses a socket that others may write, or replace by their own.
func check(path string) error {
	w := walk{trusted: isTrusted, links: maxLinks}
	err := w.check(path)
	switch known := (*failure)(nil); {
	case err == nil || errors.As(err, &known):
		return err
	case isAbsent(err):
		return &failure{"socket " + path + " does not exist: start the program that serves it, or name another socket",
			err}
	}
	return &failure{fmt.Sprintf("check socket %s: %v", path, err), err}
}

// walk checks a path as the kernel resolves it.
type walk struct {
	trusted func(fs.FileInfo) bool
	links   int // symbolic links that may still follow
}

// check checks each directory on the way to the socket, and the socket.
func (w *walk) check(path string) error {
	at := string(filepath.Separator)
	names := strings.Split(strings.Trim(path, at), at)
	for n, name := range names {
		entry := filepath.Join(at, name)
		info, err := w.checkEntry(at, entry)
		if err != nil {
			return err
		}
		if info.Mode().Type() != fs.ModeSymlink {
			at = entry
			continue
		}
		target, err := os.Readlink(entry)
		if err != nil {
			return err
		}
		if w.links--; w.links < 0 {
			return fmt.Errorf("%s is one of too many symbolic links", entry)
		}
		if !filepath.IsAbs(target) {
			target = filepath.Join(at, target)
		}
		return w.check(filepath.Join(append([]string{target}, names[n+1:]...)...))
	}
	return checkSocket(at)
}

// checkEntry checks that others cannot replace the entry of the directory, and returns what the entry is.
func (w *walk) checkEntry(directory, entry string) (fs.FileInfo, error) {
	parent, err := os.Lstat(directory)
	if err != nil {
		return nil, err
	}
	info, err := os.Lstat(entry)
	switch {
	case parent.Mode()&writableByOthers == 0:
	case parent.Mode()&fs.ModeSticky == 0:
		return nil, refuse("others may replace the socket, directory %s has mode %v: use one with mode 0700 "+
			"(in a pod an emptyDir with medium: Memory, whose sticky bit is enough)", directory, parent.Mode())
	case err == nil && !w.trusted(info):
		return nil, refuse("%s belongs to another user, in directory %s that others may write: "+
			"use a directory with mode 0700", entry, directory)
	}
	return info, err
}

// checkSocket checks that others cannot write to the socket.
func checkSocket(path string) error {
	info, err := os.Lstat(path)
	switch {
	case err != nil:
		return err
	case info.Mode().Type() != fs.ModeSocket:
		return refuse("%s is no socket: name the socket of the program that turns machines off", path)
	case info.Mode()&writableByOthers != 0:
		return refuse("others may write to socket %s, its mode is %v: run chmod 0600 on it", path, info.Mode())
	}
	return nil
}

// refuse returns the sentence about a path that is not to be used.
func refuse(format string, args ...any) error {
	return &failure{fmt.Sprintf(format, args...), fs.ErrPermission}
}
