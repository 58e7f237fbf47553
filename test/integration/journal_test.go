package integration

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	v1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/exeunt-io/exeunt/deploy"
	"github.com/exeunt-io/exeunt/pkg/journal"
	"github.com/exeunt-io/exeunt/pkg/provisioner/journalstore"
	"github.com/exeunt-io/exeunt/pkg/storage"
	"github.com/exeunt-io/exeunt/test/e2e/harness"
	"github.com/exeunt-io/exeunt/test/sandbox"
)

// expectJournal checks the number of active entries and of volumes in the driver.
func (m *fixture) expectJournal(entries, volumes int) {
	m.T.Helper()
	m.expect("active entries", len(m.entries(journal.KindActive)), entries)
	m.expect("volumes in the driver", len(m.storage.handles), volumes)
}

// expectRecorded checks that a PersistentVolume of the claim has the driver's handle.
func (m *fixture) expectRecorded(claim *v1.PersistentVolumeClaim) {
	m.T.Helper()
	volume := m.volumeOf(claim)
	if volume == nil {
		m.T.Error("the volume is not recorded")
		return
	}
	m.expect("recorded for", volume.Spec.ClaimRef.UID, claim.UID)
	m.expect("handle", harness.Handle(volume), m.storage.handles[volume.Name])
}

// fails checks that reconcile returns an error.
func (m *fixture) fails(claim *v1.PersistentVolumeClaim) error {
	m.T.Helper()
	err := m.reconcile(claim)
	if err == nil {
		m.T.Error("Reconcile succeeded, want an error")
	}
	return err
}

// vanished returns the claim after its deletion, which the caches have seen.
func (m *fixture) vanished(claim *v1.PersistentVolumeClaim) {
	m.T.Helper()
	m.AwaitClaimGone(claim.Name)
	m.Must(m.factory.Core().V1().PersistentVolumeClaims().Informer().GetStore().Delete(claim), "empty cache")
}

// openFor creates a claim whose volume exists although the answer was lost.
func (m *fixture) openFor() *v1.PersistentVolumeClaim {
	m.T.Helper()
	claim := m.refresh(m.createRequested())
	m.storage.next = []fault{{codes.DeadlineExceeded, true}}
	_ = m.fails(claim)
	return claim
}

func TestEntryLastsUntilVolumeIsRecorded(t *testing.T) {
	m := newFixture(harness.Join(t, harness.Setup{}), storagev1.VolumeBindingImmediate)
	claim := m.refresh(m.createRequested())
	m.storage.next = []fault{{codes.Unavailable, false}}
	_ = m.fails(claim)
	m.expectJournal(1, 0)
	m.converge(claim)
	m.AwaitBound(claim.Name)
	m.expectRecorded(claim)
	m.expectJournal(0, 1)
	m.expect("CreateVolume calls", len(m.storage.requested), 2)
}

func TestLostAnswerForDeletedClaimIsRecorded(t *testing.T) {
	harness.Parallel(t, harness.Setup{})
	for name, restart := range map[string]bool{"same process": false, "next leader": true} {
		t.Run(name, func(t *testing.T) {
			m := newFixture(harness.Join(t, harness.Setup{}), storagev1.VolumeBindingImmediate)
			claim := m.openFor()
			m.expectJournal(1, 1)
			m.DeleteClaim(claim.Name)
			m.vanished(claim)
			if restart {
				m.restart()
			}
			m.converge(claim)
			m.expectRecorded(claim)
			m.expectJournal(0, 1)
			m.expect("DeleteVolume calls", len(m.storage.deleted), 0)
		})
	}
}

func TestSilentDriverOfDeletedClaimIsNamed(t *testing.T) {
	m := newFixture(harness.Join(t, harness.Setup{}), storagev1.VolumeBindingImmediate)
	claim := m.open()
	m.storage.next = []fault{{codes.Unavailable, false}}
	_ = m.fails(claim)
	if message := m.event("ProvisioningUnresolved"); !strings.Contains(message, m.storage.name) {
		t.Errorf("the event does not name the driver %s: %s", m.storage.name, message)
	}
	m.AwaitClaimGone(claim.Name)
	m.expectJournal(1, 1)
}

