package provisioning

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	v1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clienttesting "k8s.io/client-go/testing"

	"github.com/exeunt-io/exeunt/pkg/binding"
	store "github.com/exeunt-io/exeunt/pkg/controller/journal"
	"github.com/exeunt-io/exeunt/pkg/csimock"
	"github.com/exeunt-io/exeunt/pkg/finalizer"
	"github.com/exeunt-io/exeunt/pkg/journal"
)

func TestFailedRecordIsRepeatedWithoutAnotherCall(t *testing.T) {
	f := newFlow(t)
	f.fail("create", "persistentvolumes", false)
	f.step(true)
	f.expect(1, 0, 1, 1)
	f.step(false)
	f.expect(1, 1, 1, 0)
}

func TestRecordWithLostAnswerIsTheClaims(t *testing.T) {
	f := newFlow(t)
	f.fail("create", "persistentvolumes", true)
	f.step(true)
	f.expect(1, 1, 1, 1)
	f.step(false)
	f.expect(1, 1, 1, 0)
}

func TestVolumeOfADeletedClaimIsRecorded(t *testing.T) {
	for name, remove := range map[string]func(*flow){"being deleted": (*flow).remove, "gone": (*flow).vanish} {
		t.Run(name, func(t *testing.T) {
			f := newFlow(t)
			f.fail("create", "persistentvolumes", false)
			f.step(true)
			remove(f)
			f.again(false)
			f.expect(1, 1, 1, 0)
		})
	}
}

func TestEveryCrashIsFinishedByTheNextLeader(t *testing.T) {
	for name, crash := range map[string]func(*flow){
		"before the call": func(f *flow) {
			f.inject(codes.Unavailable, false, 1)
			f.step(true)
		},
		"in the middle of the call": func(f *flow) {
			f.inject(codes.DeadlineExceeded, true, 1)
			f.step(true)
		},
		"before the volume is recorded": func(f *flow) {
			f.fail("create", "persistentvolumes", false)
			f.step(true)
		},
	} {
		for claim, then := range map[string]func(*flow){"alive": func(f *flow) { f.now() }, "gone": (*flow).vanish, "being deleted": (*flow).remove} {
			t.Run(name+", claim "+claim, func(t *testing.T) {
				f := newFlow(t)
				crash(f)
				then(f)
				f.terms++
				f.restart()
				f.again(false)
				if volumes, err := f.client.CoreV1().PersistentVolumes().List(t.Context(), metav1.ListOptions{}); err != nil || len(volumes.Items) != 1 ||
					volumes.Items[0].Spec.ClaimRef.UID != "uid" || volumes.Items[0].Spec.CSI.VolumeHandle != f.mock.Volumes()[0].ID {
					t.Errorf("volumes %v, %v", volumes.Items, err)
				}
				if left := f.entries(journal.Active); len(left) != 0 || len(f.mock.Volumes()) != 1 {
					t.Errorf("%d entries are left, %d volumes in the driver", len(left), len(f.mock.Volumes()))
				}
			})
		}
	}
}

func TestNothingIsDoneForAGoneClaimInBrokenCustody(t *testing.T) {
	f := newFlow(t)
	f.inject(codes.DeadlineExceeded, true, 1)
	f.step(true)
	f.vanish()
	f.terms += 2 // another program has led
	f.restart()
	f.again(false)
	f.expect(1, 0, 1, 0)
	if apart := f.entries(journal.Apart); len(apart) != 1 || !apart[0].CustodyBroken || apart[0].Unresolved == nil {
		t.Fatalf("unresolved entries: %+v", apart)
	}
	f.terms++
	f.restart() // and it stays so
	f.again(false)
	f.expect(1, 0, 1, 0)
}

func TestBrokenCustodyStaysBrokenAfterAnotherCrash(t *testing.T) {
	f := newFlow(t)
	f.inject(codes.DeadlineExceeded, true, 1)
	f.step(true)
	f.vanish()
	f.terms += 2
	f.restart() // and ends before it looks at the entry
	f.terms++
	f.restart()
	f.again(false)
	f.expect(1, 0, 1, 0)
}

