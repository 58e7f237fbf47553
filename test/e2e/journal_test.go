package e2e

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
	"github.com/exeunt-io/exeunt/internal/sandbox"
	"github.com/exeunt-io/exeunt/pkg/journal"
	store "github.com/exeunt-io/exeunt/pkg/provisioner/journal"
	"github.com/exeunt-io/exeunt/pkg/storage"
)

// expectJournal wants so many active entries and so many volumes in the driver.
func (m *maker) expectJournal(entries, volumes int) {
	m.t.Helper()
	m.expect("active entries", len(m.entries(journal.Active)), entries)
	m.expect("volumes in the driver", len(m.storage.handles), volumes)
}

// expectRecorded wants a PersistentVolume of the claim's name with the driver's handle.
func (m *maker) expectRecorded(claim *v1.PersistentVolumeClaim) {
	m.t.Helper()
	volume := m.volumeOf(claim)
	if volume == nil {
		m.t.Error("the volume is not recorded")
		return
	}
	m.expect("recorded for", volume.Spec.ClaimRef.UID, claim.UID)
	m.expect("handle", handle(volume), m.storage.handles[volume.Name])
}

// fails reconciles and wants an error.
func (m *maker) fails(claim *v1.PersistentVolumeClaim) error {
	m.t.Helper()
	err := m.reconcile(claim)
	if err == nil {
		m.t.Error("Reconcile succeeded, want an error")
	}
	return err
}

// vanished is the claim after it was deleted, in the caches too.
func (m *maker) vanished(claim *v1.PersistentVolumeClaim) {
	m.t.Helper()
	m.awaitClaimGone(claim.Name)
	m.must(m.factory.Core().V1().PersistentVolumeClaims().Informer().GetStore().Delete(claim), "empty cache")
}

// openFor creates a claim whose volume exists though the answer was lost.
func (m *maker) openFor() *v1.PersistentVolumeClaim {
	m.t.Helper()
	claim := m.see(m.requested())
	m.storage.next = []fault{{codes.DeadlineExceeded, true}}
	_ = m.fails(claim)
	return claim
}

func TestEntryLastsUntilTheVolumeIsRecorded(t *testing.T) {
	t.Parallel()
	m := enter(t, shared(t, setup{honor: true})).newMaker(storagev1.VolumeBindingImmediate)
	claim := m.see(m.requested())
	m.storage.next = []fault{{codes.Unavailable, false}}
	_ = m.fails(claim)
	m.expectJournal(1, 0)
	m.converge(claim)
	m.awaitBound(claim.Name)
	m.expectRecorded(claim)
	m.expectJournal(0, 1)
	m.expect("CreateVolume calls", len(m.storage.asked), 2)
}

func TestLostAnswerForDeletedClaimIsRecorded(t *testing.T) {
	t.Parallel()
	for name, restart := range map[string]bool{"same process": false, "next leader": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m := enter(t, shared(t, setup{honor: true})).newMaker(storagev1.VolumeBindingImmediate)
			claim := m.openFor()
			m.expectJournal(1, 1)
			m.deleteClaim(claim.Name)
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
	t.Parallel()
	m := enter(t, shared(t, setup{honor: true})).newMaker(storagev1.VolumeBindingImmediate)
	claim := m.open()
	m.storage.next = []fault{{codes.Unavailable, false}}
	_ = m.fails(claim)
	if message := m.event("ProvisioningUnresolved"); !strings.Contains(message, m.storage.name) {
		t.Errorf("the event does not name the driver %s: %s", m.storage.name, message)
	}
	m.awaitClaimGone(claim.Name)
	m.expectJournal(1, 1)
}

func TestGoneClassStopsNoCleanup(t *testing.T) {
	t.Parallel()
	m := enter(t, shared(t, setup{honor: true})).newMaker(storagev1.VolumeBindingImmediate)
	claim := m.open()
	m.vanished(claim)
	m.restart()
	classes := m.factory.Storage().V1().StorageClasses().Informer().GetStore()
	class, _, err := classes.GetByKey(m.class)
	m.must(err, "read class")
	m.must(classes.Delete(class), "empty cache")
	m.converge(claim)
	m.expectRecorded(claim)
	m.expectJournal(0, 1)
}

func TestVolumeIsDeniedTwiceBeforeItsEntryGoes(t *testing.T) {
	t.Parallel()
	m := enter(t, shared(t, setup{honor: true})).newMaker(storagev1.VolumeBindingImmediate, func(m *maker) { m.patience.Denial = time.Nanosecond })
	claim := m.see(m.requested())
	m.storage.next = []fault{{codes.DeadlineExceeded, false}}
	_ = m.fails(claim)
	m.deleteClaim(claim.Name)
	m.vanished(claim)
	for _, code := range []codes.Code{codes.Internal, codes.NotFound, codes.AlreadyExists, codes.Aborted} {
		m.storage.next = []fault{{code, false}, {code, false}}
		_, _ = m.reconcile(claim), m.reconcile(claim)
		m.expectJournal(1, 0)
	}
	m.storage.next = []fault{{codes.InvalidArgument, false}, {codes.InvalidArgument, false}}
	_ = m.reconcile(claim)
	m.expectJournal(1, 0)
	m.must(m.reconcile(claim), "reconcile")
	m.expectJournal(0, 0)
}

// The claim is bound by the pv-controller to a volume that was there already.
func TestVolumeOfAClaimBoundElsewhereIsRecorded(t *testing.T) {
	t.Parallel()
	m := enter(t, shared(t, setup{honor: true})).newMaker(storagev1.VolumeBindingImmediate)
	claim := m.openFor()
	m.createVolume("other", v1.PersistentVolumeReclaimRetain, func(v *v1.PersistentVolume) {
		v.Spec.StorageClassName, v.Spec.CSI.Driver = m.class, m.storage.name
	})
	m.awaitBound(claim.Name)
	m.restart()
	m.converge(m.see(claim))
	m.expectRecorded(claim)
	m.expectJournal(0, 1)
	m.awaitVolume("pvc-"+string(claim.UID), "is released", isReleased)
}

func TestRefusedClaimHasNoEntry(t *testing.T) {
	t.Parallel()
	m := enter(t, shared(t, setup{honor: true})).newMaker(storagev1.VolumeBindingImmediate)
	claim := m.see(m.requested(func(c *v1.PersistentVolumeClaim) {
		c.Spec.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{"a": "b"}}
	}))
	_ = m.fails(claim)
	m.expectJournal(0, 0)
	m.expect("CreateVolume calls", len(m.storage.asked), 0)
}

