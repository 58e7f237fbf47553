// Package datadir manages the data directory of a control plane: its files, its lock and its
// address.
//
// Only the owner can read the directory, because it has the private keys of the cluster. A
// control plane on an existing directory has the same objects, the same certificate
// authority and, if the port is free, the same address.
package datadir

import (
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/exeunt-io/exeunt/test/controlplane/internal/credentials"
)

// ClusterCA is the name of the authority that API server and clients trust.
const ClusterCA = "ca"

// ErrInUse: another control plane runs on the directory.
var ErrInUse = errors.New("another control plane is using it")

// Dir is the path of a data directory.
type Dir string

// Open creates the directory at path, or a temporary directory if path is empty, and locks
// it. The returned function unlocks the directory, and removes a temporary one.
func Open(path string) (Dir, func() error, error) {
	remove := func() error { return nil }
	if path == "" {
		temporary, err := os.MkdirTemp("", "controlplane-") // mode 0700
		if err != nil {
			return "", nil, fmt.Errorf("make temporary data directory: %w", err)
		}
		path, remove = temporary, func() error { return os.RemoveAll(temporary) }
	}
	path, err := filepath.Abs(path)
	if err != nil {
		return "", nil, fmt.Errorf("find data directory: %w", err)
	}
	directory := Dir(path)
	if err := os.MkdirAll(directory.PKI(), 0o700); err != nil {
		return "", nil, fmt.Errorf("make data directory: %w", err)
	}
	unlock, err := directory.lock()
	if err != nil {
		return "", nil, fmt.Errorf("lock data directory %s: %w", path, err)
	}
	return directory, func() error { return errors.Join(unlock(), remove()) }, nil
}

// lock locks the directory for this process. The kernel releases the lock when the process
// ends.
func (d Dir) lock() (unlock func() error, err error) {
	file, err := os.OpenFile(d.File("lock"), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, err
	}
	if err := syscall.Flock(int(file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		if errors.Is(err, syscall.EWOULDBLOCK) {
			err = ErrInUse
		}
		return nil, errors.Join(err, file.Close())
	}
	return file.Close, nil
}

// File returns the path of the file name.
func (d Dir) File(name string) string { return filepath.Join(string(d), name) }

// PKI returns the directory of certificates and keys.
func (d Dir) PKI() string { return d.File("pki") }

// Listen opens the previous port of the directory, or any free port, and records it.
func (d Dir) Listen() (net.Listener, error) {
	listener, err := d.listenAgain()
	if err != nil {
		listener, err = net.Listen("tcp", "127.0.0.1:0")
	}
	if err != nil {
		return nil, fmt.Errorf("listen on a loopback port: %w", err)
	}
	if err := credentials.WriteFile(d.File("address"), []byte(listener.Addr().String())); err != nil {
		return nil, errors.Join(err, listener.Close())
	}
	return listener, nil
}

// listenAgain opens the previous port.
func (d Dir) listenAgain() (net.Listener, error) {
	address, err := os.ReadFile(d.File("address"))
	if err != nil {
		return nil, err
	}
	return net.Listen("tcp", string(address))
}

// URL returns the current or the last URL of the control plane.
func (d Dir) URL() (string, error) {
	address, err := os.ReadFile(d.File("address"))
	if errors.Is(err, fs.ErrNotExist) {
		return "", fmt.Errorf("find control plane: none has ever run on %s", d)
	}
	if err != nil {
		return "", fmt.Errorf("read address of control plane: %w", err)
	}
	return "https://" + strings.TrimSpace(string(address)), nil
}