func TestGoneClassStopsNoCleanup(t *testing.T) {
	m := newFixture(harness.Join(t, harness.Setup{}), storagev1.VolumeBindingImmediate)
	claim := m.open()
	m.vanished(claim)
	m.restart()
	classes := m.factory.Storage().V1().StorageClasses().Informer().GetStore()
	class, _, err := classes.GetByKey(m.class)
	m.Must(err, "read class")
	m.Must(classes.Delete(class), "empty cache")
	m.converge(claim)
	m.expectRecorded(claim)
	m.expectJournal(0, 1)
}

func TestEntryGoesAfterTwoDenials(t *testing.T) {
	m := newFixture(harness.Join(t, harness.Setup{}), storagev1.VolumeBindingImmediate,
		func(m *fixture) { m.timeouts.RepeatedFailure = time.Nanosecond })
	claim := m.refresh(m.createRequested())
	m.storage.next = []fault{{codes.DeadlineExceeded, false}}
	_ = m.fails(claim)
	m.DeleteClaim(claim.Name)
	m.vanished(claim)
	for _, code := range []codes.Code{codes.Internal, codes.NotFound, codes.AlreadyExists, codes.Aborted} {
		m.storage.next = []fault{{code, false}, {code, false}}
		_, _ = m.reconcile(claim), m.reconcile(claim)
		m.expectJournal(1, 0)
	}
	m.storage.next = []fault{{codes.InvalidArgument, false}, {codes.InvalidArgument, false}}
	_ = m.reconcile(claim)
	m.expectJournal(1, 0)
	m.Must(m.reconcile(claim), "reconcile")
	m.expectJournal(0, 0)
}

// The pv-controller binds the claim to an existing volume.
func TestVolumeOfClaimBoundElsewhereIsRecorded(t *testing.T) {
	m := newFixture(harness.Join(t, harness.Setup{}), storagev1.VolumeBindingImmediate)
	claim := m.openFor()
	m.CreateVolume("other", v1.PersistentVolumeReclaimRetain, func(v *v1.PersistentVolume) {
		v.Spec.StorageClassName, v.Spec.CSI.Driver = m.class, m.storage.name
	})
	m.AwaitBound(claim.Name)
	m.restart()
	m.converge(m.refresh(claim))
	m.expectRecorded(claim)
	m.expectJournal(0, 1)
	m.AwaitVolume("pvc-"+string(claim.UID), "is released", harness.IsReleased)
}

func TestRefusedClaimHasNoEntry(t *testing.T) {
	m := newFixture(harness.Join(t, harness.Setup{}), storagev1.VolumeBindingImmediate)
	claim := m.refresh(m.createRequested(func(c *v1.PersistentVolumeClaim) {
		c.Spec.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{"a": "b"}}
	}))
	_ = m.fails(claim)
	m.expectJournal(0, 0)
	m.expect("CreateVolume calls", len(m.storage.requested), 0)
}

func TestClaimOfDeletedNodeIsRescheduledWithoutEntry(t *testing.T) {
	m := newFixture(harness.Join(t, harness.Setup{}), storagev1.VolumeBindingWaitForFirstConsumer)
	m.runLive()
	m.CreateClaim("claim", m.class, func(c *v1.PersistentVolumeClaim) {
		c.Annotations = map[string]string{storage.AnnSelectedNode: "no-such-node"}
	})
	m.AwaitClaim("claim", "waits for another node", func(c *v1.PersistentVolumeClaim) bool {
		return c.Annotations[storage.AnnStorageProvisioner] != "" && c.Annotations[storage.AnnSelectedNode] == ""
	})
	m.DeleteClaim("claim")
	m.AwaitClaimGone("claim")
	m.expectJournal(0, 0)
	m.expect("CreateVolume calls", len(m.storage.requested), 0)
}

