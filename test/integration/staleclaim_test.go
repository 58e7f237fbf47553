package integration

import (
	"fmt"
	"strings"
	"testing"

	"google.golang.org/grpc/codes"
	v1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/exeunt-io/exeunt/pkg/journal"
	"github.com/exeunt-io/exeunt/pkg/storage"
	"github.com/exeunt-io/exeunt/test/e2e/harness"
)

func TestStaleCacheProvisionsNoDeletedOrBoundClaim(t *testing.T) {
	harness.Parallel(t, harness.Setup{})
	for name, change := range map[string]func(m *fixture, claim *v1.PersistentVolumeClaim){
		"claim deleted": func(m *fixture, claim *v1.PersistentVolumeClaim) {
			m.DeleteClaim(claim.Name)
			m.AwaitClaimGone(claim.Name)
		},
		"claim recreated": func(m *fixture, claim *v1.PersistentVolumeClaim) {
			m.DeleteClaim(claim.Name)
			m.AwaitClaimGone(claim.Name)
			m.createRequested()
		},
		"claim bound": func(m *fixture, claim *v1.PersistentVolumeClaim) {
			m.CreateVolume("other", v1.PersistentVolumeReclaimRetain, func(v *v1.PersistentVolume) {
				v.Spec.StorageClassName, v.Spec.CSI.Driver = m.class, m.storage.name
				v.Spec.ClaimRef = &v1.ObjectReference{Namespace: claim.Namespace, Name: claim.Name}
			})
			m.AwaitBound(claim.Name)
		},
	} {
		t.Run(name, func(t *testing.T) {
			m := newFixture(harness.Join(t, harness.Setup{}), storagev1.VolumeBindingImmediate)
			stale := m.refresh(m.createRequested())
			change(m, stale)
			_ = m.reconcile(stale) // an error requeues the claim
			m.expect("CreateVolume calls", len(m.storage.requested), 0)
		})
	}
}

func TestNameConflictCausesNeitherLossNorLeak(t *testing.T) {
	m := newFixture(harness.Join(t, harness.Setup{}), storagev1.VolumeBindingImmediate)
	claim := m.refresh(m.createRequested())
	other := m.CreateVolume("other", v1.PersistentVolumeReclaimRetain, func(v *v1.PersistentVolume) {
		v.Name, v.Spec.CSI.Driver, v.Spec.StorageClassName = "pvc-"+string(claim.UID), m.storage.name, "none"
	})
	if err := m.reconcile(claim); err == nil || !strings.Contains(err.Error(), other.Name) {
		t.Errorf("Reconcile = %v, want an error that names the volume", err)
	}
	if message := m.event("ProvisioningFailed"); !strings.Contains(message, other.Name) {
		t.Errorf("the event does not name the volume: %s", message)
	}
	m.expect("volumes", len(m.storage.handles), 0)
	m.expect("deleted", fmt.Sprint(m.storage.deleted), fmt.Sprintf("[%s-1]", other.Name))
	before := len(m.storage.requested)
	if err := m.reconcile(m.refresh(claim)); err == nil {
		t.Error("an other is no error")
	}
	m.expect("CreateVolume calls beside the other volume", len(m.storage.requested)-before, 0)
	m.DeleteVolume(other.Name)
	m.AwaitVolumeGone(other.Name)
	m.converge(m.refresh(claim))
	m.expect("handle", harness.Handle(m.AwaitBound(claim.Name)), m.storage.handles["pvc-"+string(claim.UID)])
}

func TestRecordedVolumeIsNeitherRecordedAgainNorDeleted(t *testing.T) {
	m := newFixture(harness.Join(t, harness.Setup{}), storagev1.VolumeBindingImmediate)
	claim := m.refresh(m.createRequested())
	m.converge(claim)
	m.AwaitBound(claim.Name)
	for name, cached := range map[string]*v1.PersistentVolumeClaim{"stale": claim, "current": m.refresh(claim)} {
		m.restart() // with an empty volume cache
		m.cache(cached)
		_ = m.reconcile(cached)
		m.expect("deleted, volume cache "+name, len(m.storage.deleted), 0)
	}
	if m.volumeOf(claim) == nil {
		t.Error("the volume is gone")
	}
}

