package sandbox

import "syscall"

// processAttributes gives a program a process group, so that signals reach its children,
// and makes the kernel kill the program when this process is killed.
func processAttributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}
