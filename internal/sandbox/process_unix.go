//go:build unix && !linux

package sandbox

import "syscall"

// processAttributes gives a program a process group, so that its children can
// be signalled with it.
func processAttributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true}
}
