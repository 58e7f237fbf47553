package provisioning

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"

	"google.golang.org/grpc/codes"
	authorizationv1 "k8s.io/api/authorization/v1"
	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/utils/ptr"

	"github.com/exeunt-io/exeunt/pkg/journal"
	"github.com/exeunt-io/exeunt/pkg/provision"
	"github.com/exeunt-io/exeunt/pkg/provisioner/journalstore"
)

// keep has the class create volumes with the policy Retain.
func (f *flow) keep() {
	f.Helper()
	class, err := f.client.StorageV1().StorageClasses().Get(f.Context(), "class", metav1.GetOptions{})
	f.must(err)
	class = class.DeepCopy()
	class.ReclaimPolicy = ptr.To(v1.PersistentVolumeReclaimRetain)
	f.must(f.Classes.GetStore().Update(class))
}

// unprotected are the ways to a PersistentVolume without the finalizer.
var unprotected = map[string]func(*flow){
	"gate off":      func(f *flow) { f.Honor = false },
	"policy Retain": func(f *flow) { f.keep() },
}

// The answer to the write of the PersistentVolume is lost. The claim uses the volume; its user
// removes both objects, and keeps the volume.
func TestKeptVolumeIsLeftAlone(t *testing.T) {
	for name, unprotect := range unprotected {
		for moment, restarts := range map[string]bool{"": false, ", after a restart": true} {
			t.Run(name+moment, func(t *testing.T) {
				f := newFlow(t)
				unprotect(f)
				f.failNext("create", "persistentvolumes", true)
				f.reconcile(true)
				f.must(f.client.CoreV1().PersistentVolumes().Delete(t.Context(), "pvc-uid", metav1.DeleteOptions{}))
				if !restarts {
					f.waitForVolumeEvents(2)
				}
				f.deleteClaim()
				if restarts {
					f.terms++
					f.restart()
				}
				f.reconcileDeleted(false)
				f.expect(1, 0, 1, 0)
				if unresolved := f.entries(journal.KindUnresolved); len(unresolved) != 1 {
					t.Errorf("unresolved entries: %+v", unresolved)
				}
			})
		}
	}
}

// A class is replaced by one of its name to change the policy, while a call has no answer.
func TestPolicyRetainOfANewClassCountsForOpenRequests(t *testing.T) {
	for name, restarts := range map[string]bool{"at once": false, "after a restart": true} {
		t.Run(name, func(t *testing.T) {
			f := newFlow(t)
			f.injectFault(codes.DeadlineExceeded, true, 1)
			f.reconcile(true)
			if restarts {
				f.restart()
			}
			f.keep()
			f.failNext("create", "persistentvolumes", false)
			f.reconcile(true)
			open := f.entries(journal.KindActive)
			if len(open) != 1 || !open[0].Announced ||
				open[0].Volume.Spec.PersistentVolumeReclaimPolicy != v1.PersistentVolumeReclaimRetain {
				t.Errorf("entries: %+v", open)
			}
			f.reconcile(false)
			volume, err := f.client.CoreV1().PersistentVolumes().Get(t.Context(), "pvc-uid", metav1.GetOptions{})
			f.must(err)
			if volume.Spec.PersistentVolumeReclaimPolicy != v1.PersistentVolumeReclaimRetain || len(volume.Finalizers) > 0 {
				t.Errorf("policy %s, finalizers %v", volume.Spec.PersistentVolumeReclaimPolicy, volume.Finalizers)
			}
		})
	}
}

// The events of the PersistentVolume are late.
func TestVolumeThatMayBeKeptIsLeftAlone(t *testing.T) {
	for name, unprotect := range unprotected {
		t.Run(name, func(t *testing.T) {
			f := newFlow(t)
			unprotect(f)
			f.failNext("create", "persistentvolumes", false)
			f.reconcile(true)
			f.deleteClaim()
			f.reconcileDeleted(false)
			f.expect(1, 0, 1, 0)
			if unresolved := f.entries(journal.KindUnresolved); len(unresolved) != 1 {
				t.Errorf("unresolved entries: %+v", unresolved)
			}
		})
	}
}