func TestHandleOfAnotherVolumeIsNotTouched(t *testing.T) {
	m := newFixture(harness.Join(t, harness.Setup{}), storagev1.VolumeBindingImmediate)
	claim := m.refresh(m.createRequested())
	m.storage.handle, m.storage.known = "of-another", []string{"of-another"}
	if err := m.reconcile(claim); err == nil || !strings.Contains(err.Error(), "of-another") {
		t.Errorf("Reconcile = %v, want an error that names the handle", err)
	}
	m.expect("deleted", len(m.storage.deleted), 0)
	if m.volumeOf(claim) != nil {
		t.Error("the volume of another claim was recorded")
	}
}

func TestUnusableVolumeIsDeletedWithEvent(t *testing.T) {
	m := newFixture(harness.Join(t, harness.Setup{}), storagev1.VolumeBindingImmediate)
	claim := m.refresh(m.createRequested())
	m.storage.handle = strings.Repeat("x", 600)
	if err := m.reconcile(claim); err == nil {
		t.Error("a handle that is too long is no error")
	}
	m.expect("deleted", fmt.Sprint(m.storage.deleted), fmt.Sprintf("[%s]", m.storage.handle))
	if message := m.event("ProvisioningFailed"); !strings.Contains(message, "600 bytes") {
		t.Errorf("the event does not name the cause: %s", message)
	}
}

// placed sets the selected node of a claim, as the scheduler does.
func placed(node string) func(*v1.PersistentVolumeClaim) {
	return func(c *v1.PersistentVolumeClaim) { c.Annotations = map[string]string{storage.AnnSelectedNode: node} }
}

func TestDeletedNodeIsUnselectedAfterVolumeCleanup(t *testing.T) {
	m := newFixture(harness.Join(t, harness.Setup{}), storagev1.VolumeBindingWaitForFirstConsumer)
	node, err := m.Client.CoreV1().Nodes().Create(m.Ctx, &v1.Node{ObjectMeta: metav1.ObjectMeta{Name: m.Namespace}},
		metav1.CreateOptions{})
	m.Must(err, "create node")
	claim := m.refresh(m.createRequested(placed(node.Name)))
	m.storage.next = []fault{{codes.DeadlineExceeded, true}}
	if err := m.reconcile(claim); err == nil {
		t.Error("reconcile returned no error after a timeout")
	}
	m.Must(m.Client.CoreV1().Nodes().Delete(m.Ctx, node.Name, metav1.DeleteOptions{}), "delete node")
	m.converge(m.refresh(claim))
	m.expect("volumes", len(m.storage.handles), 0)
	now := m.refresh(claim)
	if node, selected := now.Annotations[storage.AnnSelectedNode]; selected {
		t.Errorf("the node %s is still selected", node)
	}
	m.DeleteClaim(claim.Name)
	m.AwaitClaimGone(claim.Name)
	m.expect("entries", len(m.entries(journal.KindActive)), 0)
}

func TestExhaustedNodeIsUnselected(t *testing.T) {
	m := newFixture(harness.Join(t, harness.Setup{}), storagev1.VolumeBindingWaitForFirstConsumer)
	claim := m.refresh(m.createRequested(placed("no-such-node")))
	m.converge(claim)
	if node, selected := m.refresh(claim).Annotations[storage.AnnSelectedNode]; selected {
		t.Errorf("the node %s is still selected", node)
	}
	m.expect("CreateVolume calls", len(m.storage.requested), 0)
}

func TestInvalidRequestHasNoEntry(t *testing.T) {
	m := newFixture(harness.Join(t, harness.Setup{}), storagev1.VolumeBindingImmediate)
	claim := m.refresh(m.createRequested(func(c *v1.PersistentVolumeClaim) {
		c.Spec.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{"a": "b"}}
	}))
	if err := m.reconcile(claim); err == nil {
		t.Error("a selector is no error")
	}
	m.expect("entries", len(m.entries(journal.KindActive)), 0)
	m.expect("CreateVolume calls", len(m.storage.requested), 0)
}
