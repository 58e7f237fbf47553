package sandbox

import (
	"os"
	"syscall"
)

// processAttributes gives a program a process group, so that Ctrl-C does not reach the program.
func processAttributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{CreationFlags: syscall.CREATE_NEW_PROCESS_GROUP}
}

// signalGroup ends the process: Windows has no other signal.
func signalGroup(id int, _ syscall.Signal) error {
	process, err := os.FindProcess(id)
	if err != nil {
		return err
	}
	return process.Kill()
}