// The process may end between the two writes that make the entry unresolved: the active entry says by then that the
// volume may be kept, though nothing of this process announced it.
func TestActiveEntrySaysFirstThatVolumeMayBeKept(t *testing.T) {
	f := newFlow(t)
	f.keep()
	f.injectFault(codes.DeadlineExceeded, true, 1)
	f.reconcile(true)
	active := f.entries(journal.KindActive)
	if len(active) != 1 || active[0].Announced {
		t.Fatalf("active entries: %+v", active)
	}
	f.must(f.keepInEntry(t.Context(), active[0], false))
	if active = f.entries(journal.KindActive); len(active) != 1 || !active[0].Announced {
		t.Errorf("active entries: %+v", active)
	}
}

// forbidAnnouncement fails the first write of the journal after the driver has the volume.
func (f *flow) forbidAnnouncement() {
	var spent atomic.Bool
	f.react("update", "leases", func(clienttesting.Action) (bool, runtime.Object, error) {
		return len(f.mock.Volumes()) > 0 && !spent.Swap(true), nil,
			apierrors.NewForbidden(v1.Resource("leases"), "journal", errors.New("scripted"))
	})
}

// The process ends before it creates the PersistentVolume, so nobody can have used the volume.
func TestUnansweredRequestWithoutFinalizerIsFinished(t *testing.T) {
	for name, unprotect := range unprotected {
		for moment, fail := range map[string]func(*flow){
			"the answer of the driver is lost": func(f *flow) { f.injectFault(codes.DeadlineExceeded, true, 1) },
			"the entry cannot be written":      (*flow).forbidAnnouncement,
		} {
			t.Run(name+", "+moment, func(t *testing.T) {
				f := newFlow(t)
				unprotect(f)
				fail(f)
				f.reconcile(true)
				f.expect(1, 0, 1, 1)
				f.deleteClaim()
				f.terms++
				f.restart()
				f.reconcileDeleted(false)
				f.expect(1, 1, 2, 0)
			})
		}
	}
}

// Without the right to write Leases the volume is recorded without its entry.
func TestAnnouncementIsGivenUpWithoutPermission(t *testing.T) {
	f := newFlow(t)
	f.keep()
	f.forbidAnnouncement()
	f.react("create", "selfsubjectaccessreviews", func(clienttesting.Action) (bool, runtime.Object, error) {
		return true, &authorizationv1.SelfSubjectAccessReview{}, nil
	})
	f.store.ForbiddenFor = 0
	f.reconcile(true)
	f.expect(1, 0, 1, 1)
	if events := f.takeEvents(); !strings.Contains(events, "the volume is not recorded before its journal entry says so") {
		t.Errorf("the events are %s", events)
	}
	f.reconcile(false)
	f.expect(1, 1, 1, 0)
}

// A write that the API server refuses is not executed, and an administrator's approval counts.
func TestVolumeThatNobodyKeepsIsRecorded(t *testing.T) {
	f := newFlow(t)
	f.keep()
	f.react("create", "persistentvolumes",
		once(apierrors.NewForbidden(v1.Resource("persistentvolumes"), "pvc-uid", errors.New("scripted"))))
	f.reconcile(true)
	f.deleteClaim()
	f.reconcileDeleted(false)
	f.expect(1, 1, 1, 0)
}

