package programs

import (
	"testing"
	"time"

	"github.com/exeunt-io/exeunt/test/e2e/harness"
	"github.com/exeunt-io/exeunt/test/faultproxy"
	"github.com/exeunt-io/exeunt/test/sandbox"
)

// TestProgramsReclaimBehindProxies runs both programs behind proxies of their own, with
// their own rights, and reclaims a volume despite faults.
func TestProgramsReclaimBehindProxies(t *testing.T) {
	s := harness.Own(t, harness.Setup{NoPrograms: true}, harness.Within(3*harness.Timeout))
	rates := faultproxy.Rates{Faults: faultproxy.Uniform(0.01)}
	delay := 500 * time.Millisecond
	loops, loopsFile := s.NewFaultProxy(sandbox.PVControllerAccount,
		faultproxy.Config{Program: "pv-controller", Rates: rates, MaxDelay: delay})
	sidecar, sidecarFile := s.NewFaultProxy(sandbox.ProvisionerAccount,
		faultproxy.Config{Program: "provisioner", Rates: rates, MaxDelay: delay})
	controller, err := s.Plane.StartPVController(s.Ctx, sandbox.Controller{HonorReclaimPolicy: true,
		Kubeconfig: loopsFile})
	s.Must(err, "start pv-controller")
	s.Add(controller)
	provisioner, err := s.Plane.StartProvisioner(s.Ctx, s.Driver,
		sandbox.Controller{HonorReclaimPolicy: true, Kubeconfig: sidecarFile})
	s.Must(err, "start provisioner")
	s.Add(provisioner)

	for _, name := range []string{"a", "b", "c", "d"} {
		s.CreateClaim(name, harness.DeleteClass)
	}
	for _, name := range []string{"a", "b", "c", "d"} {
		volume := s.AwaitBound(name).Name
		s.DeleteVolume(volume)
		s.DeleteClaim(name)
		s.AwaitClaimGone(name)
		s.AwaitVolumeGone(volume)
	}
	t.Logf("faults of pv-controller %v, of provisioner %v", loops.Stats(), sidecar.Stats())
	if loops.Requests() == 0 || sidecar.Requests() == 0 {
		t.Errorf("%d requests of pv-controller, %d of provisioner", loops.Requests(), sidecar.Requests())
	}
	authors := map[string]bool{}
	for _, request := range s.Requests() {
		authors[request.User] = true
	}
	if !authors[sandbox.PVControllerAccount.Name()] || !authors[sandbox.ProvisionerAccount.Name()] {
		t.Errorf("requests of %v", authors)
	}
}
