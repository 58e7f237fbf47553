package guest

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
	"k8s.io/apimachinery/pkg/types"
)

// Process is a guest that was found running.
type Process struct {
	// PID is the process ID, for messages.
	PID   int
	pidfd *os.File
	ended chan struct{}
}

// Ended returns a channel that is closed once the process has ended.
func (p *Process) Ended() <-chan struct{} { return p.ended }

// Signal sends a signal to the guest.
func (p *Process) Signal(signal syscall.Signal) error { return p.send(signal, 0) }

// PowerOff sends the signals, one after the other until the guest ends, to all processes of its group. It returns an
// error if the guest still runs.
func (p *Process) PowerOff(signals ...syscall.Signal) error {
	for _, signal := range signals {
		err := p.send(signal, unix.PIDFD_SIGNAL_PROCESS_GROUP)
		if errors.Is(err, unix.EINVAL) { // before Linux 6.9 no signal to a group is safe from reused process IDs
			err = p.send(signal, 0)
		}
		if err != nil {
			return err
		}
		select {
		case <-p.ended:
			return nil
		case <-time.After(patience):
		}
	}
	return fmt.Errorf("process %d still runs after %v", p.PID, signals)
}

// patience is how long a guest may take to end after a signal that ends it.
const patience = time.Second

// send sends a signal through the pidfd. It reaches no other process, and does nothing if the guest has ended.
func (p *Process) send(signal syscall.Signal, flags int) error {
	connection, err := p.pidfd.SyscallConn()
	if err != nil {
		return err
	}
	var sent error
	err = connection.Control(func(fd uintptr) { sent = unix.PidfdSendSignal(int(fd), signal, nil, flags) })
	if err = errors.Join(err, sent); err != nil && !errors.Is(err, unix.ESRCH) {
		return fmt.Errorf("send %v to process %d: %w", signal, p.PID, err)
	}
	return nil
}

// Close frees what the Process uses. The guest runs on.
func (p *Process) Close() error { return p.pidfd.Close() }

// open returns the process that has this ID now.
func open(pid int) (*Process, error) {
	fd, err := unix.PidfdOpen(pid, unix.PIDFD_NONBLOCK)
	if err != nil {
		return nil, fmt.Errorf("open process %d: %w", pid, err)
	}
	p := &Process{PID: pid, pidfd: os.NewFile(uintptr(fd), "pidfd"), ended: make(chan struct{})}
	connection, err := p.pidfd.SyscallConn()
	if err != nil {
		return nil, errors.Join(err, p.Close())
	}
	go func() {
		if connection.Read(isReadable) == nil { // else it was closed
			close(p.ended)
		}
	}()
	return p, nil
}

// isReadable reports whether the process of a pidfd has ended.
func isReadable(fd uintptr) bool {
	polled, err := unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}, 0)
	return err == nil && polled > 0
}

// Find returns the guest of an object, or nil if it has ended. An error means that neither is proven.
func (d *Dir) Find(uid types.UID) (*Process, error) {
	file, err := os.OpenFile(filepath.Join(d.of(uid), guestFile), os.O_RDWR, 0)
	if err != nil {
		return nil, fmt.Errorf("find guest: %w", err)
	}
	defer unlock(file)
	if ended, err := tryLock(file); ended || err != nil {
		return nil, err
	}
	text, err := io.ReadAll(file)
	if err != nil {
		return nil, fmt.Errorf("find guest: %w", err)
	}
	line, complete := bytes.CutSuffix(text, []byte("\n"))
	pid, err := strconv.Atoi(string(line))
	if !complete || err != nil {
		return nil, errors.New("find guest: a guest is starting, and has not written its process ID")
	}
	process, err := open(pid)
	if err != nil {
		return nil, fmt.Errorf("find guest: %w", err)
	}
	// The guest has written this ID, and has not ended yet: nobody else had the ID when the pidfd was opened.
	if ended, err := tryLock(file); ended || err != nil {
		return nil, errors.Join(err, process.Close())
	}
	return process, nil
}

// Command is how a guest is started.
type Command struct {
	// Path is the program, by default that of this process.
	Path string
	Args []string
	// Files are open in the guest from file descriptor 4 on. Start closes them.
	Files []*os.File
}

// Start starts a guest in a session of its own, so that no signal for the controller reaches it. The guest has to
// call [Announce].
func (d *Dir) Start(uid types.UID, command Command) (*Process, error) {
	defer func() {
		for _, file := range command.Files {
			_ = file.Close()
		}
	}()
	lock, err := os.OpenFile(filepath.Join(d.of(uid), guestFile), os.O_RDWR, 0)
	if err != nil {
		return nil, fmt.Errorf("start guest: %w", err)
	}
	defer func() { _ = lock.Close() }() // the guest has it, too
	switch locked, err := tryLock(lock); {
	case err != nil:
		return nil, fmt.Errorf("start guest: %w", err)
	case !locked:
		return nil, errors.New("start guest: it runs")
	}
	if err := lock.Truncate(0); err != nil { // the process ID of a guest before
		return nil, fmt.Errorf("start guest: %w", err)
	}
	console, err := os.OpenFile(filepath.Join(d.of(uid), consoleFile), os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		return nil, fmt.Errorf("start guest: %w", err)
	}
	defer func() { _ = console.Close() }()
	return start(command, lock, console)
}

func start(command Command, lock, console *os.File) (*Process, error) {
	if command.Path == "" {
		path, err := os.Executable()
		if err != nil {
			return nil, fmt.Errorf("start guest: %w", err)
		}
		command.Path = path
	}
	run := exec.Command(command.Path, command.Args...)
	run.Stdout, run.Stderr = console, console
	run.ExtraFiles = append([]*os.File{lock}, command.Files...)
	run.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err := run.Start(); err != nil {
		return nil, fmt.Errorf("start guest: %w", err)
	}
	process, err := open(run.Process.Pid)
	go func() { _ = run.Wait() }() // a child that nobody waits for keeps its process ID
	return process, err
}

// lockFD is the file descriptor of the lock in a guest.
const lockFD = 3

// Announce sends the process ID to the controller. A guest calls it once, before it does anything else.
func Announce() error {
	unix.CloseOnExec(lockFD) // a child of the guest that kept the lock would hide the end of the guest
	if _, err := unix.Pwrite(lockFD, []byte(strconv.Itoa(os.Getpid())+"\n"), 0); err != nil {
		return fmt.Errorf("announce guest, which a controller starts: %w", err)
	}
	return nil
}

// tryLock locks a file until it is closed here and in the processes that inherited it, unless another process has.
func tryLock(file *os.File) (bool, error) {
	err := unix.Flock(int(file.Fd()), unix.LOCK_EX|unix.LOCK_NB)
	if errors.Is(err, unix.EWOULDBLOCK) {
		return false, nil
	}
	return err == nil, err
}

// unlock closes the file, and releases its lock even if a process that is being created still has a copy of it.
func unlock(file *os.File) {
	_ = unix.Flock(int(file.Fd()), unix.LOCK_UN)
	_ = file.Close()
}
