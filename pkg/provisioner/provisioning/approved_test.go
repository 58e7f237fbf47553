package provisioning

import (
	"testing"

	"google.golang.org/grpc/codes"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/exeunt-io/exeunt/pkg/csimock"
	"github.com/exeunt-io/exeunt/pkg/journal"
	"github.com/exeunt-io/exeunt/pkg/storage"
)

// failDiscard leaves the volume of an open write of the PersistentVolume to be discarded.
func (f *flow) failDiscard() {
	f.Helper()
	f.failNext("create", "persistentvolumes", false)
	f.reconcile(true)
	f.editClaim(func(claim *v1.PersistentVolumeClaim) { claim.Annotations[storage.AnnSelectedNode] = "another" })
	f.must(f.mock.Inject(csimock.Fault{Method: "DeleteVolume", Code: codes.Internal, Times: 1}))
	f.reconcile(true)
}

// unresolvedDiscard returns the entry of a volume that was being discarded, after another program
// has led and the claim is gone.
func (f *flow) unresolvedDiscard() journal.Entry {
	f.Helper()
	f.failDiscard()
	f.deleteClaim()
	f.terms += 2
	f.restart()
	f.reconcileDeleted(false)
	entry := f.entries(journal.KindUnresolved)[0]
	if entry.State != journal.Discarding {
		f.Fatalf("unresolved entry: %+v", entry)
	}
	return entry
}

// The claim got a volume of another node meanwhile. Without the handle nobody could find the disk of this node.
func TestInheritedDiscardBesideAnotherNodeKeepsItsHandle(t *testing.T) {
	f := newFlow(t)
	f.failDiscard()
	f.terms++
	f.restart()
	theirs := &v1.PersistentVolume{
		ObjectMeta: metav1.ObjectMeta{Name: "pvc-uid", UID: "theirs", ResourceVersion: "1"},
		Spec:       v1.PersistentVolumeSpec{ClaimRef: &v1.ObjectReference{Namespace: "ns", Name: "claim", UID: "uid"}},
	}
	_, err := f.client.CoreV1().PersistentVolumes().Create(t.Context(), theirs, metav1.CreateOptions{})
	f.must(err)
	f.Scope = testScope{provisioners: []string{csimock.DefaultName},
		reaches: func(*v1.PersistentVolume) bool { return false }}
	f.reconcile(false)
	left := f.entries(journal.KindUnresolved)
	if len(left) != 1 || left[0].State != journal.Discarding || left[0].Handle != f.mock.Volumes()[0].ID {
		t.Errorf("unresolved entries: %+v", left)
	}
}

// The other program may have recorded the volume, and its user may have kept it.
func TestApprovedDiscardIsRequestedAgain(t *testing.T) {
	f := newFlow(t)
	f.keep()
	entry := f.unresolvedDiscard()
	entry.Unresolved.Finish = true
	f.Approve(t.Context(), entry)
	f.reconcileDeleted(false)
	f.expect(1, 1, 2, 0)
	volume, err := f.client.CoreV1().PersistentVolumes().Get(t.Context(), "pvc-uid", metav1.GetOptions{})
	f.must(err)
	if volume.Spec.PersistentVolumeReclaimPolicy != v1.PersistentVolumeReclaimRetain ||
		volume.Spec.CSI.VolumeHandle != entry.Handle {
		t.Errorf("recorded volume: %+v", volume.Spec)
	}
	if left := f.entries(journal.KindUnresolved); len(left) != 0 {
		t.Errorf("unresolved entries: %+v", left)
	}
}

// A request of which only the name is left cannot be repeated, and the handle may be that of another volume by now.
func TestDiscardWithoutRequestStaysUnresolved(t *testing.T) {
	f := newFlow(t)
	entry := f.Backend.Shorten(f.unresolvedDiscard())
	entry.Unresolved.Finish = true
	f.Approve(t.Context(), entry)
	f.reconcileDeleted(false)
	f.expect(1, 0, 1, 0)
	left := f.entries(journal.KindUnresolved)
	if len(left) != 1 || left[0].Unresolved.Reason != discardInterrupted || left[0].Handle != entry.Handle {
		t.Errorf("unresolved entries: %+v", left)
	}
}

// The disk was deleted before the crash, or after a restore of etcd the claim uses it: the request finds out.
func TestInheritedDiscardDeletesNothing(t *testing.T) {
	f := newFlow(t)
	f.failDiscard()
	f.terms++
	f.restart()
	f.reconcile(false)
	f.expect(1, 1, 2, 0)
	for _, call := range f.mock.Calls() {
		if call.Method == "DeleteVolume" && call.Code == "" {
			t.Errorf("a volume was deleted: %+v", call)
		}
	}
}

// "exeunt journal drop" names the handle to look for.
func TestUnresolvedDiscardKeepsItsHandle(t *testing.T) {
	for name, end := range map[string]func(*flow){
		"in the same process": func(*flow) {},
		"after a restart": func(f *flow) {
			f.terms++
			f.restart()
		},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFlow(t)
			f.keep()
			f.failDiscard()
			f.deleteClaim()
			end(f)
			f.reconcileDeleted(false)
			f.expect(1, 0, 1, 0)
			unresolved := f.entries(journal.KindUnresolved)
			if len(unresolved) != 1 || unresolved[0].Handle != f.mock.Volumes()[0].ID {
				t.Errorf("unresolved entries: %+v", unresolved)
			}
		})
	}
}