func TestClaimOfAGoneNodeIsRescheduledWithoutAnEntry(t *testing.T) {
	t.Parallel()
	m := enter(t, shared(t, setup{honor: true})).newMaker(storagev1.VolumeBindingWaitForFirstConsumer)
	m.live()
	m.createClaim("claim", m.class, func(c *v1.PersistentVolumeClaim) {
		c.Annotations = map[string]string{storage.AnnSelectedNode: "no-such-node"}
	})
	m.awaitClaim("claim", "waits for another node", func(c *v1.PersistentVolumeClaim) bool {
		return c.Annotations[storage.AnnStorageProvisioner] != "" && c.Annotations[storage.AnnSelectedNode] == ""
	})
	m.deleteClaim("claim")
	m.awaitClaimGone("claim")
	m.expectJournal(0, 0)
	m.expect("CreateVolume calls", len(m.storage.asked), 0)
}

// Another volume has the name, so that the created one serves nobody.
func TestUndeletableVolumeIsNamedAndKeepsItsEntry(t *testing.T) {
	t.Parallel()
	m := enter(t, shared(t, setup{honor: true})).newMaker(storagev1.VolumeBindingImmediate)
	claim := m.see(m.requested())
	m.createVolume("conflict", v1.PersistentVolumeReclaimRetain, func(v *v1.PersistentVolume) {
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
	asked := len(m.storage.asked)
	_ = m.reconcile(claim) // the name is still taken
	m.expectJournal(0, 0)
	m.expect("CreateVolume calls for a known handle", len(m.storage.asked)-asked, 0)
}

// Another process led meanwhile: upstream's sidecar may have served the claim.
func TestBrokenCustodyOfADeletedClaimCallsNothing(t *testing.T) {
	t.Parallel()
	m := enter(t, shared(t, setup{honor: true})).newMaker(storagev1.VolumeBindingImmediate)
	claim := m.open()
	m.vanished(claim)
	m.term++
	asked := len(m.storage.asked)
	for range 2 {
		m.restart()
		m.must(m.reconcile(claim), "reconcile")
		m.expectJournal(0, 1)
		m.expect("unresolved entries", len(m.entries(journal.Apart)), 1)
		m.expect("calls", len(m.storage.asked)-asked+len(m.storage.deleted), 0)
	}
}

func TestAliveClaimIsServedDespiteBrokenCustody(t *testing.T) {
	t.Parallel()
	m := enter(t, shared(t, setup{honor: true})).newMaker(storagev1.VolumeBindingImmediate)
	claim := m.openFor()
	m.term++
	m.restart()
	m.cache(claim)
	m.converge(claim)
	m.awaitBound(claim.Name)
	m.expectRecorded(claim)
	m.expectJournal(0, 1)
}

func TestSecondSpellingOfAHandleIsNotDeleted(t *testing.T) {
	t.Parallel()
	m := enter(t, shared(t, setup{idle: true})).newMaker(storagev1.VolumeBindingImmediate)
	claim := m.see(m.createClaim("claim", m.class, func(c *v1.PersistentVolumeClaim) {
		c.Annotations = map[string]string{storage.AnnStorageProvisioner: m.storage.name} // nobody binds here
	}))
	m.storage.next = []fault{{codes.DeadlineExceeded, true}}
	_ = m.fails(claim)
	name := "pvc-" + string(claim.UID)
	m.createVolume("recorded", v1.PersistentVolumeReclaimDelete, func(v *v1.PersistentVolume) {
		v.Name, v.Spec.CSI.Driver, v.Spec.CSI.VolumeHandle = name, m.storage.name, "/disks/one"
		v.Spec.ClaimRef = &v1.ObjectReference{Namespace: claim.Namespace, Name: claim.Name, UID: claim.UID}
	})
	m.storage.handle = "/disks//one"
	m.must(m.reconcile(claim), "reconcile with a stale cache of volumes")
	m.expect("deleted", len(m.storage.deleted), 0)
	m.expectJournal(0, 1)
	if message := m.event("ProvisioningCleanupFailed"); !strings.Contains(message, "/disks//one") {
		t.Errorf("the event does not name the handle: %s", message)
	}
	m.expect("recorded handle", handle(m.volumeOf(claim)), "/disks/one")
}

// The cache of volumes is stale; the claim is read live.
func TestBoundVolumeIsNotReportedAsVanished(t *testing.T) {
	t.Parallel()
	m := enter(t, shared(t, setup{honor: true})).newMaker(storagev1.VolumeBindingImmediate)
	claim := m.openFor()
	m.createVolume("recorded", v1.PersistentVolumeReclaimDelete, func(v *v1.PersistentVolume) {
		v.Name, v.Spec.CSI.Driver, v.Spec.StorageClassName = "pvc-"+string(claim.UID), m.storage.name, m.class
		v.Spec.ClaimRef = &v1.ObjectReference{Namespace: claim.Namespace, Name: claim.Name, UID: claim.UID}
	})
	m.awaitBound(claim.Name)
	m.must(m.reconcile(claim), "reconcile")
	m.expectJournal(0, 1)
	for range len(m.events.Events) {
		if event := <-m.events.Events; strings.Contains(event, "VolumeVanished") {
			t.Errorf("the event is wrong: %s", event)
		}
	}
}

func TestForeignHolderStopsNewCalls(t *testing.T) {
	t.Parallel()
	m := enter(t, shared(t, setup{honor: true})).newMaker(storagev1.VolumeBindingImmediate)
	m.openFor()
	leases := m.client.CoordinationV1().Leases(m.namespace)
	lease, err := leases.Get(m.ctx, m.store.Journal.LeaseName(journal.Active, 0), metav1.GetOptions{})
	m.must(err, "read lease")
	lease.Spec.HolderIdentity = ptr.To("other_exeunt")
	_, err = leases.Update(m.ctx, lease, metav1.UpdateOptions{})
	m.must(err, "take the journal over")
	asked := len(m.storage.asked)
	next := m.createClaim("next", m.class)
	m.awaitClaim("next", "is to be served", func(c *v1.PersistentVolumeClaim) bool { return c.Annotations[storage.AnnStorageProvisioner] != "" })
	next = m.see(next)
	for range 2 {
		if err := m.fails(next); !errors.Is(err, store.ErrLost) {
			t.Errorf("Reconcile = %v, want ErrLost", err)
		}
	}
	m.expect("CreateVolume calls", len(m.storage.asked)-asked, 0)
	m.expect("entries of the other process", len(m.entries(journal.Active)), 1)
}

// claimWrites counts the writes of a program to a claim of the test.
func (s *scene) claimWrites(account, claim string) int {
	s.t.Helper()
	events, err := sandbox.ReadAudit(s.plane.AuditLog)
	s.must(err, "read audit log")
	count := 0
	for _, event := range events {
		if event.User == "system:serviceaccount:"+deploy.Namespace+":"+account && event.Writes() &&
			event.Resource == "persistentvolumeclaims" && event.Namespace == s.namespace && event.Name == claim {
			count++
		}
	}
	return count
}

func TestProvisionerWritesToNoClaim(t *testing.T) {
	t.Parallel()
	for name, how := range map[string]setup{"our loops": {honor: true}, "upstream's loops": {honor: true, upstreamLoops: true}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := enter(t, shared(t, how))
			s.createClaim("claim", deleteClass)
			s.awaitBound("claim")
			claim := s.awaitClaim("claim", "is bound", func(c *v1.PersistentVolumeClaim) bool { return c.Status.Phase == v1.ClaimBound })
			if want := []string{"kubernetes.io/pvc-protection"}; !slices.Equal(claim.Finalizers, want) {
				t.Errorf("the claim has the finalizers %v, want %v", claim.Finalizers, want)
			}
			if writes := s.claimWrites("provisioner", "claim"); writes != 0 {
				t.Errorf("the provisioner wrote to the claim %d times", writes)
			}
			if writes := s.claimWrites("pv-controller", "claim"); writes > 4 {
				t.Errorf("the pv-controller wrote to the claim %d times, want at most 4: phase Pending, request, binding, phase Bound", writes)
			}
		})
	}
}
