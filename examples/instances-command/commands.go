package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/exeunt-io/exeunt/pkg/nodeterminator/instances"
)

const (
	// exitUnsupported is the exit status of a command that will never do what it was asked for.
	exitUnsupported = 3
	// exitThrottled is EX_TEMPFAIL of sysexits.h: the backend wants fewer calls.
	exitThrottled = 75
	// throttled is how long the next call waits if the command names no seconds.
	throttled = 5 * time.Second
	// outputPatience is how long a command's children may hold its output once it has ended.
	outputPatience = time.Second
	// maxOutput is how much of a command's output is kept, from its end.
	maxOutput = 64 << 10
)

// commands is a provider that runs a command for each call.
type commands struct {
	get, stop, remove []string
	logger            *log.Logger
}

var _ instances.Provider = (*commands)(nil)

// Get runs the command of --get.
func (c *commands) Get(ctx context.Context, i instances.Instance) (instances.State, error) {
	return c.call(ctx, "get", c.get, i)
}

// Stop runs the command of --stop.
func (c *commands) Stop(ctx context.Context, i instances.Instance) (instances.State, error) {
	return c.call(ctx, "stop", c.stop, i)
}

// Delete runs the command of --delete.
func (c *commands) Delete(ctx context.Context, i instances.Instance) (instances.State, error) {
	return c.call(ctx, "delete", c.remove, i)
}

// call runs a command and logs how it ended.
func (c *commands) call(
	ctx context.Context, verb string, command []string, i instances.Instance,
) (instances.State, error) {
	if len(command) == 0 {
		return "", &instances.Error{Message: program + " has no command for --" + verb, Unsupported: true}
	}
	began := time.Now()
	state, err := execute(ctx, command, i)
	result := string(state)
	if err != nil {
		result = err.Error()
	}
	c.logger.Printf("%s %q of node %q: %q after %v", verb, i.ProviderID, i.Node, result,
		time.Since(began).Round(time.Millisecond))
	return state, err
}

// execute runs a command. No shell reads the values: a kubelet chooses some of them.
func execute(ctx context.Context, command []string, i instances.Instance) (instances.State, error) {
	var stdout, stderr tail
	process := exec.CommandContext(ctx, command[0], command[1:]...)
	process.Env = append(os.Environ(),
		"EXEUNT_PROVIDER_ID="+i.ProviderID,
		"EXEUNT_NODE="+i.Node,
		"EXEUNT_NODE_UID="+string(i.NodeUID),
		"EXEUNT_ADDRESSES="+strings.Join(i.Addresses, " "))
	process.Stdout, process.Stderr = &stdout, &stderr
	process.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	process.Cancel = func() error { return syscall.Kill(-process.Process.Pid, syscall.SIGKILL) }
	process.WaitDelay = outputPatience
	err := process.Run()
	if errors.Is(err, exec.ErrWaitDelay) { // a child holds the output, so the group exists
		_ = syscall.Kill(-process.Process.Pid, syscall.SIGKILL)
	}
	return result(ctx, err, stdout.String(), stderr.String())
}

// result returns what a command said with its output and its exit status.
func result(ctx context.Context, err error, stdout, stderr string) (instances.State, error) {
	var exit *exec.ExitError
	switch {
	case ctx.Err() != nil:
		return "", fmt.Errorf("the command was killed with its call: %w", ctx.Err())
	case err == nil:
		return instances.State(lastOf(strings.Fields(stdout))), nil
	case errors.Is(err, exec.ErrWaitDelay):
		return "", errors.New("the command has ended, and left a process that holds its output")
	case !errors.As(err, &exit):
		return "", fmt.Errorf("run the command: %w", err)
	}
	message := strings.TrimSpace(lastOf(strings.Split(strings.TrimSpace(stderr), "\n")))
	if message == "" {
		message = "the command ended with " + exit.String()
	}
	said := &instances.Error{Message: message, Unsupported: exit.ExitCode() == exitUnsupported}
	if exit.ExitCode() == exitThrottled {
		said.RetryAfter = throttled
		if seconds, err := strconv.ParseUint(lastOf(strings.Fields(stdout)), 10, 16); err == nil {
			said.RetryAfter = time.Duration(seconds) * time.Second
		}
	}
	return "", said
}

// lastOf returns the last word, or "".
func lastOf(words []string) string {
	if len(words) == 0 {
		return ""
	}
	return words[len(words)-1]
}

// tail keeps the end of what is written to it.
type tail struct{ bytes.Buffer }

// Write keeps the last maxOutput bytes.
func (t *tail) Write(text []byte) (int, error) {
	n, err := t.Buffer.Write(text)
	t.Next(max(0, t.Len()-maxOutput))
	return n, err
}
