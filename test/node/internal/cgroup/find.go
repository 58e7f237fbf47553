package cgroup

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// ErrNone: the machine has no hierarchy of cgroups that a node can use.
var ErrNone = errors.New("no hierarchy of cgroups is mounted at " + mountPoint)

// hierarchy is a mounted hierarchy.
type hierarchy struct {
	fsType string
	// root is the directory of the hierarchy that is mounted at mount.
	root, mount string
	options     []string
}

// Find returns the cgroups, not yet created, of a node called name on this machine.
func Find(name string) (Groups, error) {
	mounts, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		return Groups{}, fmt.Errorf("find cgroups: %w", err)
	}
	own, err := os.ReadFile("/proc/self/cgroup")
	if err != nil {
		return Groups{}, fmt.Errorf("find cgroups: %w", err)
	}
	return parse(string(mounts), string(own), name)
}

// parse returns the cgroups of a node from the contents of /proc/self/mountinfo and
// /proc/self/cgroup.
func parse(mountinfo, own, name string) (Groups, error) {
	paths := ownPaths(own)
	var groups Groups
	for line := range strings.Lines(mountinfo) {
		h, found := parseMount(line)
		switch {
		case !found:
		case h.fsType == "cgroup2" && h.mount == mountPoint:
			return Groups{Unified: true, Groups: []Group{{
				Mount: h.mount, Origin: h.directory(paths[""]), Dir: filepath.Join(h.mount, name),
			}}}, nil
		case h.fsType == "cgroup":
			if group, joined := h.group(paths, name); joined {
				groups.Groups = append(groups.Groups, group)
			}
		}
	}
	if len(groups.Groups) == 0 {
		return Groups{}, ErrNone
	}
	return groups, nil
}

// ownPaths returns the cgroup of this process by hierarchy: by each controller with cgroup
// v1, by the empty name with cgroup v2.
func ownPaths(own string) map[string]string {
	paths := map[string]string{}
	for line := range strings.Lines(own) {
		fields := strings.SplitN(strings.TrimSpace(line), ":", 3)
		if len(fields) != 3 {
			continue
		}
		for controller := range strings.SplitSeq(fields[1], ",") {
			paths[controller] = fields[2]
		}
	}
	return paths
}

// parseMount parses a line of mountinfo, if it is a hierarchy of cgroups below /sys.
func parseMount(line string) (hierarchy, bool) {
	mount, super, _ := strings.Cut(line, " - ")
	fields, source := strings.Fields(mount), strings.Fields(super)
	if len(fields) < 6 || len(source) < 3 || !strings.HasPrefix(source[0], "cgroup") ||
		!strings.HasPrefix(fields[4], mountPoint) {
		return hierarchy{}, false
	}
	return hierarchy{fsType: source[0], root: fields[3], mount: fields[4], options: strings.Split(source[2], ",")}, true
}

// group returns the node's cgroup in a hierarchy of cgroup v1, below that of this process.
func (h hierarchy) group(paths map[string]string, name string) (Group, bool) {
	var options []string
	path, joined := "", false
	for _, option := range h.options {
		own, found := paths[option]
		if !found {
			continue
		}
		path, joined = own, true
		options = append(options, option)
		if strings.HasPrefix(option, "name=") {
			options = slices.Insert(options, 0, "none")
		}
	}
	origin := h.directory(path)
	return Group{Mount: h.mount, Options: strings.Join(options, ","), Origin: origin, Dir: filepath.Join(origin, name)},
		joined
}

// directory returns the directory of a cgroup of the hierarchy.
func (h hierarchy) directory(path string) string {
	return filepath.Join(h.mount, strings.TrimPrefix(path, strings.TrimSuffix(h.root, "/")))
}
