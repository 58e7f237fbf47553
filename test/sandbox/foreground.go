package sandbox

import (
	"context"
	"fmt"
	"io"
	"os/exec"
	"path/filepath"
	"syscall"
	"time"
)

// foregroundGrace is the time limit of a foreground program to end after SIGTERM.
const foregroundGrace = time.Minute

// RunForeground runs a program that writes to out and errOut. When ctx ends the program gets
// SIGTERM; its success is then no error. Ctrl-C does not reach the program, which is in a process
// group of its own.
func RunForeground(ctx context.Context, out, errOut io.Writer, path string, args ...string) error {
	command := exec.CommandContext(ctx, path, args...)
	command.Stdout, command.Stderr = out, errOut
	command.SysProcAttr = processAttributes()
	command.Cancel = func() error { return command.Process.Signal(syscall.SIGTERM) }
	command.WaitDelay = foregroundGrace
	err := command.Run()
	if ctx.Err() != nil && command.ProcessState != nil && command.ProcessState.Success() {
		return nil
	}
	if err != nil {
		return fmt.Errorf("run %s: %w", filepath.Base(path), err)
	}
	return nil
}