// Another PersistentVolume has the name, so the created volume is useless.
// Only the process that saw the creation of the claim knows that the volume is new, and deletes it. A later process
// leaves the volume alone, and the entry names it.
func TestUndeletableVolumeIsNamedAndKeepsItsEntry(t *testing.T) {
	m := newFixture(harness.Join(t, harness.Setup{}), storagev1.VolumeBindingImmediate)
	claim := m.refresh(m.createRequested())
	m.CreateVolume("conflict", v1.PersistentVolumeReclaimRetain, func(v *v1.PersistentVolume) {
		v.Name, v.Spec.CSI.Driver, v.Spec.StorageClassName = "pvc-"+string(claim.UID), m.storage.name, "none"
	})
	m.storage.undeletable = status.Error(codes.Internal, "cannot")
	_ = m.fails(claim)
	if message := m.event("ProvisioningCleanupFailed"); !strings.Contains(message, "pvc-"+string(claim.UID)) {
		t.Errorf("the event does not name the volume: %s", message)
	}
	m.expectJournal(1, 1)
	m.restart()
	m.cache(claim)
	m.storage.undeletable = nil
	deleted := len(m.storage.deleted)
	_ = m.reconcile(claim) // the other PersistentVolume still exists
	m.expectJournal(1, 1)
	m.expect("DeleteVolume calls for a volume that may be older", len(m.storage.deleted)-deleted, 0)
}

// Another process has led in between: upstream's sidecar may have served the claim.
func TestBrokenCustodyOfDeletedClaimCallsNothing(t *testing.T) {
	m := newFixture(harness.Join(t, harness.Setup{}), storagev1.VolumeBindingImmediate)
	claim := m.open()
	m.vanished(claim)
	m.term++
	before := len(m.storage.requested)
	for range 2 {
		m.restart()
		m.Must(m.reconcile(claim), "reconcile")
		m.expectJournal(0, 1)
		m.expect("unresolved entries", len(m.entries(journal.KindUnresolved)), 1)
		m.expect("calls", len(m.storage.requested)-before+len(m.storage.deleted), 0)
	}
}

func TestLiveClaimIsServedDespiteBrokenCustody(t *testing.T) {
	m := newFixture(harness.Join(t, harness.Setup{}), storagev1.VolumeBindingImmediate)
	claim := m.openFor()
	m.term++
	m.restart()
	m.cache(claim)
	m.converge(claim)
	m.AwaitBound(claim.Name)
	m.expectRecorded(claim)
	m.expectJournal(0, 1)
}

func TestOtherSpellingOfRecordedHandleIsNotDeleted(t *testing.T) {
	m := newFixture(harness.Join(t, harness.Setup{NoPrograms: true}), storagev1.VolumeBindingImmediate)
	claim := m.refresh(m.CreateClaim("claim", m.class, func(c *v1.PersistentVolumeClaim) {
		c.Annotations = map[string]string{storage.AnnStorageProvisioner: m.storage.name} // as the pv-controller does, which does not run here
	}))
	m.storage.next = []fault{{codes.DeadlineExceeded, true}}
	_ = m.fails(claim)
	name := "pvc-" + string(claim.UID)
	m.CreateVolume("recorded", v1.PersistentVolumeReclaimDelete, func(v *v1.PersistentVolume) {
		v.Name, v.Spec.CSI.Driver, v.Spec.CSI.VolumeHandle = name, m.storage.name, "/disks/one"
		v.Spec.ClaimRef = &v1.ObjectReference{Namespace: claim.Namespace, Name: claim.Name, UID: claim.UID}
	})
	m.storage.handle = "/disks//one"
	m.Must(m.reconcile(claim), "reconcile with a stale cache of volumes")
	m.expect("deleted", len(m.storage.deleted), 0)
	m.expectJournal(0, 1)
	if message := m.event("ProvisioningCleanupFailed"); !strings.Contains(message, "/disks//one") {
		t.Errorf("the event does not name the handle: %s", message)
	}
	m.expect("recorded handle", harness.Handle(m.volumeOf(claim)), "/disks/one")
}

