package cluster

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
)

// errNotRunning: a program has no new process yet.
var errNotRunning = errors.New("there is no new process")

// Kill ends a program on the node with SIGKILL, and returns at once. The program is named as
// on its command line.
func (c *Cluster) Kill(program string) (pid int, err error) { return c.node.Kill(program) }

// AwaitNewProcess waits until a program on the node has another process than the old one.
func (c *Cluster) AwaitNewProcess(ctx context.Context, program string, old int) error {
	return c.node.AwaitNewProcess(ctx, program, old)
}

// Kubelet returns the name of kubelet on its command line.
func (c *Cluster) Kubelet() string { return filepath.Join(c.config.Binaries, "node", "kubelet") }

// Kill ends a program on the node with SIGKILL, and returns at once.
func (n *Node) Kill(program string) (pid int, err error) {
	found, err := n.find(program)
	if err != nil {
		return 0, err
	}
	if len(found) != 1 {
		return 0, fmt.Errorf("kill %s: the node has %d such processes, want 1", program, len(found))
	}
	if err := syscall.Kill(found[0], syscall.SIGKILL); err != nil {
		return 0, fmt.Errorf("kill %s: %w", program, err)
	}
	return found[0], nil
}

// AwaitNewProcess waits until a program on the node has another process than the old one.
func (n *Node) AwaitNewProcess(ctx context.Context, program string, old int) error {
	return n.cluster.Await(ctx, program+" runs again", func(context.Context) error {
		found, err := n.find(program)
		if err != nil {
			return err
		}
		for _, pid := range found {
			if pid != old {
				return nil
			}
		}
		return errNotRunning
	})
}

// find returns the IDs of a program's processes on the node. The launcher's process ID is in
// the name of the node's cgroups.
func (n *Node) find(program string) ([]int, error) {
	files, err := filepath.Glob("/proc/[0-9]*/cmdline")
	if err != nil {
		return nil, fmt.Errorf("list processes: %w", err)
	}
	node := fmt.Sprintf("/exeunt-node-%d", n.process.PID())
	var found []int
	for _, file := range files {
		line, err := os.ReadFile(file)
		name, _, _ := bytes.Cut(line, []byte{0})
		if err != nil || string(name) != program {
			continue // a process that has ended since has no command line
		}
		groups, err := os.ReadFile(filepath.Join(filepath.Dir(file), "cgroup"))
		if err != nil || !inGroup(string(groups), node) {
			continue
		}
		pid, err := strconv.Atoi(filepath.Base(filepath.Dir(file)))
		if err != nil {
			return nil, fmt.Errorf("read process ID: %w", err)
		}
		found = append(found, pid)
	}
	return found, nil
}

// inGroup reports whether a process is in the cgroup that is called name, or below it.
// Groups is the content of its /proc/PID/cgroup.
func inGroup(groups, name string) bool {
	for line := range strings.Lines(groups) {
		if strings.Contains(strings.TrimSpace(line)+"/", name+"/") {
			return true
		}
	}
	return false
}
