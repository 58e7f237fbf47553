package provisioning

import (
	"errors"
	"net/http"
	"runtime"
	"sync/atomic"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	kubeapi "k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	clienttesting "k8s.io/client-go/testing"

	"github.com/exeunt-io/exeunt/pkg/controller"
	"github.com/exeunt-io/exeunt/pkg/journal"
	"github.com/exeunt-io/exeunt/pkg/provision"
)

func TestUncachedClaimIsServed(t *testing.T) {
	f := newFlow(t)
	f.injectFault(codes.DeadlineExceeded, true, 1)
	f.reconcile(true)
	f.terms += 2
	f.restart()
	f.must(f.Claims.GetStore().Replace(nil, ""))
	f.reconcileDeleted(false)
	f.expect(1, 1, 2, 0)
	if unresolved := f.entries(journal.KindUnresolved); len(unresolved) != 0 {
		t.Errorf("unresolved entries: %+v", unresolved)
	}
}

// waitForVolumeEvents waits for the number of PersistentVolume events.
func (f *flow) waitForVolumeEvents(events int) {
	f.Helper()
	for end := time.Now().Add(10 * time.Second); ; {
		if r, _ := f.memory.lookup("uid"); r.object.events >= events {
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
	f.reconcile(false)
	f.waitForVolumeEvents(1)
	f.must(f.client.CoreV1().PersistentVolumes().Delete(t.Context(), "pvc-uid", metav1.DeleteOptions{}))
	f.waitForVolumeEvents(2)
	f.memory.update(subject{"uid", flowClaim}, "pvc-uid",
		func(r *claimRecord) { r.object.seen = false }) // the watch has seen neither event
	f.reconcile(false)
	f.expect(1, 0, 1, 0)
	f.memory.update(subject{"uid", flowClaim}, "pvc-uid",
		func(r *claimRecord) { r.object.savedAt = r.object.savedAt.Add(-time.Hour) })
	for range 3 { // the event of its end may come during the call, which is repeated then
		f.reconcile(false)
	}
	f.expect(1, 1, anyNumber, 0)
}

func TestFailedWriteOfSecondPersistentVolumeIsRetried(t *testing.T) {
	f := newFlow(t)
	f.reconcile(false)
	f.waitForVolumeEvents(1)
	f.must(f.client.CoreV1().PersistentVolumes().Delete(t.Context(), "pvc-uid", metav1.DeleteOptions{}))
	f.waitForVolumeEvents(2)
	f.failNext("create", "persistentvolumes", false)
	f.reconcile(true)
	f.reconcile(false)
	f.expect(1, 1, 2, 0)
}

// The previous leader created a Lease after this process had listed the Leases.
func TestLateEntryIsReadAfterFailedTry(t *testing.T) {
	f := newFlow(t)
	f.injectFault(codes.DeadlineExceeded, true, 1)
	f.reconcile(true)
	late := f.entries(journal.KindActive)[0]
	text, err := journal.Encode(late)
	f.must(err)
	f.deleteClaim()
	f.must(f.client.CoordinationV1().Leases("kube-system").Delete(t.Context(),
		f.store.Journal.LeaseName(journal.KindActive, 0), metav1.DeleteOptions{}))
	f.restart()
	earlier := f.store.Custody
	earlier.Transitions--
	lease := f.store.Journal.Lease(journal.KindActive, 7, "before", earlier, map[types.UID]string{"uid": text})
	_, err = f.client.CoordinationV1().Leases("kube-system").Create(t.Context(), lease, metav1.CreateOptions{})
	f.must(err)
	f.failNext("list", "leases", false)
	f.Timeouts.Rescan = time.Millisecond
	f.rescan(t.Context(), nil)
	for end := time.Now().Add(10 * time.Second); ; runtime.Gosched() {
		if r, _ := f.memory.lookup("uid"); r.entry.state == provision.Inherited {
			return
		}
		if time.Now().After(end) {
			f.Fatal("the entry is not read")
		}
	}
}

// The watch of claims is late: it shows a claim that is gone, and that this process has forgotten. A
// user keeps the disk of its volume.
func TestForgottenClaimOfLateWatchGetsNoVolume(t *testing.T) {
	f := newFlow(t)
	f.Streamed = func(string) bool { return true }
	f.must(f.client.CoreV1().PersistentVolumeClaims("ns").Delete(t.Context(), "claim", metav1.DeleteOptions{}))
	for range 2 { // once the watch is no longer late, the claim is unknown
		if err := f.Reconcile(t.Context(), flowClaim); err != nil && !errors.Is(err, controller.ErrStaleCache) {
			t.Errorf("Reconcile = %v", err)
		}
	}
	f.expect(0, 0, 0, 0)
}

// A load balancer may have another server behind the address of the API server.
func TestUnknownPathIsNoProofThatTheClaimIsGone(t *testing.T) {
	f := newFlow(t)
	f.syncClaim()
	var known atomic.Bool
	f.react("get", "persistentvolumeclaims", func(clienttesting.Action) (bool, kubeapi.Object, error) {
		return !known.Load(), nil, apierrors.NewGenericServerResponse(http.StatusNotFound, "get",
			v1.Resource("persistentvolumeclaims"), "claim", "404 page not found", 0, true)
	})
	f.reconcileDeleted(true) // or nobody looks at the claim again
	f.expect(0, 0, 0, 0)
	known.Store(true)
	f.reconcile(false)
	f.expect(1, 1, 1, 0)
}
