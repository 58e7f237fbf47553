//go:build !linux

package guest

import (
	"errors"
	"os"
	"syscall"

	"k8s.io/apimachinery/pkg/types"
)

var errLinux = errors.New("guests need Linux")

// Process is a guest that was found running.
type Process struct{ PID int }

// Ended returns a channel that is closed once the process has ended.
func (*Process) Ended() <-chan struct{} { return nil }

// Signal sends a signal to the guest.
func (*Process) Signal(syscall.Signal) error { return errLinux }

// PowerOff ends the guest.
func (*Process) PowerOff(...syscall.Signal) error { return errLinux }

// Close frees what the Process uses.
func (*Process) Close() error { return nil }

// Find returns the guest of an object.
func (*Dir) Find(types.UID) (*Process, error) { return nil, errLinux }

// Command is how a guest is started.
type Command struct {
	Path  string
	Args  []string
	Files []*os.File
}

// Start starts a guest.
func (*Dir) Start(types.UID, Command) (*Process, error) { return nil, errLinux }

// Announce sends the process ID to the controller.
func Announce() error { return errLinux }

func tryLock(*os.File) (bool, error) { return false, errLinux }