func TestAdministratorFinishesAnUnresolvedEntry(t *testing.T) {
	f := newFlow(t)
	f.inject(codes.DeadlineExceeded, true, 1)
	f.step(true)
	f.vanish()
	f.terms += 2
	f.restart()
	f.again(false)
	apart := f.entries(journal.Apart)
	apart[0].Unresolved.Finish = true
	f.Approve(t.Context(), apart[0])
	f.again(false)
	f.expect(1, 1, 2, 0)
	if left := f.entries(journal.Apart); len(left) != 0 {
		t.Errorf("unresolved entries: %+v", left)
	}
}

// A Bound claim whose PersistentVolume was removed by hand.
func TestDiskOfALostClaimIsLeftAlone(t *testing.T) {
	for name, open := range map[string]bool{"with an entry": true, "without": false} {
		t.Run(name, func(t *testing.T) {
			f := newFlow(t)
			if open {
				f.inject(codes.DeadlineExceeded, true, 1)
				f.step(true)
			} else {
				f.step(false)
				f.must(f.client.CoreV1().PersistentVolumes().Delete(t.Context(), "pvc-uid", metav1.DeleteOptions{}))
			}
			f.change(func(claim *v1.PersistentVolumeClaim) {
				claim.Spec.VolumeName = "pvc-uid"
				claim.Annotations[binding.BindCompleted] = "yes"
				claim.Status.Phase = v1.ClaimLost
				claim.Finalizers = finalizer.With(claim.Finalizers, finalizer.Provisioning) // of an earlier version
			})
			f.terms++
			f.restart()
			f.step(false)
			f.expect(1, 0, 1, 0)
			if events := f.reported(); open && !strings.Contains(events, "VolumeVanished") {
				t.Errorf("events: %s", events)
			}
		})
	}
}

// The create of the object succeeded, its answer was lost, and the object is deleted
// with its disk before anybody looks again.
func TestDeletedVolumeIsNotRecordedAgain(t *testing.T) {
	f := newFlow(t)
	f.fail("create", "persistentvolumes", true)
	f.step(true)
	volume, err := f.client.CoreV1().PersistentVolumes().Get(t.Context(), "pvc-uid", metav1.GetOptions{})
	f.must(err)
	dead := volume.Spec.CSI.VolumeHandle
	f.must(f.Volumes.GetStore().Add(volume))
	f.volumeChanged(nil, volume)
	f.must(f.Settle(t.Context(), volume))
	f.must(f.driver.DeleteVolume(t.Context(), dead, nil))
	f.must(f.client.CoreV1().PersistentVolumes().Delete(t.Context(), "pvc-uid", metav1.DeleteOptions{}))
	f.must(f.Volumes.GetStore().Delete(volume))
	f.volumeGone(volume)
	for range 3 { // events of the volume may come during the call, which is repeated then
		f.step(false)
	}
	if left := f.entries(journal.Active); len(left) != 0 || len(f.mock.Volumes()) != 1 {
		t.Errorf("%d entries are left, %d volumes in the driver", len(left), len(f.mock.Volumes()))
	}
	if now, err := f.client.CoreV1().PersistentVolumes().Get(t.Context(), "pvc-uid", metav1.GetOptions{}); err != nil || now.Spec.CSI.VolumeHandle == dead {
		t.Errorf("recorded again: %v, %v", now, err)
	}
}

// A driver that spells the handle of one disk in two ways.
func TestOtherSpellingOfARecordedHandleIsNotDiscarded(t *testing.T) {
	f := newFlow(t)
	own := &v1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: "pvc-uid"}, Spec: v1.PersistentVolumeSpec{
		ClaimRef:               &v1.ObjectReference{Namespace: "ns", Name: "claim", UID: "uid"},
		PersistentVolumeSource: v1.PersistentVolumeSource{CSI: &v1.CSIPersistentVolumeSource{Driver: csimock.DefaultName, VolumeHandle: "spelled/otherwise"}},
	}}
	f.client.PrependReactor("create", "persistentvolumes", func(clienttesting.Action) (bool, runtime.Object, error) {
		return true, nil, apierrors.NewAlreadyExists(v1.Resource("persistentvolumes"), own.Name)
	})
	f.client.PrependReactor("get", "persistentvolumes", func(clienttesting.Action) (bool, runtime.Object, error) { return true, own, nil })
	f.step(false)
	f.expect(1, 0, 1, 0)
	if events := f.reported(); !strings.Contains(events, "left alone") {
		t.Errorf("nobody is told of the handle: %s", events)
	}
}

