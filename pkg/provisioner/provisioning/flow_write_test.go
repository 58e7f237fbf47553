package provisioning

import (
	"testing"

	v1 "k8s.io/api/core/v1"

	"github.com/exeunt-io/exeunt/pkg/storage"
)

// The API server may execute the write of a PersistentVolume after its answer is lost: the claim
// would be bound to a PersistentVolume whose disk is deleted.
func TestDiscardAwaitsOpenWriteOfVolume(t *testing.T) {
	f := newFlow(t)
	f.Timeouts.OpenWrite = DefaultTimeouts.OpenWrite
	f.failNext("create", "persistentvolumes", false)
	f.reconcile(true)
	f.editClaim(func(claim *v1.PersistentVolumeClaim) { claim.Annotations[storage.AnnSelectedNode] = "gone" })
	f.reconcile(false)
	f.expect(1, 0, anyNumber, 1)
	f.memory.update(subject{"uid", flowClaim}, "pvc-uid",
		func(r *claimRecord) { r.object.writtenAt = r.object.writtenAt.Add(-DefaultTimeouts.OpenWrite) })
	f.reconcile(false)
	f.expect(0, 0, anyNumber, 0)
}
