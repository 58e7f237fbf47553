package provisioning

import (
	"context"
	"errors"
	"strings"
	"testing"

	"google.golang.org/grpc/codes"
	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clienttesting "k8s.io/client-go/testing"

	"github.com/exeunt-io/exeunt/pkg/csimock"
	"github.com/exeunt-io/exeunt/pkg/journal"
	"github.com/exeunt-io/exeunt/pkg/provisioner/journalstore"
	"github.com/exeunt-io/exeunt/pkg/storage"
)

func TestFailedPersistentVolumeWriteIsRetriedWithoutCall(t *testing.T) {
	f := newFlow(t)
	f.failNext("create", "persistentvolumes", false)
	f.reconcile(true)
	f.expect(1, 0, 1, 1)
	f.reconcile(false)
	f.expect(1, 1, 1, 0)
}

func TestPersistentVolumeWithLostAnswerIsAccepted(t *testing.T) {
	f := newFlow(t)
	f.failNext("create", "persistentvolumes", true)
	f.reconcile(true)
	f.expect(1, 1, 1, 1)
	f.reconcile(false)
	f.expect(1, 1, anyNumber, 0)
}

func TestVolumeOfDeletedClaimIsRecorded(t *testing.T) {
	for name, remove := range map[string]func(*flow){"being deleted": (*flow).setDeleting, "gone": (*flow).deleteClaim} {
		t.Run(name, func(t *testing.T) {
			f := newFlow(t)
			f.failNext("create", "persistentvolumes", false)
			f.reconcile(true)
			remove(f)
			f.reconcileDeleted(false)
			f.expect(1, 1, 1, 0)
		})
	}
}

func TestNextLeaderFinishesEveryCrash(t *testing.T) {
	for name, crash := range map[string]func(*flow){
		"before the call": func(f *flow) {
			f.injectFault(codes.Unavailable, false, 1)
			f.reconcile(true)
		},
		"during the call": func(f *flow) {
			f.injectFault(codes.DeadlineExceeded, true, 1)
			f.reconcile(true)
		},
		"before the volume is recorded": func(f *flow) {
			f.failNext("create", "persistentvolumes", false)
			f.reconcile(true)
		},
	} {
		for claim, then := range map[string]func(*flow){"alive": func(f *flow) { f.syncClaim() }, "gone": (*flow).deleteClaim,
			"being deleted": (*flow).setDeleting} {
			t.Run(name+", claim "+claim, func(t *testing.T) {
				f := newFlow(t)
				crash(f)
				then(f)
				f.terms++
				f.restart()
				f.reconcileDeleted(false)
				if claim != "alive" && name == "before the volume is recorded" { // whoever removed it may have kept the volume
					f.expect(1, 0, 1, 0)
					if left := f.entries(journal.KindUnresolved); len(left) != 1 {
						t.Errorf("unresolved entries: %+v", left)
					}
					return
				}
				if volumes, err := f.client.CoreV1().PersistentVolumes().List(t.Context(), metav1.ListOptions{}); err != nil ||
					len(volumes.Items) != 1 ||
					volumes.Items[0].Spec.ClaimRef.UID != "uid" || volumes.Items[0].Spec.CSI.VolumeHandle != f.mock.Volumes()[0].ID {
					t.Errorf("volumes %v, %v", volumes.Items, err)
				}
				if left := f.entries(journal.KindActive); len(left) != 0 || len(f.mock.Volumes()) != 1 {
					t.Errorf("%d entries are left, %d volumes in the driver", len(left), len(f.mock.Volumes()))
				}
			})
		}
	}
}

func TestBrokenCustodyOfGoneClaimBecomesUnresolved(t *testing.T) {
	f := newFlow(t)
	f.injectFault(codes.DeadlineExceeded, true, 1)
	f.reconcile(true)
	f.deleteClaim()
	f.terms += 2 // another program has led
	f.restart()
	f.reconcileDeleted(false)
	f.expect(1, 0, 1, 0)
	if unresolved := f.entries(journal.KindUnresolved); len(unresolved) != 1 || !unresolved[0].CustodyBroken ||
		unresolved[0].Unresolved == nil {
		t.Fatalf("unresolved entries: %+v", unresolved)
	}
	f.terms++
	f.restart() // and it stays so
	f.reconcileDeleted(false)
	f.expect(1, 0, 1, 0)
}

func TestBrokenCustodyStaysBrokenAfterAnotherCrash(t *testing.T) {
	f := newFlow(t)
	f.injectFault(codes.DeadlineExceeded, true, 1)
	f.reconcile(true)
	f.deleteClaim()
	f.terms += 2
	f.restart() // and ends before it looks at the entry
	f.terms++
	f.restart()
	f.reconcileDeleted(false)
	f.expect(1, 0, 1, 0)
}

