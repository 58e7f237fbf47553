package library

import (
	"fmt"
	"os"
	"sync"
	"testing"

	"github.com/exeunt-io/exeunt/test/e2e/harness"
	"github.com/exeunt-io/exeunt/test/sandbox"
)

// The service account of the provisioner, whose rights are in the example's manifests.
const account = "hostpath-provisioner"

func TestMain(m *testing.M) {
	if text := os.Getenv(settingsVariable); text != "" {
		if err := provision(text); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	code := m.Run()
	if err := results.write(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	os.Exit(code)
}

// identities are the kubeconfigs of the service account, by control plane.
var identities = struct {
	sync.Mutex
	byPlane map[*sandbox.ControlPlane]string
}{byPlane: map[*sandbox.ControlPlane]string{}}

// identityIn applies the example's manifests, and returns the kubeconfig of its service
// account.
func identityIn(s *harness.Session) string {
	s.T.Helper()
	identities.Lock()
	defer identities.Unlock()
	if known := identities.byPlane[s.Plane]; known != "" {
		return known
	}
	manifests := os.DirFS(harness.InCheckout("examples", "hostpath-provisioner", "deploy"))
	s.Must(sandbox.Apply(s.Ctx, s.Plane.RESTConfig(), manifests), "apply the example's manifests")
	kubeconfig, err := s.Plane.Kubeconfig(s.Ctx, sandbox.ServiceAccount(account, account))
	s.Must(err, "write kubeconfig")
	identities.byPlane[s.Plane] = kubeconfig
	return kubeconfig
}
