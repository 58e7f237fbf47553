package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/exeunt-io/exeunt/test/sandbox"
)

// restartDelay is the time between the end of a process and its next start.
const restartDelay = 300 * time.Millisecond

// replica is a process that is started again whenever it ends, as the kubelet does.
type replica struct {
	program Program
	number  int
	// kubeconfig of the process.
	kubeconfig string
	// start starts the process whose log has the name.
	start func(ctx context.Context, log string) (*sandbox.Process, error)
	// ended is called after each end that this package did not cause.
	ended func(*sandbox.Process)

	mu      sync.Mutex
	process *sandbox.Process
	starts  int
	stop    context.CancelFunc
	done    chan struct{}
}

func (r *replica) name() string { return fmt.Sprintf("%s-%d", r.program, r.number) }

// run keeps the process running until halt.
func (r *replica) run(ctx context.Context) {
	ctx, stop := context.WithCancel(ctx)
	r.mu.Lock()
	r.stop, r.done = stop, make(chan struct{})
	done := r.done
	r.mu.Unlock()
	go func() {
		defer close(done)
		for ctx.Err() == nil {
			if process, err := r.startOnce(ctx); err == nil {
				r.await(ctx, process)
			}
			sandbox.Pause(ctx, restartDelay)
		}
	}()
}

// startOnce starts the process with a log of its own.
func (r *replica) startOnce(ctx context.Context) (*sandbox.Process, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.starts++
	process, err := r.start(ctx, fmt.Sprintf("%s.%d", r.name(), r.starts))
	if err != nil {
		return nil, err
	}
	r.process = process
	return process, nil
}

// await waits until the process has ended, or kills it when ctx ends.
func (r *replica) await(ctx context.Context, process *sandbox.Process) {
	select {
	case <-process.Done():
		r.ended(process)
	case <-ctx.Done():
		_ = process.Signal(syscall.SIGCONT)
		_ = process.Kill()
	}
}

// halt kills the process and does not start it again.
func (r *replica) halt() {
	r.mu.Lock()
	stop, done := r.stop, r.done
	r.mu.Unlock()
	if stop == nil {
		return
	}
	stop()
	<-done
}

// current returns the running process, nil for none.
func (r *replica) current() *sandbox.Process {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.process == nil {
		return nil
	}
	select {
	case <-r.process.Done():
		return nil
	default:
		return r.process
	}
}

// leads reports whether the process has acquired its lease. A leader that loses its lease ends.
func leads(process *sandbox.Process) bool {
	text, err := os.ReadFile(process.LogFile())
	return err == nil && strings.Contains(strings.ToLower(string(text)), "successfully acquired lease")
}

// leading returns the replica that leads, nil for none.
func leading(replicas []*replica) *replica {
	for _, r := range replicas {
		if process := r.current(); process != nil && leads(process) {
			return r
		}
	}
	return nil
}

// freeze stops the process for a time. It returns false if the process does not run.
func (r *replica) freeze(ctx context.Context, length time.Duration) bool {
	process := r.current()
	if process == nil || process.Signal(syscall.SIGSTOP) != nil {
		return false
	}
	go func() {
		sandbox.Pause(ctx, length)
		_ = process.Signal(syscall.SIGCONT)
	}()
	return true
}

// kill ends the process. It returns false if the process does not run.
func (r *replica) kill() bool {
	process := r.current()
	return process != nil && process.Kill() == nil
}

// crash returns an error if the log of an ended process has a Go panic.
func crash(process *sandbox.Process) error {
	text, err := os.ReadFile(process.LogFile())
	if err != nil {
		return fmt.Errorf("read log: %w", err)
	}
	for _, sign := range []string{"\npanic: ", "\nfatal error: ", "\nWARNING: DATA RACE"} {
		if strings.Contains("\n"+string(text), sign) {
			return errors.New(process.Name() + " crashed, see " + process.LogFile())
		}
	}
	return nil
}
