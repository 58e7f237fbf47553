package faults

import (
	"testing"

	"google.golang.org/grpc/codes"

	"github.com/exeunt-io/exeunt/pkg/csimock"
	"github.com/exeunt-io/exeunt/test/e2e/harness"
)

// The deletion of a namespace deletes both at once, and the process that requested the
// clone may have ended.
func TestCloneAndSourceDeletedTogetherDoNotDeadlock(t *testing.T) {
	r := newFaultTest(harness.Join(t, harness.Setup{}, harness.Within(rowTimeout)), callFault{fault: csimock.Fault{Code: codes.Unavailable, After: true}})
	r.CreateClaim("origin", r.className("plain"))
	origin := r.AwaitBound("origin")
	clone := r.CreateClaim("clone", r.className("later"), harness.CloneOf("origin"))
	begun := harness.Call{Method: "CreateVolume", Volume: "pvc-" + string(clone.UID)}
	r.inject(0, begun)
	r.createClass("later")
	r.await("answered", begun)
	r.Kill()
	r.DeleteClaim("clone")
	r.DeleteClaim("origin")
	r.Start()
	r.AwaitClaimGone("clone")
	r.AwaitClaimGone("origin")
	r.AwaitVolumeGone(origin.Name)
	r.awaitNoDifference()
	if left := r.driver.Volumes(); len(left) > 0 {
		t.Errorf("the driver has %v", left)
	}
}