func TestDriverIsNotCalledWithoutAnEntryOrALiveRead(t *testing.T) {
	for name, fail := range map[string][2]string{"entry refused": {"update", "leases"}, "claim not read": {"get", "persistentvolumeclaims"}} {
		t.Run(name, func(t *testing.T) {
			f := newFlow(t)
			f.now()
			f.fail(fail[0], fail[1], false)
			if err := f.Reconcile(context.Background(), flowClaim); err == nil {
				t.Error("want an error")
			}
			f.step(false)
			f.expect(1, 1, 1, 0)
		})
	}
}

func TestQuotaOnLeasesMakesTheCallWait(t *testing.T) {
	f := newFlow(t)
	full := true
	for _, verb := range []string{"create", "update"} {
		f.client.PrependReactor(verb, "leases", func(clienttesting.Action) (bool, runtime.Object, error) {
			return full, nil, errors.New("exceeded quota")
		})
	}
	for range 3 {
		f.step(true)
	}
	f.expect(0, 0, 0, 0)
	full = false
	f.step(false)
	f.expect(1, 1, 1, 0)
}

func TestRequestThatIsTooLargeIsSentWithoutAnEntry(t *testing.T) {
	f := newFlow(t)
	var reasons []string
	f.Bypassed = func(reason string) { reasons = append(reasons, reason) }
	f.Controller.Journal = tooSmall{f.store}
	f.step(false)
	f.expect(1, 1, 1, 0)
	if events := f.reported(); len(reasons) != 1 || reasons[0] != "TooLarge" || !strings.Contains(events, "ProvisioningWithoutJournal") {
		t.Errorf("reasons %v, events %s", reasons, events)
	}
}

// tooSmall is a journal that no entry fits into.
type tooSmall struct{ *store.Store }

func (tooSmall) Write(context.Context, journal.Entry) error { return journal.ErrTooLarge }

// The namespace is being deleted, and its secrets went first.
func TestDeletedSecretEndsInAnUnresolvedEntry(t *testing.T) {
	f := newFlow(t)
	class, err := f.client.StorageV1().StorageClasses().Get(t.Context(), "class", metav1.GetOptions{})
	f.must(err)
	class = class.DeepCopy()
	class.Parameters = map[string]string{"csi.storage.k8s.io/provisioner-secret-name": "s", "csi.storage.k8s.io/provisioner-secret-namespace": "${pvc.namespace}"}
	f.must(f.Classes.GetStore().Update(class))
	_, err = f.client.CoreV1().Secrets("ns").Create(t.Context(), &v1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "s", UID: "first"}, Data: map[string][]byte{"k": []byte("valuevalue")}}, metav1.CreateOptions{})
	f.must(err)
	f.inject(codes.DeadlineExceeded, true, 1)
	f.step(true)
	f.must(f.client.CoreV1().Secrets("ns").Delete(t.Context(), "s", metav1.DeleteOptions{}))
	f.vanish()
	f.again(true)
	f.expect(1, 0, 1, 1)
	f.Patience.Unresolved = 0
	f.again(false)
	f.expect(1, 0, 1, 0)
	if apart := f.entries(journal.Apart); len(apart) != 1 || !strings.Contains(apart[0].Unresolved.Reason, "ns/s") {
		t.Errorf("unresolved entries: %+v", apart)
	}
}

func TestOpenRequestIsRepeatedThoughItsClassIsGone(t *testing.T) {
	f := newFlow(t)
	f.inject(codes.DeadlineExceeded, true, 1)
	f.step(true)
	f.must(f.Classes.GetStore().Replace(nil, ""))
	f.step(false)
	f.expect(1, 1, 2, 0)
}

func TestOpenVolumeOfALostNodeIsDiscarded(t *testing.T) {
	f := newFlow(t)
	f.inject(codes.DeadlineExceeded, true, 1)
	f.step(true)
	f.expect(1, 0, 1, 1)
	f.change(func(claim *v1.PersistentVolumeClaim) { claim.Annotations[binding.SelectedNode] = "gone" })
	wait := storagev1.VolumeBindingWaitForFirstConsumer
	class := &storagev1.StorageClass{ObjectMeta: metav1.ObjectMeta{Name: "class"}, Provisioner: csimock.DefaultName, VolumeBindingMode: &wait}
	_, err := f.client.StorageV1().StorageClasses().Update(f.Context(), class, metav1.UpdateOptions{})
	f.must(err)
	f.terms++
	f.restart()
	f.step(false)
	f.step(false)
	f.expect(0, 0, 2, 0)
	if node, selected := f.now().Annotations[binding.SelectedNode]; selected {
		t.Errorf("the node %s is still selected", node)
	}
}