// The volume cache is stale; the controller reads the claim live.
func TestBoundVolumeIsNotReportedAsVanished(t *testing.T) {
	m := newFixture(harness.Join(t, harness.Setup{}), storagev1.VolumeBindingImmediate)
	claim := m.openFor()
	m.CreateVolume("recorded", v1.PersistentVolumeReclaimDelete, func(v *v1.PersistentVolume) {
		v.Name, v.Spec.CSI.Driver, v.Spec.StorageClassName = "pvc-"+string(claim.UID), m.storage.name, m.class
		v.Spec.ClaimRef = &v1.ObjectReference{Namespace: claim.Namespace, Name: claim.Name, UID: claim.UID}
	})
	m.AwaitBound(claim.Name)
	m.Must(m.reconcile(claim), "reconcile")
	m.expectJournal(0, 1)
	for range len(m.events.Events) {
		if event := <-m.events.Events; strings.Contains(event, "VolumeVanished") {
			t.Errorf("unexpected event: %s", event)
		}
	}
}

func TestForeignHolderStopsNewCalls(t *testing.T) {
	m := newFixture(harness.Join(t, harness.Setup{}), storagev1.VolumeBindingImmediate)
	m.openFor()
	leases := m.Client.CoordinationV1().Leases(m.Namespace)
	lease, err := leases.Get(m.Ctx, m.store.Journal.LeaseName(journal.KindActive, 0), metav1.GetOptions{})
	m.Must(err, "read lease")
	lease.Spec.HolderIdentity = ptr.To("other_exeunt")
	_, err = leases.Update(m.Ctx, lease, metav1.UpdateOptions{})
	m.Must(err, "take the journal over")
	before := len(m.storage.requested)
	next := m.CreateClaim("next", m.class)
	m.AwaitClaim("next", "has a provisioner annotation",
		func(c *v1.PersistentVolumeClaim) bool { return c.Annotations[storage.AnnStorageProvisioner] != "" })
	next = m.refresh(next)
	for range 2 {
		if err := m.fails(next); !errors.Is(err, journalstore.ErrLost) {
			t.Errorf("Reconcile = %v, want ErrLost", err)
		}
	}
	m.expect("CreateVolume calls", len(m.storage.requested)-before, 0)
	m.expect("entries of the other process", len(m.entries(journal.KindActive)), 1)
}

// claimWrites counts the writes of a program to a claim of the test.
func claimWrites(s *harness.Session, account, claim string) int {
	s.T.Helper()
	events, err := sandbox.ReadAudit(s.Plane.AuditLog)
	s.Must(err, "read audit log")
	count := 0
	for _, event := range events {
		if event.User == "system:serviceaccount:"+deploy.Namespace+":"+account && event.Writes() &&
			event.Resource == "persistentvolumeclaims" && event.Namespace == s.Namespace && event.Name == claim {
			count++
		}
	}
	return count
}

func TestProvisionerWritesToNoClaim(t *testing.T) {
	ours, theirs := harness.Setup{}, harness.Setup{UpstreamLoops: true}
	harness.Parallel(t, ours, theirs)
	for name, how := range map[string]harness.Setup{"our loops": ours, "upstream's loops": theirs} {
		t.Run(name, func(t *testing.T) {
			s := harness.Join(t, how)
			s.CreateClaim("claim", harness.DeleteClass)
			s.AwaitBound("claim")
			claim := s.AwaitClaim("claim", "is bound",
				func(c *v1.PersistentVolumeClaim) bool { return c.Status.Phase == v1.ClaimBound })
			if want := []string{"kubernetes.io/pvc-protection"}; !slices.Equal(claim.Finalizers, want) {
				t.Errorf("the claim has the finalizers %v, want %v", claim.Finalizers, want)
			}
			if writes := claimWrites(s, "provisioner", "claim"); writes != 0 {
				t.Errorf("the provisioner wrote to the claim %d times", writes)
			}
			if writes := claimWrites(s, "pv-controller", "claim"); writes > 4 {
				t.Errorf("the pv-controller wrote to the claim %d times, want at most 4: phase Pending, request, binding, phase Bound", writes)
			}
		})
	}
}
