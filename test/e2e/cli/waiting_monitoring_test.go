package cli

import (
	"os"
	"strings"
	"testing"

	"github.com/exeunt-io/exeunt/test/e2e/harness"
	"github.com/exeunt-io/exeunt/test/sandbox"
)

// The alerts and the dashboard are worth nothing if a metric has another name.
func TestAlertsAndDashboardUseServedMetrics(t *testing.T) {
	t.Parallel()
	r := newAuditedRig(t)
	volume := r.bound("claim")
	r.DeleteVolume(volume.Name)
	r.DeleteClaim("claim")
	r.AwaitClaimGone("claim")
	r.Until("the first audit has ended",
		func() bool { return strings.Contains(r.provisionerMetrics(), "\nexeunt_orphaned_volumes{") })
	served := "\n" + r.controllerMetrics() + "\n" + r.provisionerMetrics()
	for _, query := range harness.MonitoringQueries(t) {
		// test/e2e/garbage, nodes and teardown have tests for the other programs
		if !query.OfGarbageCollector() && !query.OfNodeTerminator() && !query.OfAliveController() {
			query.ExpectServed(t, served)
		}
	}
	for _, name := range []string{
		`exeunt_journal_entries{driver_name="` + r.Driver.DriverName + `",state="open"}`,
		`exeunt_journal_entries{driver_name="` + r.Driver.DriverName + `",state="unresolved"}`,
		`exeunt_deletion_waiting{blocker="SecretMissing"}`, `exeunt_deletion_waiting_oldest_seconds{blocker="ClaimExists"}`,
	} {
		if !strings.Contains(served, "\n"+name+" ") {
			t.Errorf("neither program serves %s", name)
		}
	}
	for program, text := range map[string]string{"pv-controller": r.controllerMetrics(),
		"provisioner": r.provisionerMetrics()} {
		for _, name := range []string{"exeunt_unprotected_volumes", "exeunt_deletion_waiting{",
			"exeunt_deletion_waiting_oldest_seconds{"} {
			if !strings.Contains(text, "\n"+name) {
				t.Errorf("the %s does not serve %s", program, name)
			}
		}
	}
}

// newAuditedRig starts programs that elect leaders, and audits.
func newAuditedRig(t *testing.T) *rig {
	t.Helper()
	port := harness.FreePort(t)
	s := harness.Own(t, harness.Setup{NoProvisioner: true, ControllerFlags: servingAt(port) + " --leader-elect=true"},
		harness.Within(2*harness.Timeout))
	rights, err := os.ReadFile(harness.InCheckout("deploy", "provisioner", "audit", "rbac.yaml"))
	s.Must(err, "read manifest")
	s.Must(sandbox.ApplyYAML(s.Ctx, s.Plane.RESTConfig(), rights), "grant the rights for audits")
	s.Provisioner = s.StartProvisioner(s.Driver, "provisioner", nil, "--leader-election", "--audit-interval=10m")
	return &rig{s, port}
}

// The gate is off, so that no volume gets its finalizer.
func TestUnprotectedVolumesAreCounted(t *testing.T) {
	t.Parallel()
	s := harness.Own(t, harness.Setup{ProvisionerGateOff: true})
	s.CreateClaim("claim", harness.DeleteClass)
	volume := s.AwaitBound("claim")
	counted := func(want string) func() bool {
		return func() bool {
			text, _ := s.HTTPGet(s.Provisioner, "/metrics")
			return strings.Contains(text, "\nexeunt_unprotected_volumes "+want+"\n")
		}
	}
	s.Until("the bound volume counts", counted("1"))
	s.SetPolicy(volume.Name, "Retain")
	s.Until("the retained volume does not count", counted("0"))
	s.SetPolicy(volume.Name, "Delete")
	s.Until("the volume counts again", counted("1"))
	s.DeleteClaim("claim")
	s.AwaitVolumeGone(volume.Name)
	s.Until("the deleted volume does not count", counted("0"))
}
