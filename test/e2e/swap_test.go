package e2e

import (
	"os"
	"testing"

	"github.com/exeunt-io/exeunt/deploy"
	"github.com/exeunt-io/exeunt/internal/sandbox"
)

// TestTheRightsOfUpstreamsSidecarAreEnough swaps the program and nothing else: it
// keeps the service account, whose rights are those of upstream's manifest.
func TestTheRightsOfUpstreamsSidecarAreEnough(t *testing.T) {
	t.Parallel()
	s := enter(t, shared(t, setup{honor: true}))
	s.must(s.grantUpstream(s.ctx), "grant upstream's rights")
	kubeconfig, err := s.plane.Kubeconfig(s.ctx, sandbox.UpstreamSidecarUser)
	s.must(err, "get a kubeconfig of upstream's sidecar")
	s = s.besideAs(kubeconfig, s.namespace+".swapped", "", "--leader-election --leader-election-namespace="+deploy.Namespace)
	s.createClass()
	t.Cleanup(func() {
		if t.Failed() {
			text, _ := os.ReadFile(s.provisioner.LogFile())
			t.Log(string(text))
		}
	})
	for _, o := range []order{claimOnly, volumeThenClaim} {
		s.createClaim("claim", s.namespace)
		volume := s.awaitBound("claim")
		if o == volumeThenClaim {
			s.deleteVolume(volume.Name)
		}
		s.deleteClaim("claim")
		s.awaitVolumeGone(volume.Name)
		s.awaitClaimGone("claim")
		s.expectReclaimed(volume)
	}
}
