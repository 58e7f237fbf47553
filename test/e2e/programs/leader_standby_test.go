package programs

import (
	"fmt"
	"testing"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/exeunt-io/exeunt/deploy"
	"github.com/exeunt-io/exeunt/test/e2e/harness"
	"github.com/exeunt-io/exeunt/test/sandbox"
)

// The switch in docs/install.md: the pods are ready while the loops of
// kube-controller-manager still run, and lead once the Lease is deleted.
func TestStandbyLeaseKeepsReplicasIdleUntilDeleted(t *testing.T) {
	t.Parallel()
	s := harness.Own(t, harness.Setup{NoPrograms: true})
	s.Must(sandbox.Apply(s.Ctx, s.Plane.RESTConfig(), deploy.Standby), "apply the standby lease")
	s.CreateVolume("static", v1.PersistentVolumeReclaimRetain)
	s.CreateClaim("claim", s.Namespace)
	for i := range 2 {
		process, err := s.Plane.StartPVController(s.Ctx, sandbox.Controller{
			Name: fmt.Sprintf("pv-controller-%d", i), HonorReclaimPolicy: true, Args: []string{"--leader-elect=true", "--v=4"},
		})
		s.Must(err, "start pv-controller")
		s.Add(process)
		s.AwaitLog(process, "has not yet expired")
	}
	claim, err := s.Client.CoreV1().PersistentVolumeClaims(s.Namespace).Get(s.Ctx, "claim", metav1.GetOptions{})
	s.Must(err, "get claim")
	expectStandby(s)
	if claim.Spec.VolumeName != "" || len(claim.Annotations) > 0 {
		t.Errorf("a replica served the claim: volume %q, annotations %v", claim.Spec.VolumeName, claim.Annotations)
	}

	s.Must(s.Client.CoordinationV1().Leases("kube-system").Delete(s.Ctx, "pv-controller", metav1.DeleteOptions{}),
		"delete the standby lease")
	s.AwaitBound("claim")
	lease, err := s.Client.CoordinationV1().Leases("kube-system").Get(s.Ctx, "pv-controller", metav1.GetOptions{})
	s.Must(err, "get lease")
	if holder := *lease.Spec.HolderIdentity; holder == "standby" || holder == "" {
		t.Errorf("the lease names %q, want a replica", holder)
	}
}

// expectStandby checks that the Lease still has the standby holder.
func expectStandby(s *harness.Session) {
	s.T.Helper()
	lease, err := s.Client.CoordinationV1().Leases("kube-system").Get(s.Ctx, "pv-controller", metav1.GetOptions{})
	s.Must(err, "get lease")
	if holder := lease.Spec.HolderIdentity; holder == nil || *holder != "standby" {
		s.T.Errorf("the lease names %v, want standby", holder)
	}
}
