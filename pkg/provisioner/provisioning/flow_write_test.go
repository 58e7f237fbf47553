package provisioning

import (
	"strings"
	"testing"

	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	clienttesting "k8s.io/client-go/testing"

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

// A webhook denies the PersistentVolume with the code of an object that exists: nothing has the name.
func TestDeniedWriteOfVolumeIsRepeatedWithBackoff(t *testing.T) {
	f, writes, denied := newFlow(t), 0, true
	f.react("create", "persistentvolumes", func(clienttesting.Action) (bool, runtime.Object, error) {
		writes++
		return denied, nil, apierrors.NewAlreadyExists(v1.Resource("persistentvolumes"), "pvc-uid")
	})
	f.reconcile(true)
	if events := f.takeEvents(); writes != 1 || !strings.Contains(events, "ProvisioningFailed") ||
		!strings.Contains(events, "already exists") {
		t.Errorf("%d writes in one pass, events %q", writes, events)
	}
	f.expect(1, 0, 1, 1)
	denied = false
	f.reconcile(false)
	f.expect(1, 1, 1, 0)
}
