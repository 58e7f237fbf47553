package scenarios

import (
	"context"
	"errors"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/exeunt-io/exeunt/test/node/internal/cluster"
)

// The cluster is torn down at the end.
func TestOurProgramsOnANode(t *testing.T) {
	c := playAll(t, cluster.Ours)
	t.Run("torn-down", func(t *testing.T) { tearDown(t, c) })
}

func TestUpstreamProgramsOnANode(t *testing.T) { playAll(t, cluster.Upstream) }

func TestChartOnANode(t *testing.T) {
	deleteVolumeFirst(t, createWorkload(t, start(t, cluster.Chart), "volume-first"))
}

// playAll starts a cluster with the programs of a side. It plays those scenarios at the same
// time that end no program, and then the others.
func playAll(t *testing.T, side cluster.Side) *cluster.Cluster {
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
				scenario(t, createWorkload(t, c, name))
			})
		}
	})
	t.Run("leader-deleted", func(t *testing.T) { endLeader(t, createWorkload(t, c, "leader-deleted")) })
	t.Run("provisioner-killed",
		func(t *testing.T) { killProvisioner(t, createWorkload(t, c, "provisioner-killed"), side) })
	t.Run("kubelet-killed", func(t *testing.T) { killKubelet(t, createWorkload(t, c, "kubelet-killed")) })
	t.Run("node-deleted", func(t *testing.T) { deleteNode(t, createWorkload(t, c, "node-deleted")) })
	t.Run("switched", func(t *testing.T) { switchAndBack(t, createWorkload(t, c, "switched"), side) })
	return c
}

// endLeader ends the leader while the volume is Terminating: the next leader knows nothing
// but the objects.
func endLeader(t *testing.T, w *workload) {
	t.Helper()
	w.deletePV(t)
	w.awaitProbe(t)
	must(t, w.EndLeader(t.Context()))
	w.awaitProbe(t)
	w.expectInUse(t)
	w.deleteClaim(t)
	w.deletePod(t)
	w.awaitGone(t)
}

// killProvisioner kills the provisioner while volume and claim are being deleted: the next
// process deletes the volume.
func killProvisioner(t *testing.T, w *workload, side cluster.Side) {
	t.Helper()
	w.deletePV(t)
	w.deleteClaim(t)
	w.awaitProbe(t)
	pid, err := w.Kill(side.Provisioner())
	must(t, err)
	must(t, w.AwaitNewProcess(t.Context(), side.Provisioner(), pid))
	w.expectInUse(t)
	w.deletePod(t)
	w.awaitGone(t)
}

// killKubelet deletes volume, claim and pod while kubelet is down: the next kubelet unmounts
// a volume that it did not mount.
func killKubelet(t *testing.T, w *workload) {
	t.Helper()
	w.deletePV(t)
	w.deleteClaim(t)
	w.awaitProbe(t)
	pid, err := w.Kill(w.Kubelet())
	must(t, err)
	w.deletePod(t)
	must(t, w.AwaitNewProcess(t.Context(), w.Kubelet(), pid))
	w.awaitGone(t)
}

// deleteNode deletes the Node object while volume and claim are being deleted, and kubelet
// registers the machine as a new node: the pod still runs there, with its volume.
func deleteNode(t *testing.T, w *workload) {
	t.Helper()
	w.deletePV(t)
	w.deleteClaim(t)
	w.awaitProbe(t)
	must(t, w.Client.CoreV1().Nodes().Delete(t.Context(), cluster.NodeName, metav1.DeleteOptions{}))
	w.eventually(t, "the CSINode of the deleted node is gone", func(ctx context.Context) error {
		_, err := w.Client.StorageV1().CSINodes().Get(ctx, cluster.NodeName, metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			return nil
		}
		return errors.Join(errors.New("the CSINode still exists"), err)
	})
	w.expectInUse(t)
	pid, err := w.Kill(w.Kubelet()) // it registers the node when it starts
	must(t, err)
	must(t, w.AwaitNewProcess(t.Context(), w.Kubelet(), pid))
	must(t, w.AwaitNode(t.Context()))
	w.awaitProbe(t)
	w.expectInUse(t)
	w.deletePod(t)
	w.awaitGone(t)
}

// switchAndBack replaces the programs of the side by those of the other one while the volume
// is being deleted, and back while volume and claim are.
func switchAndBack(t *testing.T, w *workload, side cluster.Side) {
	t.Helper()
	w.deletePV(t)
	w.awaitProbe(t)
	must(t, w.SwitchTo(t.Context(), side.Other()))
	w.awaitProbe(t)
	w.expectInUse(t)
	w.deleteClaim(t)
	w.awaitProbe(t)
	must(t, w.SwitchTo(t.Context(), side))
	w.awaitProbe(t)
	w.expectInUse(t)
	w.deletePod(t)
	w.awaitGone(t)
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
	must(t, w.Client.CoreV1().Namespaces().Delete(t.Context(), w.namespace, metav1.DeleteOptions{}))
	w.awaitGone(t)
}
