package scenarios

import (
	"strings"
	"syscall"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestOurProgramsOnANode(t *testing.T) { playAll(t, "ours", "/provisioner") }

func TestUpstreamProgramsOnANode(t *testing.T) { playAll(t, "upstream", "/csi-provisioner") }

// playAll starts a cluster with the programs of a side and plays all scenarios at the same
// time, except the scenario with a killed provisioner.
func playAll(t *testing.T, side, provisioner string) {
	t.Helper()
	c := start(t, side)
	t.Run("together", func(t *testing.T) {
		for name, scenario := range map[string]func(*testing.T, *workload){
			"volume-first":      deleteVolumeFirst,
			"claim-first":       deleteClaimFirst,
			"namespace-deleted": deleteNamespace,
		} {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				scenario(t, c.createWorkload(t, name))
			})
		}
	})
	t.Run("provisioner-killed", func(t *testing.T) {
		w := c.createWorkload(t, "provisioner-killed")
		w.deletePV(t)
		w.deleteClaim(t)
		w.awaitProbe(t)
		c.kill(t, provisioner)
		w.expectInUse(t)
		w.deletePod(t)
		w.awaitGone(t)
	})
}

// deleteVolumeFirst deletes the volume while the pod uses it: the pod keeps its data, and
// the volume goes after the claim.
func deleteVolumeFirst(t *testing.T, w *workload) {
	t.Helper()
	w.deletePV(t)
	w.awaitProbe(t)
	w.expectInUse(t)
	w.deleteClaim(t)
	w.awaitProbe(t)
	w.expectInUse(t)
	w.deletePod(t)
	w.awaitGone(t)
}

// deleteClaimFirst deletes the claim and then the volume while the pod uses them.
func deleteClaimFirst(t *testing.T, w *workload) {
	t.Helper()
	w.deleteClaim(t)
	w.awaitProbe(t)
	w.expectInUse(t)
	w.deletePV(t)
	w.awaitProbe(t)
	w.expectInUse(t)
	w.deletePod(t)
	w.awaitGone(t)
}

// deleteNamespace deletes the volume and then the namespace with pod and claim.
func deleteNamespace(t *testing.T, w *workload) {
	t.Helper()
	w.deletePV(t)
	w.awaitProbe(t)
	w.expectInUse(t)
	must(t, w.client.CoreV1().Namespaces().Delete(t.Context(), w.namespace, metav1.DeleteOptions{}))
	w.awaitGone(t)
}

// kill ends a program in a pod of the node with SIGKILL. Kubelet starts it again.
func (c *cluster) kill(t *testing.T, program string) {
	t.Helper()
	processes, err := c.processes(program)
	if err != nil {
		t.Fatal(err)
	}
	if len(processes) != 1 {
		t.Fatalf("the node has %d processes of %s, want 1", len(processes), program)
	}
	must(t, syscall.Kill(processes[0], syscall.SIGKILL))
	eventually(t, strings.TrimPrefix(program, "/")+" runs again", c.runsAgain(program, processes[0]))
}
