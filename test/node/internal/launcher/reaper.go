package launcher

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// errStatus: a process ended with another status than 0.
var errStatus = errors.New("unsuccessful end")

// errRuns: a process did not end in time.
var errRuns = errors.New("the program did not end")

// reaper starts processes and waits for all children of this process, also for those that
// other processes left behind.
type reaper struct {
	mu       sync.Mutex
	children map[int]chan error
}

// newReaper returns a reaper that waits for children until this process ends.
func newReaper() *reaper {
	r := &reaper{children: map[int]chan error{}}
	ended := make(chan os.Signal, 1)
	signal.Notify(ended, unix.SIGCHLD)
	go func() {
		for range ended {
			r.reap()
		}
	}()
	return r
}

// start starts a process. The channel gets nil once the process has ended with status 0,
// and an error otherwise.
func (r *reaper) start(command *exec.Cmd) (<-chan error, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if err := command.Start(); err != nil {
		return nil, fmt.Errorf("start %s: %w", command.Path, err)
	}
	done := make(chan error, 1)
	r.children[command.Process.Pid] = done
	if log, open := command.Stdout.(*os.File); open {
		_ = log.Close()
	}
	return done, nil
}

// run starts a process and waits for its end. It kills the process after the patience.
func (r *reaper) run(command *exec.Cmd, patience time.Duration) error {
	ended, err := r.start(command)
	if err != nil {
		return err
	}
	select {
	case status := <-ended:
		return status
	case <-time.After(patience):
		return errors.Join(fmt.Errorf("%w within %s: %s", errRuns, patience, command), command.Process.Kill())
	}
}

// reap waits for all children that have ended.
func (r *reaper) reap() {
	r.mu.Lock()
	defer r.mu.Unlock()
	for {
		var status unix.WaitStatus
		pid, err := unix.Wait4(-1, &status, unix.WNOHANG, nil)
		if errors.Is(err, unix.EINTR) {
			continue
		}
		if err != nil || pid <= 0 {
			return
		}
		done, known := r.children[pid]
		delete(r.children, pid)
		switch {
		case !known:
		case status.Exited() && status.ExitStatus() == 0:
			done <- nil
		default:
			done <- fmt.Errorf("%w: status %d, signal %d", errStatus, status.ExitStatus(), status.Signal())
		}
	}
}
