//go:build unix

package sandbox

import "syscall"

// signalGroup sends a signal to all processes of a group.
func signalGroup(id int, signal syscall.Signal) error { return syscall.Kill(-id, signal) }
