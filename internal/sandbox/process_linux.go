package sandbox

import "syscall"

// processAttributes gives a program a process group, so that its children can
// be signalled with it, and ties its life to that of this process: should this
// process be killed, the kernel kills the program.
func processAttributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}
