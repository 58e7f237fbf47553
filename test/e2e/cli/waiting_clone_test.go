package cli

import (
	"strings"
	"testing"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/exeunt-io/exeunt/pkg/finalizer"
	"github.com/exeunt-io/exeunt/test/e2e/harness"
)

// The source waits for its clone, and no longer once somebody removed the finalizer by force.
func TestCloneSourceHasEvent(t *testing.T) {
	t.Parallel()
	s := harness.Own(t, harness.Setup{DriverFlags: "--faults=../testdata/slow-clone.yaml",
		ProvisionerFlags: "--timeout=5m"}, harness.Within(2*harness.Timeout))
	r := &rig{Session: s}
	s.CreateClaim("source", harness.DeleteClass,
		func(c *v1.PersistentVolumeClaim) { c.Finalizers = []string{"example.com/backup"} })
	s.AwaitBound("source")
	s.CreateClaim("clone", harness.DeleteClass, harness.CloneOf("source"))
	s.AwaitClaim("source", "is protected",
		func(c *v1.PersistentVolumeClaim) bool { return finalizer.Has(c.Finalizers, finalizer.CloneSource) })
	s.DeleteClaim("source")
	r.expectEvent(s.NewClaim("source", harness.DeleteClass), "CloneRunning", "PersistentVolumeClaim "+s.Namespace+"/clone")
	expectSample(t, r.provisionerMetrics(), `exeunt_deletion_waiting{blocker="CloneRunning"} 1`)
	r.expectEvents(map[string]int{"source": 1})

	forced := []byte(`{"metadata":{"finalizers":["example.com/backup"]}}`)
	_, err := s.Client.CoreV1().PersistentVolumeClaims(s.Namespace).
		Patch(s.Ctx, "source", types.MergePatchType, forced, metav1.PatchOptions{})
	s.Must(err, "remove the finalizer")
	s.Until("the source no longer waits for its clone", func() bool {
		return strings.Contains(r.provisionerMetrics(), `exeunt_deletion_waiting{blocker="CloneRunning"} 0`)
	})
	if claim, err := s.Client.CoreV1().PersistentVolumeClaims(s.Namespace).
		Get(s.Ctx, "clone", metav1.GetOptions{}); err != nil || claim.Status.Phase == v1.ClaimBound {
		t.Errorf("the source waited until the clone was bound: %v", err)
	}
}
