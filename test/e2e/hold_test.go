package e2e

import (
	"strings"
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	v1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/exeunt-io/exeunt/deploy"
	"github.com/exeunt-io/exeunt/internal/sandbox"
	"github.com/exeunt-io/exeunt/pkg/binding"
	"github.com/exeunt-io/exeunt/pkg/finalizer"
)

func TestAClaimIsHeldUntilItsVolumeIsRecordedAndBound(t *testing.T) {
	t.Parallel()
	m := enter(t, shared(t, setup{honor: true})).newMaker(storagev1.VolumeBindingImmediate)
	claim := m.see(m.requested())
	m.storage.next = []fault{{codes.Unavailable, false}}
	if err := m.reconcile(claim); err == nil {
		t.Error("an unavailable driver is no error")
	}
	if claim = m.see(claim); !held(claim) {
		t.Errorf("the claim is not held: %v", claim.Finalizers)
	}
	m.converge(claim)
	volume := m.awaitBound(claim.Name)
	m.expect("mark", volume.Annotations[binding.HoldsClaims], string(claim.UID))
	if claim = m.see(claim); held(claim) {
		t.Errorf("a bound claim is held: %v", claim.Finalizers)
	}
	m.expect("asked", len(m.storage.asked), 2)
}

func TestAVolumeWhoseAnswerWasLostIsDeletedWithItsClaim(t *testing.T) {
	t.Parallel()
	m := enter(t, shared(t, setup{honor: true})).newMaker(storagev1.VolumeBindingImmediate)
	claim := m.open()
	m.expect("volumes", len(m.storage.handles), 1)
	m.converge(claim)
	m.awaitClaimGone(claim.Name)
	m.expect("volumes", len(m.storage.handles), 0)
}

func TestAVolumeWhoseAnswerWasLostIsDeletedAfterARestart(t *testing.T) {
	t.Parallel()
	m := enter(t, shared(t, setup{honor: true})).newMaker(storagev1.VolumeBindingImmediate)
	claim := m.open()
	m.restart()
	m.cache(claim)
	m.converge(claim)
	m.awaitClaimGone(claim.Name)
	m.expect("volumes", len(m.storage.handles), 0)
	m.expect("deleted", len(m.storage.deleted), 1)
}

func TestAnAnswerThatWasLostIsWaitedForThoughTheClaimWasLetGoByForce(t *testing.T) {
	t.Parallel()
	m := enter(t, shared(t, setup{honor: true})).newMaker(storagev1.VolumeBindingImmediate)
	claim := m.open()
	m.must(m.letGoByForce(claim), "let go")
	m.awaitClaimGone(claim.Name)
	m.must(m.factory.Core().V1().PersistentVolumeClaims().Informer().GetStore().Delete(claim), "empty cache")
	m.converge(claim)
	m.expect("volumes", len(m.storage.handles), 0)
}

func TestADriverThatNeverComesBackIsNamedTogetherWithTheCommandThatLetsGo(t *testing.T) {
	t.Parallel()
	m := enter(t, shared(t, setup{honor: true})).newMaker(storagev1.VolumeBindingImmediate)
	claim := m.open()
	m.storage.next = []fault{{codes.Unavailable, false}}
	if err := m.reconcile(claim); err == nil {
		t.Error("an unavailable driver is no error")
	}
	message := m.event("ProvisioningUnresolved")
	command := finalizer.ReleaseCommand(claim, finalizer.Provisioning)
	if !strings.Contains(message, m.storage.name) || !strings.Contains(message, command) {
		t.Errorf("the event names neither %s nor the command %s: %s", m.storage.name, command, message)
	}
	if claim = m.see(claim); !held(claim) {
		t.Error("the claim was let go while the outcome is unknown")
	}
	if message := m.awaitEvent(claim, "ClaimHeld"); !strings.Contains(message, command) {
		t.Errorf("the event of the pv-controller lacks the command %s: %s", command, message)
	}
	m.must(m.letGoByForce(claim), "run the command of the event")
	m.awaitClaimGone(claim.Name)
}

