package cluster

import "testing"

func TestProcessIsInTheCgroupOfItsNode(t *testing.T) {
	for name, tc := range map[string]struct {
		groups string
		want   bool
	}{
		"version 1, kubelet":     {"4:memory:/a/exeunt-node-7\n1:cpu:/exeunt-node-7\n", true},
		"version 1, a pod":       {"1:cpu:/exeunt-node-7/kubepods/pod1/x\n", true},
		"version 2, the leaf":    {"0::/exeunt-node-7/init\n", true},
		"another node":           {"1:cpu:/exeunt-node-71\n0::/\n", false},
		"a process of the shell": {"1:cpu:/\n0::/\n", false},
	} {
		if got := inGroup(tc.groups, "/exeunt-node-7"); got != tc.want {
			t.Errorf("%s: inGroup() = %v, want %v", name, got, tc.want)
		}
	}
}
