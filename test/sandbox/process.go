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
	// stopGrace is the time limit to end after SIGTERM.
	stopGrace = 20 * time.Second
	// outputGrace is the time limit to read the output of an ended program.
	outputGrace = 2 * time.Second
)

// errSilent: the program ended with status 0 before it printed its ready line.
var errSilent = errors.New("exit status 0")

// Program configures a process.
type Program struct {
	// Name of the program in errors. Empty means the name of the file.
	Name string
	// Path is the file to execute.
	Path string
	Args []string
	// Env is added to this process's environment, as KEY=VALUE.
	Env []string
	// LogFile is the file to which the output is appended.
	LogFile string
	// ReadyLine is the beginning of the line on standard output that reports readiness.
	// Empty means that the program is ready once it runs.
	ReadyLine string
}

// Process is a started program.
type Process struct {
	name    string
	logFile string
	command *exec.Cmd
	// ready is the rest of the program's ready line.
	ready string
	// sent is the last signal from this package.
	sent atomic.Int32
	done chan struct{}
	err  error // exit status or signal, once done is closed
}

// Start runs a program in a new process group and waits until it is ready.
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

// awaitReady returns once the program is ready, or kills the program at the deadline.
func (p *Process) awaitReady(ctx context.Context, output *announcer) error {
	select {
	case p.ready = <-output.ready:
		return nil
	case <-p.done:
		select { // a program that was ready and has ended since did start
		case p.ready = <-output.ready:
			return nil
		default:
		}
		return fmt.Errorf("start %s: it ended before it was ready: %w%s", p.name, cmp.Or(p.err, errSilent),
			logTail(p.logFile))
	case <-ctx.Done():
		err := fmt.Errorf("start %s: it is not ready: %w%s", p.name, context.Cause(ctx), logTail(p.logFile))
		return errors.Join(err, p.Kill())
	}
}

// Name returns the name of the program.
func (p *Process) Name() string { return p.name }

// LogFile returns the path of the log.
func (p *Process) LogFile() string { return p.logFile }

// PID returns the process ID.
func (p *Process) PID() int { return p.command.Process.Pid }

// Done returns a channel that is closed once the process has ended.
func (p *Process) Done() <-chan struct{} { return p.done }

// Err returns nil while the process runs, and if it ended with exit code 0 or by a signal
// from this package. Otherwise the error describes the end.
func (p *Process) Err() error {
	select {
	case <-p.done:
	default:
		return nil
	}
	var exit *exec.ExitError
	if errors.As(p.err, &exit) && p.endedBySignal(exit) {
		return nil
	}
	if p.err != nil {
		return fmt.Errorf("run %s: %w%s", p.name, p.err, logTail(p.logFile))
	}
	return nil
}

// Ended returns an error if the process has failed, or has ended without a signal from this package.
func (p *Process) Ended() error {
	select {
	case <-p.done:
	default:
		return nil
	}
	if err := p.Err(); err != nil || p.sent.Load() != 0 {
		return err
	}
	return fmt.Errorf("run %s: the process ended by itself", p.name)
}

// endedBySignal reports whether the last signal of this package ended the process.
func (p *Process) endedBySignal(exit *exec.ExitError) bool {
	status, ok := exit.Sys().(syscall.WaitStatus)
	return ok && status.Signaled() && status.Signal() == syscall.Signal(p.sent.Load())
}

// Stop sends SIGTERM and waits until the process has ended. It kills the process after
// stopGrace or when ctx ends, and returns an error then. Otherwise it returns Err. Stop may
// be called more than once.
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

// Kill ends the process and its children with SIGKILL, as a crash does, and waits for the
// end of the process.
func (p *Process) Kill() error {
	if err := p.Signal(syscall.SIGKILL); err != nil {
		return err
	}
	<-p.done
	return nil
}

// Signal sends a signal to the process and its children. It does nothing if the process
// has ended.
func (p *Process) Signal(signal syscall.Signal) error {
	select {
	case <-p.done:
		return nil
	default:
	}
	p.sent.Store(int32(signal))
	if err := signalGroup(p.PID(), signal); err != nil && !errors.Is(err, syscall.ESRCH) {
		return fmt.Errorf("signal %s: %w", p.name, err)
	}
	return nil
}
