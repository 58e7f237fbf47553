package audit

import (
	"os"
	"strings"
	"testing"

	"github.com/exeunt-io/exeunt/internal/sandbox"
	"github.com/exeunt-io/exeunt/test/e2e/harness"
)

// metric is the line of the metric without its value.
const metric = `exeunt_orphaned_volumes{driver_name="csimock.exeunt.io"} `

// TestLeaderCountsOrphans runs two provisioners, first without and then with the rights for
// audits: only the leader has the metric.
func TestLeaderCountsOrphans(t *testing.T) {
	s := harness.Own(t, harness.Setup{NoProvisioner: true, DriverFlags: "--volumes=2"})
	s.CreateClaim("claim", harness.DeleteClass)
	args := []string{"--leader-election", "--audit-interval=10m"}
	first := s.StartProvisioner(s.Driver, "unauthorized", nil, args...)
	s.AwaitLog(first, "no right to list pods in cluster of the provisioner")
	if body, _ := s.HTTPGet(first, "/metrics"); strings.Contains(body, metric) {
		t.Error("the metric counts orphans of an incomplete audit")
	}
	s.StopProvisioner(first)

	rights, err := os.ReadFile(harness.InCheckout("deploy", "provisioner", "audit", "rbac.yaml"))
	s.Must(err, "read manifest")
	s.Must(sandbox.ApplyYAML(s.Ctx, s.Plane.RESTConfig(), rights), "grant the rights for audits")
	s.AwaitBound("claim")
	leader := s.StartProvisioner(s.Driver, "leader", nil, args...)
	s.AwaitLog(leader, "Audited volumes")
	standby := s.StartProvisioner(s.Driver, "standby", nil, args...)
	if body, _ := s.HTTPGet(leader, "/metrics"); !strings.Contains(body, metric+"2\n") {
		t.Errorf("the leader does not count two orphans:\n%s", body)
	}
	s.AwaitLog(standby, "Filling caches")
	if body, _ := s.HTTPGet(standby, "/metrics"); strings.Contains(body, metric) {
		t.Error("the standby counts orphans")
	}
	expectNoDeletion(s)
}