func TestAdministratorFinishesUnresolvedEntry(t *testing.T) {
	f := newFlow(t)
	f.injectFault(codes.DeadlineExceeded, true, 1)
	f.reconcile(true)
	f.deleteClaim()
	f.terms += 2
	f.restart()
	f.reconcileDeleted(false)
	unresolved := f.entries(journal.KindUnresolved)
	unresolved[0].Unresolved.Finish = true
	f.Approve(t.Context(), unresolved[0])
	f.reconcileDeleted(false)
	f.expect(1, 1, 2, 0)
	if left := f.entries(journal.KindUnresolved); len(left) != 0 {
		t.Errorf("unresolved entries: %+v", left)
	}
}

// A user removed the PersistentVolume of a bound claim.
func TestVolumeOfLostClaimIsLeftAlone(t *testing.T) {
	for name, open := range map[string]bool{"with an entry": true, "without": false} {
		t.Run(name, func(t *testing.T) {
			f := newFlow(t)
			if open {
				f.injectFault(codes.DeadlineExceeded, true, 1)
				f.reconcile(true)
			} else {
				f.reconcile(false)
				f.must(f.client.CoreV1().PersistentVolumes().Delete(t.Context(), "pvc-uid", metav1.DeleteOptions{}))
			}
			f.editClaim(func(claim *v1.PersistentVolumeClaim) {
				claim.Spec.VolumeName = "pvc-uid"
				claim.Annotations[storage.AnnBindCompleted] = "yes"
				claim.Status.Phase = v1.ClaimLost
			})
			f.terms++
			f.restart()
			f.reconcile(false)
			f.expect(1, 0, 1, 0)
			if events := f.takeEvents(); open && !strings.Contains(events, "VolumeVanished") {
				t.Errorf("events: %s", events)
			}
		})
	}
}

// The PersistentVolume was created, the response was lost, and the PersistentVolume and its
// disk are deleted before the next pass.
func TestDeletedVolumeIsNotRecordedAgain(t *testing.T) {
	f := newFlow(t)
	f.failNext("create", "persistentvolumes", true)
	f.reconcile(true)
	volume, err := f.client.CoreV1().PersistentVolumes().Get(t.Context(), "pvc-uid", metav1.GetOptions{})
	f.must(err)
	dead := volume.Spec.CSI.VolumeHandle
	f.must(f.Volumes.GetStore().Add(volume))
	f.volumeChanged(nil, volume)
	_, err = f.RemoveEntry(t.Context(), volume)
	f.must(err)
	f.must(f.driver.DeleteVolume(t.Context(), dead, nil))
	f.must(f.client.CoreV1().PersistentVolumes().Delete(t.Context(), "pvc-uid", metav1.DeleteOptions{}))
	f.must(f.Volumes.GetStore().Delete(volume))
	f.volumeGone(volume)
	for range 3 { // events of the volume may come during the call, which is repeated then
		f.reconcile(false)
	}
	if left := f.entries(journal.KindActive); len(left) != 0 || len(f.mock.Volumes()) != 1 {
		t.Errorf("%d entries are left, %d volumes in the driver", len(left), len(f.mock.Volumes()))
	}
	if now, err := f.client.CoreV1().PersistentVolumes().Get(t.Context(), "pvc-uid", metav1.GetOptions{}); err != nil ||
		now.Spec.CSI.VolumeHandle == dead {
		t.Errorf("recorded again: %v, %v", now, err)
	}
}

// A driver that spells the handle of one disk in two ways.
func TestRecordedVolumeWithOtherHandleIsNotDiscarded(t *testing.T) {
	f := newFlow(t)
	own := &v1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: "pvc-uid"}, Spec: v1.PersistentVolumeSpec{
		ClaimRef: &v1.ObjectReference{Namespace: "ns", Name: "claim", UID: "uid"},
		PersistentVolumeSource: v1.PersistentVolumeSource{CSI: &v1.CSIPersistentVolumeSource{Driver: csimock.DefaultName,
			VolumeHandle: "spelled/otherwise"}},
	}}
	f.react("create", "persistentvolumes", func(clienttesting.Action) (bool, runtime.Object, error) {
		return true, nil, apierrors.NewAlreadyExists(v1.Resource("persistentvolumes"), own.Name)
	})
	f.react("get", "persistentvolumes", func(clienttesting.Action) (bool, runtime.Object, error) { return true, own, nil })
	f.reconcile(false)
	f.expect(1, 0, 1, 0)
	if events := f.takeEvents(); !strings.Contains(events, "left alone") {
		t.Errorf("no event names the handle: %s", events)
	}
}

func TestCallNeedsEntryAndLiveRead(t *testing.T) {
	for name, fail := range map[string][2]string{"entry refused": {"update", "leases"},
		"claim not read": {"get", "persistentvolumeclaims"}} {
		t.Run(name, func(t *testing.T) {
			f := newFlow(t)
			f.syncClaim()
			f.failNext(fail[0], fail[1], false)
			if err := f.Reconcile(context.Background(), flowClaim); err == nil {
				t.Error("want an error")
			}
			f.reconcile(false)
			f.expect(1, 1, 1, 0)
		})
	}
}

