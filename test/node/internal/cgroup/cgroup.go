// Package cgroup gives a node cgroups of its own, on machines with cgroup v1 and v2.
//
// The launcher creates a child cgroup in each hierarchy and starts the node in it, in a
// cgroup namespace whose root is the child. Kubelet and containerd mount the hierarchies
// again and see the child as the root.
package cgroup

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

const (
	// mountPoint is where a node mounts its cgroups.
	mountPoint = "/sys/fs/cgroup"
	// leaf is the cgroup of the node's own processes with cgroup v2, where a cgroup with
	// children that have controllers has no processes.
	leaf = "init"
	// removePatience bounds the wait for the end of killed processes.
	removePatience = 10 * time.Second
)

// delegated are the controllers that pods use with cgroup v2. Those in required must exist.
var (
	delegated = []string{"cpuset", "cpu", "io", "memory", "hugetlb", "pids"}
	required  = []string{"cpu", "memory", "pids"}
)

// Group is a cgroup of the node in one hierarchy.
type Group struct {
	// Mount is the mount point of the hierarchy on the machine.
	Mount string
	// Options select the hierarchy when it is mounted: the controllers with cgroup v1.
	Options string
	// Origin is the directory of the cgroup that the launcher came from, Dir that of the
	// node.
	Origin, Dir string
}

// Groups are the cgroups of a node.
type Groups struct {
	// Unified: the machine has cgroup v2, and there is one group.
	Unified bool
	Groups  []Group
}

// Create creates the cgroups.
func (g Groups) Create() error {
	for _, group := range g.Groups {
		if g.Unified {
			if err := enable(group.Mount); err != nil {
				return err
			}
		}
		if err := os.Mkdir(group.Dir, 0o755); err != nil {
			return fmt.Errorf("create cgroup: %w", err)
		}
		if g.Unified {
			continue
		}
		if err := inheritCPUs(group.Dir); err != nil {
			return err
		}
	}
	return nil
}

// inheritCPUs sets the CPUs and memory nodes of a new cgroup of the v1 controller cpuset,
// which accepts no process before.
func inheritCPUs(dir string) error {
	for _, name := range []string{"cpuset.cpus", "cpuset.mems"} {
		value, err := os.ReadFile(filepath.Join(dir, name))
		if errors.Is(err, fs.ErrNotExist) || err == nil && strings.TrimSpace(string(value)) != "" {
			continue
		}
		if err != nil {
			return fmt.Errorf("read %s: %w", name, err)
		}
		if value, err = os.ReadFile(filepath.Join(filepath.Dir(dir), name)); err != nil {
			return fmt.Errorf("read %s: %w", name, err)
		}
		if err := write(filepath.Join(dir, name), string(value)); err != nil {
			return err
		}
	}
	return nil
}

// enable gives the children of the cgroup v2 in dir the controllers that dir has.
func enable(dir string) error {
	available, err := os.ReadFile(filepath.Join(dir, "cgroup.controllers"))
	if err != nil {
		return fmt.Errorf("read controllers: %w", err)
	}
	enabled, err := os.ReadFile(filepath.Join(dir, "cgroup.subtree_control"))
	if err != nil {
		return fmt.Errorf("read controllers: %w", err)
	}
	missing, err := missingControllers(string(available), string(enabled))
	if err != nil {
		return fmt.Errorf("the cgroup %s %w", dir, err)
	}
	for _, name := range missing {
		if err := write(filepath.Join(dir, "cgroup.subtree_control"), "+"+name); err != nil {
			return err
		}
	}
	return nil
}

// errController: a cgroup v2 lacks a controller that kubelet needs.
var errController = errors.New("has no controller")

// missingControllers returns the controllers that the children of a cgroup v2 do not have
// yet, from its lists of available and enabled controllers.
func missingControllers(available, enabled string) (missing []string, err error) {
	has, on := strings.Fields(available), strings.Fields(enabled)
	for _, name := range required {
		if !slices.Contains(has, name) {
			return nil, fmt.Errorf("%w %s", errController, name)
		}
	}
	for _, name := range delegated {
		if slices.Contains(has, name) && !slices.Contains(on, name) {
			missing = append(missing, name)
		}
	}
	return missing, nil
}

// Enter moves the process into the cgroups.
func (g Groups) Enter(pid int) error {
	return g.move(pid, func(group Group) string { return group.Dir })
}

// Leave moves the process back to where the launcher came from.
func (g Groups) Leave(pid int) error {
	return g.move(pid, func(group Group) string { return group.Origin })
}

// move moves the process to a cgroup in each hierarchy.
func (g Groups) move(pid int, dir func(Group) string) error {
	for _, group := range g.Groups {
		if err := write(filepath.Join(dir(group), "cgroup.procs"), strconv.Itoa(pid)); err != nil {
			return err
		}
	}
	return nil
}

// Mount mounts the cgroups below /sys, in the cgroup namespace of the node. With cgroup v2
// it moves this process to a leaf, and gives the children of the root their controllers.
func (g Groups) Mount() error {
	if g.Unified {
		if err := unix.Mount("cgroup2", mountPoint, "cgroup2", 0, ""); err != nil {
			return fmt.Errorf("mount cgroup v2: %w", err)
		}
		return Delegate(mountPoint)
	}
	if err := unix.Mount("cgroup", mountPoint, "tmpfs", 0, "mode=755"); err != nil {
		return fmt.Errorf("mount directory of cgroups: %w", err)
	}
	for _, group := range g.Groups {
		dir := filepath.Join(mountPoint, filepath.Base(group.Mount))
		if err := os.Mkdir(dir, 0o755); err != nil {
			return fmt.Errorf("create mount point: %w", err)
		}
		if err := unix.Mount("cgroup", dir, "cgroup", 0, group.Options); err != nil {
			return fmt.Errorf("mount cgroup %s: %w", group.Options, err)
		}
	}
	return nil
}

// Delegate moves this process from the cgroup v2 in root to a leaf, and gives the other
// children of root its controllers.
func Delegate(root string) error {
	dir := filepath.Join(root, leaf)
	if err := os.Mkdir(dir, 0o755); err != nil {
		return fmt.Errorf("create cgroup: %w", err)
	}
	if err := write(filepath.Join(dir, "cgroup.procs"), strconv.Itoa(os.Getpid())); err != nil {
		return err
	}
	return enable(root)
}

// Remove removes the cgroups and those below them, once their processes have ended.
func (g Groups) Remove() error {
	deadline := time.Now().Add(removePatience)
	var failures []error
	for _, group := range g.Groups {
		err := removeTree(group.Dir)
		for errors.Is(err, unix.EBUSY) && time.Now().Before(deadline) {
			<-time.After(20 * time.Millisecond) // a cgroup has no event for the end of its processes
			err = removeTree(group.Dir)
		}
		if errors.Is(err, unix.EBUSY) {
			err = fmt.Errorf("processes did not end within %s: %w", removePatience, err)
		}
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			failures = append(failures, fmt.Errorf("remove cgroup %s: %w", group.Dir, err))
		}
	}
	return errors.Join(failures...)
}

// removeTree removes a cgroup after those below it. The files in a cgroup need no removal.
func removeTree(dir string) error {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	for _, entry := range entries {
		if !entry.IsDir() {
			continue
		}
		if err := removeTree(filepath.Join(dir, entry.Name())); err != nil {
			return err
		}
	}
	return unix.Rmdir(dir)
}

// write writes text to a file of a cgroup.
func write(file, text string) error {
	if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
		return fmt.Errorf("write %q to a cgroup: %w", strings.TrimSpace(text), err)
	}
	return nil
}