func TestAVolumeMadeForNothingThatCannotBeDeletedIsNamedAndTriedAgain(t *testing.T) {
	t.Parallel()
	m := enter(t, shared(t, setup{honor: true})).newMaker(storagev1.VolumeBindingImmediate)
	claim := m.open()
	m.storage.undeletable = status.Error(codes.Internal, "cannot")
	if err := m.reconcile(claim); err == nil {
		t.Error("a failed deletion is no error")
	}
	if message := m.event("ProvisioningCleanupFailed"); !strings.Contains(message, finalizer.ReleaseCommand(claim, finalizer.Provisioning)) {
		t.Errorf("the event lacks the command: %s", message)
	}
	m.storage.undeletable = nil
	asked := len(m.storage.asked)
	m.converge(claim)
	m.awaitClaimGone(claim.Name)
	m.expect("asked again for a volume whose handle is known", len(m.storage.asked)-asked, 0)
	m.expect("volumes", len(m.storage.handles), 0)
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

func TestTheHoldRidesOnWritesThatOurControllerMakesAnyway(t *testing.T) {
	t.Parallel()
	s := enter(t, shared(t, setup{honor: true}))
	s.createClaim("first", deleteClass) // its volume tells what the provisioner is
	s.awaitBound("first")
	s.createClaim("second", deleteClass)
	s.awaitBound("second")
	if writes := s.claimWrites("provisioner", "second"); writes != 0 {
		t.Errorf("the provisioner wrote to the claim %d times, want none", writes)
	}
	if writes := s.claimWrites("pv-controller", "second"); writes > 4 {
		t.Errorf("the pv-controller wrote to the claim %d times, want at most 4: phase Pending, request, binding, phase Bound", writes)
	}
	s.awaitClaim("second", "is not held", func(c *v1.PersistentVolumeClaim) bool { return !held(c) })
}

func TestBesideUpstreamsLoopsTheProvisionerHoldsAndLetsGoByItself(t *testing.T) {
	t.Parallel()
	s := enter(t, shared(t, setup{honor: true, upstreamLoops: true}))
	s.createClaim("claim", deleteClass)
	s.awaitBound("claim")
	s.awaitClaim("claim", "is not held", func(c *v1.PersistentVolumeClaim) bool { return !held(c) })
	if writes := s.claimWrites("provisioner", "claim"); writes != 2 {
		t.Errorf("the provisioner wrote to the claim %d times, want twice: hold and let go", writes)
	}
}

func TestAClaimThatNobodyWasAskedForIsLetGoWithoutACall(t *testing.T) {
	t.Parallel()
	m := enter(t, shared(t, setup{honor: true})).newMaker(storagev1.VolumeBindingWaitForFirstConsumer)
	m.announced()
	m.live()
	m.createClaim("claim", m.class, placed("no-such-node"))
	m.awaitClaim("claim", "is held and waits for another node", func(c *v1.PersistentVolumeClaim) bool {
		_, chosen := c.Annotations[binding.SelectedNode]
		return held(c) && !chosen
	})
	m.deleteClaim("claim")
	m.awaitClaimGone("claim")
	m.expect("asked", len(m.storage.asked), 0)
}

func TestAClaimThatIsRefusedIsNotHeldByTheControllerEither(t *testing.T) {
	t.Parallel()
	m := enter(t, shared(t, setup{honor: true})).newMaker(storagev1.VolumeBindingImmediate)
	m.announced()
	m.createClaim("claim", m.class, func(c *v1.PersistentVolumeClaim) {
		c.Spec.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{"a": "b"}}
	})
	m.awaitClaim("claim", "is held", held)
	m.live() // it may have been asked for by a process before
	m.awaitClaim("claim", "is refused and let go", func(c *v1.PersistentVolumeClaim) bool {
		return c.Annotations[binding.StorageProvisioner] != "" && !held(c)
	})
	m.deleteClaim("claim")
	m.awaitClaimGone("claim")
}

func TestAClaimHeldForAProvisionerThatIsGoneNamesTheCommandThatLetsGo(t *testing.T) {
	t.Parallel()
	m := enter(t, shared(t, setup{honor: true})).newMaker(storagev1.VolumeBindingImmediate)
	m.announced()
	claim := m.requested()
	if !held(claim) {
		t.Fatalf("the claim is not held: %v", claim.Finalizers)
	}
	m.deleteClaim(claim.Name)
	message := m.awaitEvent(claim, "ClaimHeld")
	if command := finalizer.ReleaseCommand(claim, finalizer.Provisioning); !strings.Contains(message, command) || !strings.Contains(message, m.storage.name) {
		t.Errorf("the event lacks the provisioner or the command %s: %s", command, message)
	}
	m.must(m.letGoByForce(claim), "run the command of the event")
	m.awaitClaimGone(claim.Name)
}

