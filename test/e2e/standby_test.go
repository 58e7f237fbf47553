package e2e

import (
	"fmt"
	"testing"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/exeunt-io/exeunt/deploy"
	"github.com/exeunt-io/exeunt/internal/sandbox"
)

// The switch in docs/operations.md: the pods are ready while the loops of
// kube-controller-manager still run, and work once the Lease is deleted.
func TestStandbyLeaseKeepsReplicasIdleUntilDeleted(t *testing.T) {
	t.Parallel()
	s := enter(t, private(t, setup{honor: true, idle: true}))
	s.must(sandbox.Apply(s.ctx, s.plane.RESTConfig(), deploy.Standby), "apply the standby lease")
	s.createVolume("static", v1.PersistentVolumeReclaimRetain)
	s.createClaim("claim", s.namespace)
	for i := range 2 {
		process, err := s.plane.StartPVController(s.ctx, sandbox.Controller{
			Name: fmt.Sprintf("pv-controller-%d", i), HonorReclaimPolicy: true, Args: []string{"--leader-elect=true", "--v=4"},
		})
		s.must(err, "start pv-controller")
		s.processes = append(s.processes, process)
		s.awaitLog(process, "has not yet expired")
	}
	claim, err := s.client.CoreV1().PersistentVolumeClaims(s.namespace).Get(s.ctx, "claim", metav1.GetOptions{})
	s.must(err, "get claim")
	s.expectStandby()
	if claim.Spec.VolumeName != "" || len(claim.Annotations) > 0 {
		t.Errorf("a replica served the claim: volume %q, annotations %v", claim.Spec.VolumeName, claim.Annotations)
	}

	s.must(s.client.CoordinationV1().Leases("kube-system").Delete(s.ctx, "pv-controller", metav1.DeleteOptions{}), "delete the standby lease")
	s.awaitBound("claim")
	lease, err := s.client.CoordinationV1().Leases("kube-system").Get(s.ctx, "pv-controller", metav1.GetOptions{})
	s.must(err, "get lease")
	if holder := *lease.Spec.HolderIdentity; holder == "standby" || holder == "" {
		t.Errorf("the lease names %q, want a replica", holder)
	}
}

// expectStandby wants the Lease as it was applied.
func (s *scene) expectStandby() {
	s.t.Helper()
	lease, err := s.client.CoordinationV1().Leases("kube-system").Get(s.ctx, "pv-controller", metav1.GetOptions{})
	s.must(err, "get lease")
	if holder := lease.Spec.HolderIdentity; holder == nil || *holder != "standby" {
		s.t.Errorf("the lease names %v, want standby", holder)
	}
}
