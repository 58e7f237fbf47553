package provisioning

import (
	"testing"

	"google.golang.org/grpc/codes"
	v1 "k8s.io/api/core/v1"

	"github.com/exeunt-io/exeunt/pkg/csimock"
	"github.com/exeunt-io/exeunt/pkg/journal"
	"github.com/exeunt-io/exeunt/pkg/storage"
)

func TestHandleOfUnresolvedDiscardIsReleased(t *testing.T) {
	f := newFlow(t)
	f.failNext("create", "persistentvolumes", false)
	f.reconcile(true)
	f.editClaim(func(claim *v1.PersistentVolumeClaim) { claim.Annotations[storage.AnnSelectedNode] = "another" })
	f.must(f.mock.Inject(csimock.Fault{Method: "DeleteVolume", Code: codes.Internal, Times: 1}))
	f.reconcile(true)
	handle := f.mock.Volumes()[0].ID
	f.deleteClaim()
	f.terms += 2 // another program has led
	f.restart()
	f.reconcileDeleted(false)
	if unresolved := f.entries(journal.KindUnresolved); len(unresolved) != 1 || unresolved[0].State != journal.Discarding {
		t.Fatalf("unresolved entries: %+v", unresolved)
	}
	if !f.memory.reserve(handle, "other") {
		t.Error("the handle is still reserved")
	}
}
