package scenarios

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// processes returns the IDs of a program's processes in pods of the node. The launcher's
// process ID is in the name of the node's cgroups.
func (c *cluster) processes(program string) ([]int, error) {
	files, err := filepath.Glob("/proc/[0-9]*/cmdline")
	if err != nil {
		return nil, err
	}
	var found []int
	for _, file := range files {
		line, err := os.ReadFile(file)
		name, _, _ := strings.Cut(string(line), "\x00")
		if err != nil || name != program {
			continue
		}
		groups, err := os.ReadFile(filepath.Join(filepath.Dir(file), "cgroup"))
		if err != nil || !strings.Contains(string(groups), fmt.Sprintf("exeunt-node-%d/", c.node.PID())) {
			continue
		}
		id, err := strconv.Atoi(filepath.Base(filepath.Dir(file)))
		if err != nil {
			return nil, err
		}
		found = append(found, id)
	}
	return found, nil
}

// errNotRunning: a program has no new process yet.
var errNotRunning = errors.New("there is no new process")

// runsAgain returns a check that the program has another process than the old one.
func (c *cluster) runsAgain(program string, old int) func(context.Context) error {
	return func(context.Context) error {
		processes, err := c.processes(program)
		if err != nil {
			return err
		}
		for _, id := range processes {
			if id != old {
				return nil
			}
		}
		return errNotRunning
	}
}
