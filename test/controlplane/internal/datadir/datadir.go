// Package datadir is the directory of one control plane: where its files lie,
// who uses it, and at which address it serves.
//
// Everything in it may be read by its owner only, for it holds the private keys
// of the cluster. A directory outlives the process: started on it again, the
// control plane has the same objects, the same certificate authority and, when
// the port is still free, the same address.
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

// ClusterCA is the name of the authority that both the API server and its
// clients trust.
const ClusterCA = "ca"

// ErrInUse says that another control plane runs on the directory.
var ErrInUse = errors.New("another control plane is using it")

// Dir is the path of a data directory.
type Dir string

// Open makes the directory at path, or a temporary one where path is empty,
// and locks it. The returned function unlocks it, and removes it if it was
// temporary.
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

// lock takes the directory for this process. The kernel gives it back when the
// process dies, however it dies.
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

// File returns the path of the file called name.
func (d Dir) File(name string) string { return filepath.Join(string(d), name) }

// PKI returns the directory of certificates and keys.
func (d Dir) PKI() string { return d.File("pki") }

// Listen opens the port that the control plane on this directory had last
// time, or any free one, and remembers it.
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

// listenAgain opens the port of last time.
func (d Dir) listenAgain() (net.Listener, error) {
	address, err := os.ReadFile(d.File("address"))
	if err != nil {
		return nil, err
	}
	return net.Listen("tcp", string(address))
}

// URL returns where the control plane serves, or did when it last ran.
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
