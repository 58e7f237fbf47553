//go:build unix && !linux

package sandbox

import "syscall"

// processAttributes gives a program a process group, so that signals reach its children.
func processAttributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true}
}
