package provisioning

import (
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"

	"github.com/exeunt-io/exeunt/pkg/storage"
)

// The API server counts its minute from the arrival of the request, which may come after the client
// has given up, and etcd may apply a write some seconds after its request has ended. The journal
// allows 10 s for both (requestLimit).
func TestDiscardAwaitsOpenWriteForMoreThanTheRequestTimeout(t *testing.T) {
	f := newFlow(t)
	f.Timeouts.OpenWrite = DefaultTimeouts.OpenWrite
	f.failNext("create", "persistentvolumes", false)
	f.reconcile(true)
	f.editClaim(func(claim *v1.PersistentVolumeClaim) { claim.Annotations[storage.AnnSelectedNode] = "gone" })
	f.memory.update(subject{"uid", flowClaim}, "pvc-uid",
		func(r *claimRecord) { r.object.writtenAt = r.object.writtenAt.Add(-time.Minute - 5*time.Second) })
	f.reconcile(false)
	f.expect(1, 0, anyNumber, 1)
}
