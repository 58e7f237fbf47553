package cluster_test

import (
	"os/exec"
	"strings"
	"testing"

	"github.com/exeunt-io/exeunt/pkg/why/cluster"
)

func TestCommandsAreQuoted(t *testing.T) {
	commands := cluster.Commands{Context: "a b"}
	const want = `kubectl patch pv 'it'\''s' --type=json -p '[{"op":"test"}]' -n ns --context 'a b'`
	if got := commands.Kubectl("ns", "patch", "pv", "it's", "--type=json", "-p", `[{"op":"test"}]`); got != want {
		t.Errorf("Kubectl() = %s, want %s", got, want)
	}
	output, err := exec.CommandContext(t.Context(), "sh", "-c",
		"printf %s "+cluster.Commands{}.Kubectl("", `$(touch x) "y" 'z'`)).Output()
	if err != nil || !strings.Contains(string(output), "kubectl") {
		t.Errorf("the shell printed %q, %v", output, err)
	}
}

func TestStepsArePasted(t *testing.T) {
	const want = "# look\n# here\nkubectl get pods\n# last resort, all is lost:\n# kubectl delete pods"
	if got := cluster.Steps("look") + "\n" + cluster.Steps("here\n", "kubectl get pods") + "\n" +
		cluster.LastResort("all is lost", "kubectl delete pods"); got != want {
		t.Errorf("the steps are %q, want %q", got, want)
	}
}

func TestCommandsReachTheClusterThatWasRead(t *testing.T) {
	commands := cluster.Commands{Kubeconfig: "my config", Context: "c", Cluster: "d", Server: "https://e:6443", User: "u",
		As: "i j", AsUID: "1", AsGroups: []string{"g", "h i"}, AsExtra: []string{"a=b"}}
	const want = "kubectl delete pod db-0 -n shop --kubeconfig 'my config' --context c --cluster d --server https://e:6443 --user u " +
		"--as 'i j' --as-uid 1 --as-group g --as-group 'h i' --as-user-extra a=b"
	if got := commands.Kubectl("shop", "delete", "pod", "db-0"); got != want {
		t.Errorf("the command is %s, want %s", got, want)
	}
}