func TestVolumeBesideATakenNameIsDiscarded(t *testing.T) {
	f := newFlow(t)
	f.inject(codes.DeadlineExceeded, true, 1)
	f.step(true)
	other := &v1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: "pvc-uid"}}
	_, err := f.client.CoreV1().PersistentVolumes().Create(f.Context(), other, metav1.CreateOptions{})
	f.must(err)
	f.terms++
	f.restart()
	f.step(true)
	f.step(true)
	f.expect(0, 1, 2, 0)
}

func TestFailedDiscardIsRepeated(t *testing.T) {
	f := newFlow(t)
	f.fail("create", "persistentvolumes", false)
	f.step(true)
	f.change(func(claim *v1.PersistentVolumeClaim) { claim.Annotations[binding.SelectedNode] = "another" })
	f.must(f.mock.Inject(csimock.Fault{Method: "DeleteVolume", Code: codes.Internal, Times: 2}))
	f.step(true)
	f.expect(1, 0, 1, 1)
	f.terms++
	f.restart() // the entry has the handle
	f.step(true)
	if events := f.reported(); !strings.Contains(events, "ProvisioningCleanupFailed") {
		t.Errorf("events: %s", events)
	}
	f.step(false)
	if len(f.mock.Volumes()) > 1 || len(f.entries(journal.Active)) > 0 {
		t.Errorf("%d volumes, %d entries", len(f.mock.Volumes()), len(f.entries(journal.Active)))
	}
}

func TestDenialOfTheFirstCallLeavesNoEntry(t *testing.T) {
	f := newFlow(t)
	f.inject(codes.ResourceExhausted, false, 3)
	for range 3 {
		f.step(true)
	}
	f.expect(0, 0, 3, 0)
	f.vanish()
	f.again(false)
	f.expect(0, 0, 3, 0)
}

func TestDenialOfALaterCallMustBeRepeatedMuchLater(t *testing.T) {
	f := newFlow(t)
	f.inject(codes.DeadlineExceeded, false, 1)
	f.step(true)
	f.vanish()
	f.inject(codes.InvalidArgument, false, 3)
	f.again(false)
	f.again(false)
	f.expect(0, 0, 3, 1)
	f.Patience.Denial = time.Nanosecond
	f.again(false)
	f.expect(0, 0, 4, 0)
}

func TestInternalErrorOfAGoneClaimIsUnresolvedInTheEnd(t *testing.T) {
	f := newFlow(t)
	f.inject(codes.Internal, false, 9)
	f.step(true)
	f.vanish()
	f.again(true)
	f.expect(0, 0, 2, 1)
	f.Patience.Unresolved = 0
	f.again(false)
	f.expect(0, 0, 2, 0)
	if apart := f.entries(journal.Apart); len(apart) != 1 {
		t.Errorf("unresolved entries: %+v", apart)
	}
}

// Somebody mends the class of a claim that fails with Internal.
func TestDoubtfulRequestIsBuiltAgain(t *testing.T) {
	f := newFlow(t)
	f.inject(codes.Internal, false, 1)
	f.step(true)
	class, err := f.client.StorageV1().StorageClasses().Get(t.Context(), "class", metav1.GetOptions{})
	f.must(err)
	class = class.DeepCopy()
	class.Parameters = map[string]string{"pool": "mended"}
	f.must(f.Classes.GetStore().Update(class))
	f.fail("create", "persistentvolumes", false)
	f.step(true)
	if open := f.entries(journal.Active); len(open) != 1 || open[0].Request.GetParameters()["pool"] != "mended" || len(open[0].Superseded) != 1 {
		t.Errorf("entries: %+v", open)
	}
	f.step(false)
	f.expect(1, 1, 2, 0)
}