// Upstream's sidecar may have taken the place of the provisioner that held the claim.
func TestAClaimHeldAndBoundToAnotherVolumeNamesTheCommandOnceItIsDeleted(t *testing.T) {
	t.Parallel()
	m := enter(t, shared(t, setup{honor: true})).newMaker(storagev1.VolumeBindingImmediate)
	m.announced()
	claim := m.requested()
	m.createVolume("static", v1.PersistentVolumeReclaimRetain, func(v *v1.PersistentVolume) { v.Spec.StorageClassName = m.class })
	m.awaitBound(claim.Name)
	m.deleteClaim(claim.Name)
	if message, command := m.awaitEvent(claim, "ClaimHeld"), finalizer.ReleaseCommand(claim, finalizer.Provisioning); !strings.Contains(message, command) {
		t.Errorf("the event lacks the command %s: %s", command, message)
	}
	m.must(m.letGoByForce(claim), "run the command of the event")
	m.awaitClaimGone(claim.Name)
}

func TestAClaimBoundToAVolumeThatWasNotMadeForItIsNotLetGoByTheController(t *testing.T) {
	t.Parallel()
	m := enter(t, shared(t, setup{honor: true})).newMaker(storagev1.VolumeBindingImmediate)
	claim := m.see(m.requested())
	m.storage.next = []fault{{codes.DeadlineExceeded, true}}
	if err := m.reconcile(claim); err == nil {
		t.Error("a timeout is no error")
	}
	m.createVolume("other", v1.PersistentVolumeReclaimRetain, func(v *v1.PersistentVolume) {
		v.Spec.StorageClassName, v.Spec.CSI.Driver = m.class, m.storage.name
	})
	m.awaitBound(claim.Name)
	if claim = m.see(claim); !held(claim) {
		t.Error("the claim was let go though the driver may have a volume for it")
	}
	m.restart()
	m.cache(claim)
	m.converge(claim)
	m.expect("volumes", len(m.storage.handles), 0)
	if claim = m.see(claim); held(claim) {
		t.Error("the claim is still held")
	}
}

func TestAClassThatIsGoneIsNamedWhereAnOutcomeIsUnknown(t *testing.T) {
	t.Parallel()
	m := enter(t, shared(t, setup{honor: true})).newMaker(storagev1.VolumeBindingImmediate)
	claim := m.open()
	m.restart()
	m.cache(claim)
	classes := m.factory.Storage().V1().StorageClasses().Informer().GetStore()
	class, _, err := classes.GetByKey(m.class)
	m.must(err, "read class")
	m.must(classes.Delete(class), "empty cache")
	if err := m.reconcile(claim); err == nil {
		t.Error("a class that is gone is no error")
	}
	if message := m.event("ProvisioningUnresolved"); !strings.Contains(message, m.class) || !strings.Contains(message, "kubectl patch pvc") {
		t.Errorf("the event names neither the class nor the command: %s", message)
	}
	if !held(m.see(claim)) {
		t.Error("the claim was let go while the outcome is unknown")
	}
	m.must(classes.Add(class), "bring the class back")
	m.converge(claim)
	m.awaitClaimGone(claim.Name)
	m.expect("volumes", len(m.storage.handles), 0)
}

func TestADriverThatDeniesAVolumeIsBelievedTheSecondTime(t *testing.T) {
	t.Parallel()
	m := enter(t, shared(t, setup{honor: true})).newMaker(storagev1.VolumeBindingImmediate)
	claim := m.open()
	m.storage.next = []fault{{codes.Internal, false}, {codes.Internal, false}}
	for i := range 2 {
		if claim = m.see(claim); !held(claim) {
			t.Errorf("the claim was let go after %d denials", i)
		}
		m.must(m.reconcile(claim), "reconcile")
	}
	m.awaitClaimGone(claim.Name)
}
