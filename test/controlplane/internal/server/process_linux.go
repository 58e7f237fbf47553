package server

import "syscall"

// endWithParent ends a program when this process is killed. The signals of a terminal reach this process only.
func endWithParent() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}