func TestCallWaitsForQuotaOfLeases(t *testing.T) {
	f := newFlow(t)
	full := true
	for _, verb := range []string{"create", "update"} {
		f.react(verb, "leases", func(clienttesting.Action) (bool, runtime.Object, error) {
			return full, nil, errors.New("exceeded quota")
		})
	}
	for range 3 {
		f.reconcile(true)
	}
	f.expect(0, 0, 0, 0)
	full = false
	f.reconcile(false)
	f.expect(1, 1, 1, 0)
}

func TestTooLargeRequestIsSentWithoutEntry(t *testing.T) {
	f := newFlow(t)
	var reasons []string
	f.Bypassed = func(reason string) { reasons = append(reasons, reason) }
	f.Journal = tooSmall{f.store}
	f.reconcile(false)
	f.expect(1, 1, 1, 0)
	if events := f.takeEvents(); len(reasons) != 1 || reasons[0] != "TooLarge" ||
		!strings.Contains(events, "ProvisioningWithoutJournal") {
		t.Errorf("reasons %v, events %s", reasons, events)
	}
}

// smallFor is a journal that is too small for requests with the parameter. It notes whether the last entry
// that it wrote is announced.
type smallFor struct {
	*journalstore.Store
	parameter string
	announced *bool
}

func (n smallFor) Write(ctx context.Context, entry journal.Entry) error {
	if _, has := entry.Request.GetParameters()[n.parameter]; has {
		return journal.ErrTooLarge
	}
	*n.announced = entry.Announced
	return n.Store.Write(ctx, entry)
}

// After a crash the entry of the first request must not lead to a call: the user may keep the volume.
func TestEarlierEntryAnnouncesVolumeOfTooLargeRequest(t *testing.T) {
	f := newFlow(t)
	f.Honor = false
	f.injectFault(codes.DeadlineExceeded, false, 1)
	f.reconcile(true)
	f.setClassParameter("large", "value")
	var announced, before bool
	f.Journal = smallFor{f.store, "large", &announced}
	f.Timeouts.RepeatedFailure = 0
	f.react("create", "persistentvolumes", func(clienttesting.Action) (bool, runtime.Object, error) {
		before = announced
		return false, nil, nil
	})
	f.reconcile(false)
	if f.expect(1, 1, 2, 0); !before {
		t.Error("the entry of the first request does not say that a PersistentVolume may exist")
	}
}

// tooSmall is a journal that refuses every entry as too large.
type tooSmall struct{ *journalstore.Store }

func (tooSmall) Write(context.Context, journal.Entry) error { return journal.ErrTooLarge }

// The namespace is being deleted, and its secrets are deleted already.
func TestEntryWithDeletedSecretBecomesUnresolved(t *testing.T) {
	f := newFlow(t)
	f.createSecret()
	f.injectFault(codes.DeadlineExceeded, true, 1)
	f.reconcile(true)
	f.must(f.client.CoreV1().Secrets("ns").Delete(t.Context(), "s", metav1.DeleteOptions{}))
	f.deleteClaim()
	f.reconcileDeleted(true)
	f.expect(1, 0, 1, 1)
	f.Timeouts.Unresolved = 0
	f.reconcileDeleted(false)
	f.expect(1, 0, 1, 0)
	if unresolved := f.entries(journal.KindUnresolved); len(unresolved) != 1 ||
		!strings.Contains(unresolved[0].Unresolved.Reason, "ns/s") {
		t.Errorf("unresolved entries: %+v", unresolved)
	}
}

// The driver answered that there is no volume. Then the namespace is deleted, with the secret and the claim.
func TestFailedRequestNeedsNoSecretAnyMore(t *testing.T) {
	f := newFlow(t)
	f.createSecret()
	f.injectFault(codes.ResourceExhausted, false, 1)
	f.reconcile(true)
	f.expect(0, 0, 1, 0)
	f.must(f.client.CoreV1().Secrets("ns").Delete(t.Context(), "s", metav1.DeleteOptions{}))
	f.deleteClaim()
	f.reconcileDeleted(false)
	f.expect(0, 0, 1, 0)
	if unresolved := f.entries(journal.KindUnresolved); len(unresolved) > 0 {
		t.Errorf("unresolved entries: %+v", unresolved)
	}
}

// createSecret creates a secret in the namespace of the claim, which the class names.
func (f *flow) createSecret() {
	f.Helper()
	class, err := f.client.StorageV1().StorageClasses().Get(f.Context(), "class", metav1.GetOptions{})
	f.must(err)
	class = class.DeepCopy()
	class.Parameters = map[string]string{"csi.storage.k8s.io/provisioner-secret-name": "s",
		"csi.storage.k8s.io/provisioner-secret-namespace": "${pvc.namespace}"}
	f.must(f.Classes.GetStore().Update(class))
	_, err = f.client.CoreV1().Secrets("ns").Create(f.Context(),
		&v1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "s", UID: "first"},
			Data: map[string][]byte{"k": []byte("valuevalue")}}, metav1.CreateOptions{})
	f.must(err)
}
