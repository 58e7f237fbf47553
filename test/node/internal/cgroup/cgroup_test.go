package cgroup

import (
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
)

const (
	legacyMounts = `22 1 0:20 / /sys rw - sysfs sysfs rw
30 22 0:27 / /sys/fs/cgroup/cpu,cpuacct rw,relatime - cgroup cgroup rw,cpu,cpuacct
31 22 0:28 / /sys/fs/cgroup/memory rw,relatime shared:4 - cgroup cgroup rw,memory
32 22 0:29 / /sys/fs/cgroup/systemd rw,relatime - cgroup cgroup rw,xattr,name=systemd
33 22 0:30 / /sys/fs/cgroup/unified rw,relatime - cgroup2 cgroup2 rw
`
	unifiedMounts = "29 22 0:26 / /sys/fs/cgroup rw,nosuid shared:4 - cgroup2 cgroup2 rw,nsdelegate\n"
)

func TestFindGroups(t *testing.T) {
	for name, tc := range map[string]struct {
		mounts, own string
		want        Groups
	}{
		"version 1": {legacyMounts, "3:name=systemd:/\n2:memory:/a/b\n1:cpu,cpuacct:/\n0::/\n", Groups{Groups: []Group{
			{"/sys/fs/cgroup/cpu,cpuacct", "cpu,cpuacct", "/sys/fs/cgroup/cpu,cpuacct", "/sys/fs/cgroup/cpu,cpuacct/node"},
			{"/sys/fs/cgroup/memory", "memory", "/sys/fs/cgroup/memory/a/b", "/sys/fs/cgroup/memory/a/b/node"},
			{"/sys/fs/cgroup/systemd", "none,name=systemd", "/sys/fs/cgroup/systemd", "/sys/fs/cgroup/systemd/node"},
		}}},
		"version 2 in a session": {unifiedMounts, "0::/user.slice/session-1.scope\n", Groups{Unified: true, Groups: []Group{
			{"/sys/fs/cgroup", "", "/sys/fs/cgroup/user.slice/session-1.scope", "/sys/fs/cgroup/node"},
		}}},
		"version 1 in a container": {strings.ReplaceAll(legacyMounts, "0:28 / ", "0:28 /docker/x "), "2:memory:/docker/x\n",
			Groups{Groups: []Group{
				{"/sys/fs/cgroup/memory", "memory", "/sys/fs/cgroup/memory", "/sys/fs/cgroup/memory/node"},
			}}},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := parse(tc.mounts, tc.own, "node")
			if err != nil || !reflect.DeepEqual(got, tc.want) {
				t.Errorf("parse() = %+v, %v, want %+v", got, err, tc.want)
			}
		})
	}
}

func TestFindGroupsWithoutHierarchy(t *testing.T) {
	if _, err := parse("22 1 0:20 / /sys rw - sysfs sysfs rw\n", "0::/\n", "node"); !errors.Is(err, ErrNone) {
		t.Errorf("parse() = %v, want %v", err, ErrNone)
	}
}

// directory returns a directory with files in place of a cgroup.
func directory(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func TestDelegateMovesProcessAndEnablesControllers(t *testing.T) {
	root := directory(t, map[string]string{"cgroup.controllers": "cpu memory pids rdma", "cgroup.subtree_control": ""})
	if err := Delegate(root); err != nil {
		t.Fatal(err)
	}
	if process, err := os.ReadFile(filepath.Join(root, "init", "cgroup.procs")); err != nil || len(process) == 0 {
		t.Errorf("the leaf has no process: %v", err)
	}
	if enabled, err := os.ReadFile(filepath.Join(root, "cgroup.subtree_control")); err != nil ||
		string(enabled) != "+pids" {
		t.Errorf("the last controller is %q, %v, want +pids", enabled, err)
	}
}

func TestMissingControllers(t *testing.T) {
	for name, tc := range map[string]struct {
		available, enabled, want string
		err                      error
	}{
		"none is enabled":         {"cpu memory pids rdma", "", "cpu memory pids", nil},
		"some are enabled":        {"cpu io memory pids\n", "cpu pids\n", "io memory", nil},
		"all are enabled":         {"cpuset cpu io memory hugetlb pids", "cpuset cpu io memory hugetlb pids", "", nil},
		"memory has a version 1":  {"cpu pids", "", "", errController},
		"all have a version 1":    {"", "", "", errController},
		"enabled ones are others": {"cpu memory pids", "rdma", "cpu memory pids", nil},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := missingControllers(tc.available, tc.enabled)
			if strings.Join(got, " ") != tc.want || !errors.Is(err, tc.err) {
				t.Errorf("missingControllers() = %v, %v, want %s, %v", got, err, tc.want, tc.err)
			}
		})
	}
}

func TestMissingControllerIsNamed(t *testing.T) {
	root := directory(t, map[string]string{"cgroup.controllers": "cpu pids", "cgroup.subtree_control": ""})
	if err := Delegate(root); err == nil || !strings.Contains(err.Error(), "no controller memory") {
		t.Errorf("Delegate() = %v, want an error that names memory", err)
	}
}

func TestNewCpusetInheritsFromParent(t *testing.T) {
	parent := directory(t, map[string]string{"cpuset.cpus": "0-1\n", "cpuset.mems": "0\n"})
	child := filepath.Join(parent, "node")
	if err := os.Mkdir(child, 0o700); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"cpuset.cpus", "cpuset.mems"} {
		if err := os.WriteFile(filepath.Join(child, name), []byte("\n"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := inheritCPUs(child); err != nil {
		t.Fatal(err)
	}
	if cpus, err := os.ReadFile(filepath.Join(child, "cpuset.cpus")); err != nil || string(cpus) != "0-1\n" {
		t.Errorf("the new cgroup has CPUs %q, %v", cpus, err)
	}
}
