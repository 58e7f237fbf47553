package runner

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
)

// imagePlan returns the commands for a pod whose provisioner has the arguments.
func imagePlan(t *testing.T, args ...string) []string {
	t.Helper()
	s := observed(t, nil)
	pod := &corev1.Pod{Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "csi-provisioner",
		Image: "r/exeunt/provisioner:v1", Args: args}}}}
	pod.Namespace, pod.Name = "csi", "driver"
	s.addPod(pod)
	step := s.stepProvisioners(false)
	return step.Commands
}

func TestArgumentsUnknownToUpstreamAreNamed(t *testing.T) {
	for name, tc := range map[string]struct {
		args []string
		want string
	}{
		"flags of ours": {[]string{"--csi-address=/s", "--driver-wait=5m", "-audit-interval", "1h",
			"--journal-unresolved-after=2h"}, "--driver-wait, --audit-interval, --journal-unresolved-after"},
		"gates of ours":            {[]string{"--feature-gates=Topology=true,HonorPVReclaimPolicy=false,ProvisioningJournal=true"}, "HonorPVReclaimPolicy of --feature-gates, ProvisioningJournal of --feature-gates"},
		"gates as a word":          {[]string{"--feature-gates", "ProvisioningJournal=false"}, "ProvisioningJournal of --feature-gates"},
		"a flag two times":         {[]string{"--driver-wait=1m", "--driver-wait=2m"}, "--driver-wait"},
		"upstream's flags":         {[]string{"--csi-address=/s", "--v=5", "--leader-election", "--timeout=10s"}, ""},
		"upstream's gates":         {[]string{"--feature-gates=Topology=true,ReleaseLeaderElectionOnExit=true"}, ""},
		"a value like a flag name": {[]string{"--volume-name-prefix", "driver-wait"}, ""},
		"no arguments":             {nil, ""},
	} {
		t.Run(name, func(t *testing.T) {
			commands := imagePlan(t, tc.args...)
			change := slices.IndexFunc(commands, func(line string) bool { return strings.HasPrefix(line, "kubectl set image ") })
			if change < 0 {
				t.Fatalf("commands = %q", commands)
			}
			got := ""
			if change > 0 {
				got = commands[change-1]
			}
			want := ""
			if tc.want != "" {
				want = "# first remove these arguments of csi-provisioner in pod/driver, namespace csi: " + tc.want
			}
			if got != want {
				t.Errorf("before the command: %q, want %q", got, want)
			}
		})
	}
}

// docs/flags.md is compared with the program and with the flags of csi-provisioner by other tests.
func TestOwnArgumentsAreThoseOfDocuments(t *testing.T) {
	text, err := os.ReadFile(filepath.Join("..", "..", "..", "docs", "flags.md"))
	if err != nil {
		t.Fatal(err)
	}
	if got := matches(text, "(?m)^- `--([a-z-]+)` \\("); !slices.Equal(got, slices.Sorted(slices.Values(ownFlags))) {
		t.Errorf("flags that exist here only: %q in docs/flags.md, %q here", got, ownFlags)
	}
	gates := matches(text, "(?m)^\\| `([A-Z][A-Za-z]+)` \\| (?:always on)? ?\\|")
	if !slices.Equal(gates, slices.Sorted(slices.Values(ownGates))) {
		t.Errorf("gates that csi-provisioner does not know: %q in docs/flags.md, %q here", gates, ownGates)
	}
}

// matches returns the first group of each match, sorted.
func matches(text []byte, pattern string) []string {
	var all []string
	for _, match := range regexp.MustCompile(pattern).FindAllSubmatch(text, -1) {
		all = append(all, string(match[1]))
	}
	slices.Sort(all)
	return all
}
