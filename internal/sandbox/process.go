package sandbox

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync/atomic"
	"syscall"
	"time"
)

const (
	// stopGrace is how long a program may take to end after SIGTERM.
	stopGrace = 20 * time.Second
	// outputGrace is how long the output of a dead program is waited for.
	outputGrace = 2 * time.Second
)

// errSilent says that a program ended well but never announced itself.
var errSilent = errors.New("exit status 0")

// Program says what to run.
type Program struct {
	// Name is what errors call it. Empty means the name of the file.
	Name string
	// Path is the file to execute.
	Path string
	Args []string
	// Env is added to this process's environment, as KEY=VALUE.
	Env []string
	// LogFile gets everything the program writes, after what is in it.
	LogFile string
	// ReadyLine is how the line on standard output begins by which the program
	// says that it is ready. Empty means it says nothing, and counts as ready
	// once it runs.
	ReadyLine string
}

// Process is a program that was started.
type Process struct {
	name    string
	logFile string
	command *exec.Cmd
	// ready is the rest of the program's ready line.
	ready string
	// sent is the last signal that this package sent.
	sent atomic.Int32
	done chan struct{}
	err  error // how it ended, once done is closed
}

// Start runs a program in a process group of its own and waits until it is
// ready.
func Start(ctx context.Context, program Program) (*Process, error) {
	if program.Name == "" {
		program.Name = filepath.Base(program.Path)
	}
	log, err := os.OpenFile(program.LogFile, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, fmt.Errorf("open log of %s: %w", program.Name, err)
	}
	output := newAnnouncer(log, program.ReadyLine)
	command := exec.Command(program.Path, program.Args...)
	command.Env = append(os.Environ(), program.Env...)
	command.Stdout, command.Stderr = output, log
	command.SysProcAttr = processAttributes()
	command.WaitDelay = outputGrace
	if err := command.Start(); err != nil {
		return nil, errors.Join(fmt.Errorf("start %s: %w", program.Name, err), log.Close())
	}
	process := &Process{name: program.Name, logFile: program.LogFile, command: command, done: make(chan struct{})}
	go func() {
		process.err = errors.Join(command.Wait(), log.Close())
		close(process.done)
	}()
	return process, process.awaitReady(ctx, output)
}

// awaitReady returns once the program has announced itself. A program that
// never does is killed.
func (p *Process) awaitReady(ctx context.Context, output *announcer) error {
	select {
	case p.ready = <-output.ready:
		return nil
	case <-p.done:
		return fmt.Errorf("start %s: it ended before it was ready: %w%s", p.name, cmp.Or(p.err, errSilent), logTail(p.logFile))
	case <-ctx.Done():
		err := fmt.Errorf("start %s: it is not ready: %w%s", p.name, context.Cause(ctx), logTail(p.logFile))
		return errors.Join(err, p.Kill())
	}
}

// Name returns what the program is called.
func (p *Process) Name() string { return p.name }

// LogFile returns the file that gets what the program writes.
func (p *Process) LogFile() string { return p.logFile }

// PID returns the process ID.
func (p *Process) PID() int { return p.command.Process.Pid }

// Done returns a channel that is closed once the process has ended.
func (p *Process) Done() <-chan struct{} { return p.done }

// Err returns nil while the process runs and once it has ended as it should:
// by itself with exit code 0, or by a signal from this package. Otherwise it
// says how the process ended.
func (p *Process) Err() error {
	select {
	case <-p.done:
	default:
		return nil
	}
	var exit *exec.ExitError
	if errors.As(p.err, &exit) && p.diedOfOurs(exit) {
		return nil
	}
	if p.err != nil {
		return fmt.Errorf("run %s: %w%s", p.name, p.err, logTail(p.logFile))
	}
	return nil
}

// diedOfOurs says whether the process died of the signal that was sent to it.
func (p *Process) diedOfOurs(exit *exec.ExitError) bool {
	status, ok := exit.Sys().(syscall.WaitStatus)
	return ok && status.Signaled() && status.Signal() == syscall.Signal(p.sent.Load())
}

// Stop asks the process to end with SIGTERM, waits until it has, and kills it
// if it takes too long or ctx ends. The error is that of Err, or that it had to
// be killed. Stop may be called more than once.
func (p *Process) Stop(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, stopGrace)
	defer cancel()
	if err := p.Signal(syscall.SIGTERM); err != nil {
		return err
	}
	select {
	case <-p.done:
		return p.Err()
	case <-ctx.Done():
		return errors.Join(fmt.Errorf("stop %s: %w", p.name, context.Cause(ctx)), p.Kill())
	}
}

// Kill ends the process and its children with SIGKILL, as a crash would, and
// waits until they are gone.
func (p *Process) Kill() error {
	if err := p.Signal(syscall.SIGKILL); err != nil {
		return err
	}
	<-p.done
	return nil
}

// Signal sends a signal to the process and its children. A process that has
// ended gets none, which is no error.
func (p *Process) Signal(signal syscall.Signal) error {
	select {
	case <-p.done:
		return nil
	default:
	}
	p.sent.Store(int32(signal))
	if err := syscall.Kill(-p.PID(), signal); err != nil && !errors.Is(err, syscall.ESRCH) {
		return fmt.Errorf("signal %s: %w", p.name, err)
	}
	return nil
}
