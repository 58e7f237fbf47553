//go:build !linux

package server

import "syscall"

// endWithParent lets the signals of a terminal reach this process only.
func endWithParent() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true}
}