func TestOldFinalizerIsReplacedByAnEntry(t *testing.T) {
	for name, prepare := range map[string]func(*flow){
		"claim alive":   func(*flow) {},
		"claim deleted": (*flow).remove,
	} {
		t.Run(name, func(t *testing.T) {
			f := newFlow(t, string(finalizer.Provisioning))
			prepare(f)
			f.step(false)
			f.expect(1, 1, 1, 0)
		})
	}
	t.Run("class gone", func(t *testing.T) {
		f := newFlow(t, string(finalizer.Provisioning))
		f.must(f.Classes.GetStore().Replace(nil, ""))
		f.remove()
		f.step(false)
		f.expect(0, 0, 0, 0)
		if events := f.reported(); !strings.Contains(events, "ProvisioningUnresolved") {
			t.Errorf("events: %s", events)
		}
	})
}

func TestJournalOffWritesNothing(t *testing.T) {
	f := newFlow(t)
	f.journaled.Store(false)
	f.fail("create", "persistentvolumes", false)
	f.step(true)
	f.expect(1, 0, 1, 0)
	f.step(false)
	f.expect(1, 1, 1, 0)
}

func TestJournalOffFinishesEntries(t *testing.T) {
	f := newFlow(t)
	f.inject(codes.DeadlineExceeded, true, 1)
	f.step(true)
	f.vanish()
	f.terms++
	f.restart()
	f.journaled.Store(false)
	f.again(false)
	f.expect(1, 1, 2, 0)
}

func TestEntryUnderAnotherVolumeNameIsNotActedUpon(t *testing.T) {
	f := newFlow(t)
	f.inject(codes.DeadlineExceeded, true, 1)
	f.step(true)
	f.vanish()
	forged := f.entries(journal.Active)[0]
	forged.UID = "another"
	f.must(f.store.Write(t.Context(), forged))
	f.terms++
	f.restart()
	if apart := f.entries(journal.Apart); len(apart) != 1 || apart[0].UID != "another" {
		t.Errorf("unresolved entries: %+v", apart)
	}
}

func TestRefusedRequestWaitsUntilSomethingChanges(t *testing.T) {
	f := newFlow(t)
	f.inject(codes.InvalidArgument, false, 1)
	f.step(false)
	f.expect(0, 0, 1, 0)
	if events := f.reported(); !strings.Contains(events, "not tried again for 1s") {
		t.Errorf("nobody says how long it waits:\n%s", events)
	}
	changed := f.now().DeepCopy()
	changed.Annotations["team"] = "storage"
	if !f.concerns(f.now(), changed) {
		t.Error("an annotation of the claim does not have it tried again")
	}
	f.step(false)
	f.expect(1, 1, 2, 0)
}

func TestDeletedClaimWithoutACallIsForgotten(t *testing.T) {
	f := newFlow(t)
	f.remove()
	f.step(false)
	f.expect(0, 0, 0, 0)
	if _, known := f.memory.of("uid"); known {
		t.Error("the claim is still remembered")
	}
}

func TestOwnVolumeIsNoReasonToRefuseAHandle(t *testing.T) {
	f := newFlow(t)
	own := &v1.PersistentVolume{
		ObjectMeta: metav1.ObjectMeta{Name: "pvc-uid"},
		Spec:       v1.PersistentVolumeSpec{PersistentVolumeSource: v1.PersistentVolumeSource{CSI: &v1.CSIPersistentVolumeSource{Driver: csimock.DefaultName, VolumeHandle: "h"}}},
	}
	f.must(f.Volumes.GetStore().Add(own))
	o := &observation{claim: f.now(), name: "pvc-uid"}
	if err := f.checkHandle(answer{handle: "h", volume: own}, o); err != nil {
		t.Error(err)
	}
	other := own.DeepCopy()
	other.Name = "another"
	f.must(f.Volumes.GetStore().Add(other))
	if err := f.checkHandle(answer{handle: "h", volume: own}, o); err == nil {
		t.Error("the handle of another volume is taken")
	}
}

func TestHandlesOfUncachedVolumesAreReserved(t *testing.T) {
	m := newMemory()
	for range 2 {
		if !m.reserve("handle", "a") {
			t.Error("a free handle, or one's own, is refused")
		}
	}
	if m.reserve("handle", "b") {
		t.Error("the handle of another claim's volume is given")
	}
	m.release("handle")
	if !m.reserve("handle", "b") {
		t.Error("a handle that was released is refused")
	}
}
