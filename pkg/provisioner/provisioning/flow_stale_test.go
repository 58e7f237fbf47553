package provisioning

import (
	"runtime"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/exeunt-io/exeunt/pkg/journal"
	"github.com/exeunt-io/exeunt/pkg/provision"
)

func TestUncachedClaimIsServed(t *testing.T) {
	f := newFlow(t)
	f.inject(codes.DeadlineExceeded, true, 1)
	f.step(true)
	f.terms += 2
	f.restart()
	f.must(f.Claims.GetStore().Replace(nil, ""))
	f.again(false)
	f.expect(1, 1, 2, 0)
	if unresolved := f.entries(journal.KindUnresolved); len(unresolved) != 0 {
		t.Errorf("unresolved entries: %+v", unresolved)
	}
}

// cached waits until the watch has brought so many events of the PersistentVolume.
func (f *flow) cached(events int) {
	f.Helper()
	for end := time.Now().Add(10 * time.Second); ; {
		if r, _ := f.memory.lookup("uid"); r.volumeEvents >= events {
			return
		}
		if time.Now().After(end) {
			f.Fatal("the watch is too late")
		}
		runtime.Gosched()
	}
}

func TestVanishedVolumeIsCreatedAgain(t *testing.T) {
	f := newFlow(t)
	f.step(false)
	f.cached(1)
	f.must(f.client.CoreV1().PersistentVolumes().Delete(t.Context(), "pvc-uid", metav1.DeleteOptions{}))
	f.cached(2)
	f.memory.update(subject{"uid", flowClaim}, "pvc-uid", func(r *claimRecord) { r.seen = false }) // the watch has seen neither event
	f.step(false)
	f.expect(1, 0, 1, 0)
	f.memory.update(subject{"uid", flowClaim}, "pvc-uid", func(r *claimRecord) { r.savedAt = r.savedAt.Add(-time.Hour) })
	for range 3 { // the event of its end may come during the call, which is repeated then
		f.step(false)
	}
	f.expect(1, 1, anyNumber, 0)
}

func TestFailedWriteOfSecondPersistentVolumeIsRetried(t *testing.T) {
	f := newFlow(t)
	f.step(false)
	f.cached(1)
	f.must(f.client.CoreV1().PersistentVolumes().Delete(t.Context(), "pvc-uid", metav1.DeleteOptions{}))
	f.cached(2)
	f.fail("create", "persistentvolumes", false)
	f.step(true)
	f.step(false)
	f.expect(1, 1, 2, 0)
}

// The leader before created a Lease of the journal when this one had read all of them.
func TestLateEntryIsReadAfterFailedTry(t *testing.T) {
	f := newFlow(t)
	f.inject(codes.DeadlineExceeded, true, 1)
	f.step(true)
	late := f.entries(journal.KindActive)[0]
	text, err := journal.Encode(late)
	f.must(err)
	f.vanish()
	f.must(f.client.CoordinationV1().Leases("kube-system").Delete(t.Context(), f.store.Journal.LeaseName(journal.KindActive, 0), metav1.DeleteOptions{}))
	f.restart()
	lease := f.store.Journal.Lease(journal.KindActive, 7, "before", f.store.Custody, map[types.UID]string{"uid": text})
	_, err = f.client.CoordinationV1().Leases("kube-system").Create(t.Context(), lease, metav1.CreateOptions{})
	f.must(err)
	f.fail("list", "leases", false)
	f.Timeouts.Rescan = time.Millisecond
	f.rescan(t.Context())
	for end := time.Now().Add(10 * time.Second); ; runtime.Gosched() {
		if r, _ := f.memory.lookup("uid"); r.entry == provision.Inherited {
			return
		}
		if time.Now().After(end) {
			f.Fatal("the entry is not read")
		}
	}
}