// A late write of another process creates the PersistentVolume while the request is open.
func TestVolumeThatAppearedIsLeftAlone(t *testing.T) {
	for name, prepare := range map[string]func(*flow){"policy Retain": (*flow).keep, "policy Delete": func(*flow) {}} {
		t.Run(name, func(t *testing.T) {
			f := newFlow(t)
			prepare(f)
			f.injectFault(codes.DeadlineExceeded, true, 1)
			f.reconcile(true)
			volumes := f.client.CoreV1().PersistentVolumes()
			_, err := volumes.Create(t.Context(), &v1.PersistentVolume{
				ObjectMeta: metav1.ObjectMeta{Name: "pvc-uid"},
				Spec:       v1.PersistentVolumeSpec{ClaimRef: &v1.ObjectReference{Namespace: "ns", Name: "claim", UID: "uid"}},
			}, metav1.CreateOptions{})
			f.must(err)
			f.waitForVolumeEvents(1)
			f.must(volumes.Delete(t.Context(), "pvc-uid", metav1.DeleteOptions{}))
			f.waitForVolumeEvents(2)
			f.deleteClaim()
			f.reconcileDeleted(false)
			f.expect(1, 0, anyNumber, 0)
			if unresolved := f.entries(journal.KindUnresolved); len(unresolved) != 1 {
				t.Errorf("unresolved entries: %+v", unresolved)
			}
		})
	}
}

// Only a failure that a waiting claim's user should know is reported.
func TestUnwrittenEntryIsReported(t *testing.T) {
	failed, ended := errors.New("scripted"), func() context.Context {
		ctx, cancel := context.WithCancel(context.Background())
		cancel()
		return ctx
	}()
	for name, tc := range map[string]struct {
		ctx      context.Context
		want     provision.Want
		err      error
		reported bool
	}{
		"waiting claim":          {t.Context(), provision.Wanted, failed, true},
		"misplaced volume":       {t.Context(), provision.Misplaced, failed, true},
		"claim that is gone":     {t.Context(), provision.Unwanted, failed, false},
		"end of the process":     {ended, provision.Wanted, failed, false},
		"end of the leadership":  {t.Context(), provision.Wanted, journalstore.ErrLost, false},
		"wrapped, of the latter": {t.Context(), provision.Wanted, fmt.Errorf("wrapped: %w", journalstore.ErrLost), false},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFlow(t)
			err := f.notWritten(tc.ctx, &observation{claim: f.syncClaim()}, provision.State{Want: tc.want}, tc.err)
			if events := f.takeEvents(); !errors.Is(err, tc.err) || strings.Contains(events,
				"ProvisioningFailed") != tc.reported {
				t.Errorf("error %v, events %q", err, events)
			}
		})
	}
}

// A user deletes the PersistentVolume of a claim that waits, so the claim has not used the volume.
func TestVolumeRequestedAfterItsObjectIsRecorded(t *testing.T) {
	f := newFlow(t)
	f.keep()
	f.reconcile(false)
	f.waitForVolumeEvents(1)
	f.must(f.client.CoreV1().PersistentVolumes().Delete(t.Context(), "pvc-uid", metav1.DeleteOptions{}))
	f.waitForVolumeEvents(2)
	f.react("create", "persistentvolumes",
		once(apierrors.NewForbidden(v1.Resource("persistentvolumes"), "pvc-uid", errors.New("scripted"))))
	f.reconcile(true)
	f.deleteClaim()
	f.reconcileDeleted(false)
	f.expect(1, 1, anyNumber, 0)
}

func TestApprovedRequestIsFinished(t *testing.T) {
	f := newFlow(t)
	f.keep()
	f.failNext("create", "persistentvolumes", false)
	f.reconcile(true)
	f.deleteClaim()
	f.reconcileDeleted(false)
	entry := f.entries(journal.KindUnresolved)[0]
	entry.Unresolved.Finish = true
	f.Approve(t.Context(), entry)
	f.reconcileDeleted(false)
	f.expect(1, 1, 2, 0)
}

// once fails the first request.
func once(err error) clienttesting.ReactionFunc {
	var spent atomic.Bool
	return func(clienttesting.Action) (bool, runtime.Object, error) { return !spent.Swap(true), nil, err }
}
