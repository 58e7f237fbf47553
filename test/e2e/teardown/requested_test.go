package teardown

import (
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/exeunt-io/exeunt/test/e2e/harness"
	"github.com/exeunt-io/exeunt/test/sandbox"
)

const requestedBy = "volume.kubernetes.io/storage-provisioner"

// eachPair runs a test with the stock pair and with ours.
func eachPair(t *testing.T, ours harness.Setup, run func(*testing.T, *rig)) {
	t.Helper()
	ours.Teardown = true
	theirs := ours
	theirs.UpstreamLoops, theirs.UpstreamSidecar = true, true
	for name, setup := range map[string]harness.Setup{"ours": ours, "stock": theirs} {
		t.Run(name, func(t *testing.T) { run(t, newRig(t, setup)) })
	}
}

func (r *rig) expectNothingStored() {
	r.T.Helper()
	handles, err := sandbox.StoredVolumes(r.Ctx, r.Driver.Socket)
	r.Must(err, "list volumes of the storage system")
	if len(handles) != 0 {
		r.T.Errorf("the storage system has %q", handles)
	}
}

// Rows 10 and 21: the disk exists, and nobody in the cluster knows it yet.
func TestDiskOfCallInFlightIsDeleted(t *testing.T) {
	eachPair(t, harness.Setup{DriverFlags: lateAnswer}, func(_ *testing.T, r *rig) { r.deletesDiskInFlight() })
}

// The same, where our provisioner leads and writes no journal.
func TestDiskOfCallWithoutJournalIsDeleted(t *testing.T) {
	newRig(t, harness.Setup{Teardown: true, DriverFlags: lateAnswer,
		ProvisionerFlags: "--leader-election --feature-gates=ProvisioningJournal=false"}).deletesDiskInFlight()
}

const lateAnswer = "--faults=../testdata/late-answer.yaml"

func (r *rig) deletesDiskInFlight() {
	r.T.Helper()
	r.waits.Request = time.Minute
	r.CreateClaim("late", harness.DeleteClass)
	r.AwaitClaim("late", "is requested", func(c *v1.PersistentVolumeClaim) bool { return c.Annotations[requestedBy] != "" })
	r.Until("the disk is stored", func() bool {
		handles, err := sandbox.StoredVolumes(r.Ctx, r.Driver.Socket)
		return err == nil && len(handles) == 1
	})
	r.mustComplete()
	r.expectNothingStored()
}

// Row 21: the driver said that it made nothing.
func TestRefusedClaimIsDeletedWithoutDisk(t *testing.T) {
	eachPair(t, harness.Setup{DriverFlags: "--faults=../testdata/refused-creation.yaml"}, func(t *testing.T, r *rig) {
		r.waits.Request = time.Minute
		claim := r.CreateClaim("refused", harness.DeleteClass)
		r.AwaitEvent(claim, "ProvisioningFailed")
		began := time.Now()
		r.mustComplete()
		if took := time.Since(began); took >= r.waits.Request {
			t.Errorf("the answer was awaited for %s", took)
		}
		if _, err := r.Client.CoreV1().PersistentVolumeClaims(r.Namespace).Get(r.Ctx, "refused",
			metav1.GetOptions{}); err == nil {
			t.Error("the claim is left")
		}
		r.expectNothingStored()
	})
}

// Row 21: our provisioner leads, and the journal of its term has no entry, so that no call is awaited.
func TestClaimWithoutJournalEntryIsNotAwaited(t *testing.T) {
	r := newRig(t, harness.Setup{Teardown: true, ProvisionerFlags: "--leader-election"})
	r.waits.Request = time.Minute
	r.CreateClass(func(c *storagev1.StorageClass) {
		c.Parameters = map[string]string{"csi.storage.k8s.io/provisioner-secret-name": "${pvc.uid}",
			"csi.storage.k8s.io/provisioner-secret-namespace": "ns"}
	})
	claim := r.CreateClaim("claim", r.Namespace)
	r.AwaitEvent(claim, "ProvisioningFailed")
	began := time.Now()
	r.mustComplete()
	if took := time.Since(began); took >= r.waits.Request {
		t.Errorf("a call was awaited for %s", took)
	}
	r.expectNothingStored()
}
