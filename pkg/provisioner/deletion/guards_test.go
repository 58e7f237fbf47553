package deletion

import (
	"context"
	"errors"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"
	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/client-go/tools/record"
	"sigs.k8s.io/sig-storage-lib-external-provisioner/v10/controller/metrics"

	"github.com/exeunt-io/exeunt/pkg/controller"
	"github.com/exeunt-io/exeunt/pkg/provisioner/backend"
	"github.com/exeunt-io/exeunt/pkg/reclaim"
	"github.com/exeunt-io/exeunt/pkg/reclaim/external"
)

// directory returns a released volume in the directory /d.
func directory(name string) *v1.PersistentVolume {
	volume := released(name)
	volume.Spec.PersistentVolumeSource = v1.PersistentVolumeSource{HostPath: &v1.HostPathVolumeSource{Path: "/d"}}
	return volume
}

// guarded returns a controller whose cache has the volumes.
func guarded(t *testing.T, client *fake.Clientset, deleter backend.Deleter, cached ...*v1.PersistentVolume) *Controller {
	t.Helper()
	factory := informers.NewSharedInformerFactory(client, 0)
	c, err := New(Config{
		Client: client, Deleter: deleter, Honor: true, Volumes: factory.Core().V1().PersistentVolumes().Informer(),
		Reporter: controller.NewReporter(&record.FakeRecorder{}), Metrics: metrics.New("guards"), Locks: &controller.KeyLocks{},
		Backoff: controller.Backoff{Initial: time.Second, Max: time.Second},
	})
	for _, volume := range cached {
		if err == nil {
			err = c.Volumes.GetStore().Add(volume)
		}
	}
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// A process that was frozen after its live reads wakes up when another one may lead.
func TestDeleteVolumeNeedsALastingTerm(t *testing.T) {
	leads, volume := true, directory("pv")
	client, d := fake.NewClientset(volume), &directories{}
	client.PrependReactor("get", "persistentvolumeclaims", func(clienttesting.Action) (bool, runtime.Object, error) {
		leads = false
		return false, nil, nil
	})
	c := guarded(t, client, d, volume)
	c.Leading = func() bool { return leads }
	if err := c.Reconcile(t.Context(), volume.Name); !errors.Is(err, controller.ErrLeaseEnding) || len(d.deleted) > 0 {
		t.Errorf("deleted %v, error %v", d.deleted, err)
	}
	discard, err := c.PrepareDiscard(t.Context(), volume, "/d")
	if err != nil {
		t.Fatal(err)
	}
	if err := discard(t.Context()); !errors.Is(err, controller.ErrLeaseEnding) || len(d.deleted) > 0 {
		t.Errorf("deleted %v, error %v", d.deleted, err)
	}
	client.ReactionChain, leads = client.ReactionChain[1:], true
	if err := c.Reconcile(t.Context(), volume.Name); err != nil || len(d.deleted) != 1 {
		t.Errorf("deleted %v, error %v", d.deleted, err)
	}
}

// A process without leader election is frozen right after its live reads, for longer than an administrator needs to keep the
// volume, or to restore etcd.
func TestOldReadDeletesNoVolume(t *testing.T) {
	for name, kept := range map[string]bool{"volume is kept meanwhile": true, "volume is as it was": false} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				volume, frozen := directory("pv"), false
				client, d := fake.NewClientset(volume), &directories{}
				client.PrependReactor("get", "persistentvolumes", func(clienttesting.Action) (bool, runtime.Object, error) {
					if frozen {
						return false, nil, nil
					}
					frozen = true
					<-time.After(10 * time.Minute)
					now := volume.DeepCopy()
					if kept {
						now.ResourceVersion, now.Spec.PersistentVolumeReclaimPolicy = "2", v1.PersistentVolumeReclaimRetain
					}
					return true, volume.DeepCopy(), client.Tracker().Update(v1.SchemeGroupVersion.WithResource("persistentvolumes"), now, "")
				})
				c := guarded(t, client, d, volume)
				c.Loops()[0].Step()
				if err := c.Reconcile(t.Context(), volume.Name); err == nil || len(d.deleted) > 0 {
					t.Errorf("deleted %v after reads of ten minutes ago, error %v", d.deleted, err)
				}
				if err := c.Reconcile(t.Context(), volume.Name); err != nil || len(d.deleted) == 0 != kept {
					t.Errorf("deleted %v, error %v", d.deleted, err)
				}
			})
		})
	}
}

// Each new leader reconciles all volumes, most of which are bound.
func TestBoundVolumeIsNotLookedUpByItsDisk(t *testing.T) {
	volume := directory("pv")
	volume.Status.Phase = v1.VolumeBound
	d := &directories{}
	c := guarded(t, fake.NewClientset(volume), d, volume)
	before := d.keys
	if err := c.Reconcile(t.Context(), volume.Name); err != nil || d.keys != before {
		t.Errorf("%d lookups, error %v", d.keys-before, err)
	}
}

// TestWriteNeedsTheObservedVolume changes the volume between the decision and the write.
func TestWriteNeedsTheObservedVolume(t *testing.T) {
	recreated := func(v *v1.PersistentVolume) { v.UID = "new" }
	unbound := func(v *v1.PersistentVolume) { v.Status.Phase = v1.VolumeBound }
	kept := func(v *v1.PersistentVolume) { v.Spec.PersistentVolumeReclaimPolicy = v1.PersistentVolumeReclaimRetain }
	done := func(v *v1.PersistentVolume) { v.Annotations[reclaim.Annotation] = reclaim.AnnotationDone }
	same := func(*v1.PersistentVolume) {}
	for name, tc := range map[string]struct {
		action external.Action
		change func(*v1.PersistentVolume)
		writes bool
	}{
		"remove the finalizer":                      {external.RemoveFinalizer, same, true},
		"remove the finalizer of another volume":    {external.RemoveFinalizer, recreated, false},
		"remove the finalizer in another phase":     {external.RemoveFinalizer, unbound, false},
		"remove the finalizer under another policy": {external.RemoveFinalizer, kept, false},
		"set pending":                              {external.SetStatusPending, same, true},
		"set pending on another volume":            {external.SetStatusPending, recreated, false},
		"set pending on another version":           {external.SetStatusPending, func(v *v1.PersistentVolume) { v.ResourceVersion = "2" }, false},
		"set done":                                 {external.SetStatusDone, same, true},
		"set done on another volume":               {external.SetStatusDone, recreated, false},
		"set done on a volume that is not pending": {external.SetStatusDone, done, false},
		"remove pending":                           {external.RemoveStatus, same, true},
		"remove pending from another volume":       {external.RemoveStatus, recreated, false},
		"remove a status that is not pending":      {external.RemoveStatus, done, false},
	} {
		t.Run(name, func(t *testing.T) {
			if written, err := writeTo(t, tc.change, tc.action); written != tc.writes || (err == nil) != tc.writes {
				t.Errorf("written %v, error %v, want a write: %v", written, err, tc.writes)
			}
		})
	}
}

// writeTo executes the action on an observed volume that has changed since, and reports whether
// the volume was written.
func writeTo(t *testing.T, change func(*v1.PersistentVolume), action external.Action) (bool, error) {
	t.Helper()
	observed := directory("pv")
	if action != external.SetStatusPending {
		observed.Annotations[reclaim.Annotation] = reclaim.AnnotationPending
	}
	stored := observed.DeepCopy()
	change(stored)
	client := fake.NewClientset(stored.DeepCopy())
	c := guarded(t, client, &directories{}, observed)
	_, err := c.execute(t.Context(), c.observe(observed), action)
	now, readErr := client.CoreV1().PersistentVolumes().Get(t.Context(), "pv", metav1.GetOptions{})
	if readErr != nil {
		t.Fatal(readErr)
	}
	return len(now.Finalizers) != len(stored.Finalizers) || now.Annotations[reclaim.Annotation] != stored.Annotations[reclaim.Annotation], err
}

// TestObjectIsDeletedByUID: another volume may have the name meanwhile, and then none is deleted.
func TestObjectIsDeletedByUID(t *testing.T) {
	volume := directory("pv")
	client := fake.NewClientset()
	c := guarded(t, client, &directories{}, volume)
	if _, err := c.execute(t.Context(), c.observe(volume), external.DeleteObject); err != nil {
		t.Errorf("a volume that is gone already: %v", err)
	}
	sent, ok := client.Actions()[0].(clienttesting.DeleteActionImpl)
	if !ok || sent.DeleteOptions.Preconditions == nil || *sent.DeleteOptions.Preconditions.UID != volume.UID {
		t.Errorf("request %+v, want a deletion with the UID", client.Actions()[0])
	}
	client.PrependReactor("delete", "persistentvolumes", func(clienttesting.Action) (bool, runtime.Object, error) {
		return true, nil, errors.New("unavailable")
	})
	if _, err := c.execute(t.Context(), c.observe(volume), external.DeleteObject); err == nil {
		t.Error("a failed deletion counts as done")
	}
}

// An administrator clears claimRef while the object of a deleted volume cannot be deleted: the
// volume is Available then, and the next claim would get it without its disk.
func TestVolumeWithDeletedDiskGoesWhenAvailable(t *testing.T) {
	volume := directory("pv")
	client, d, refuse := fake.NewClientset(volume.DeepCopy()), &directories{}, true
	client.PrependReactor("delete", "persistentvolumes", func(clienttesting.Action) (bool, runtime.Object, error) {
		return refuse, nil, errors.New("unavailable")
	})
	c := guarded(t, client, d, volume)
	if err := c.Reconcile(t.Context(), "pv"); err == nil || len(d.deleted) != 1 {
		t.Fatalf("deleted %v, error %v; the object must stay", d.deleted, err)
	}
	available := volume.DeepCopy()
	available.Spec.ClaimRef, available.Status.Phase, available.ResourceVersion = nil, v1.VolumeAvailable, "2"
	if err := errors.Join(client.Tracker().Update(v1.SchemeGroupVersion.WithResource("persistentvolumes"), available, ""), c.Volumes.GetStore().Update(available)); err != nil {
		t.Fatal(err)
	}
	refuse = false
	if err := c.Reconcile(t.Context(), "pv"); err != nil || len(d.deleted) != 1 {
		t.Errorf("deleted %v, error %v", d.deleted, err)
	}
	if now, err := client.CoreV1().PersistentVolumes().Get(t.Context(), "pv", metav1.GetOptions{}); !apierrors.IsNotFound(err) {
		t.Errorf("the volume is still offered: %v, %v", now.Status.Phase, err)
	}
}

// The phase was written too early: no event of the volume follows the deletion of its claim.
func TestReleasedVolumeIsReconciledOnceItsClaimIsGone(t *testing.T) {
	volume, claim := directory("pv"), &v1.PersistentVolumeClaim{}
	ref := volume.Spec.ClaimRef
	claim.Namespace, claim.Name, claim.UID, claim.Spec.VolumeName = ref.Namespace, ref.Name, ref.UID, volume.Name
	client, d := fake.NewClientset(volume.DeepCopy(), claim), &directories{}
	c := guarded(t, client, d, volume)
	stepped := c.Loops()[0].Step()
	if err := c.Reconcile(t.Context(), "pv"); err != nil || len(d.deleted) > 0 {
		t.Fatalf("deleted %v, error %v", d.deleted, err)
	}
	if due, later := stepped.Keys(); len(due) > 0 || !slices.Equal(later, []string{"pv"}) {
		t.Errorf("keys %v are due and %v later, want the volume later", due, later)
	}
	if err := client.Tracker().Delete(v1.SchemeGroupVersion.WithResource("persistentvolumeclaims"), claim.Namespace, claim.Name); err != nil {
		t.Fatal(err)
	}
	if err := c.Reconcile(t.Context(), "pv"); err != nil || len(d.deleted) != 1 {
		t.Errorf("deleted %v, error %v", d.deleted, err)
	}
}

// The claim of a bound volume need not be read again: the phase changes.
func TestBoundVolumeIsNotReconciledLater(t *testing.T) {
	volume := directory("pv")
	volume.Status.Phase = v1.VolumeBound
	c := guarded(t, fake.NewClientset(volume.DeepCopy()), &directories{}, volume)
	stepped := c.Loops()[0].Step()
	if err := c.Reconcile(t.Context(), "pv"); err != nil {
		t.Fatal(err)
	}
	if due, later := stepped.Keys(); len(due)+len(later) > 0 {
		t.Errorf("keys %v and %v", due, later)
	}
}

func TestStaleCacheIsAwaited(t *testing.T) {
	volume := directory("pv")
	client, d := fake.NewClientset(volume.DeepCopy()), &directories{}
	c := guarded(t, client, d, volume)
	written := volume.DeepCopy()
	written.ResourceVersion = "2"
	c.versions.RecordWrite(written)
	if err := c.Reconcile(t.Context(), "pv"); !errors.Is(err, controller.ErrStaleCache) || len(client.Actions()) > 0 || len(d.deleted) > 0 {
		t.Errorf("requests %v, deleted %v, error %v", client.Actions(), d.deleted, err)
	}
}

// An entry without a volume has the volume created again, so it goes first.
func TestJournalEntryIsRemovedBeforeTheVolume(t *testing.T) {
	for action := external.Wait; action <= external.RemoveStatus; action++ {
		volume := directory("pv")
		volume.Annotations[reclaim.Annotation] = reclaim.AnnotationPending
		want := action == external.RemoveFinalizer || action == external.DeleteVolume || action == external.DeleteObject
		for failure, counted := range map[error]float64{nil: 0, errors.New("unavailable"): 1, controller.ErrStaleCache: 0} {
			client, d, called := fake.NewClientset(volume.DeepCopy()), &directories{}, false
			c := guarded(t, client, d, volume)
			c.RemoveEntry = func(context.Context, *v1.PersistentVolume) (bool, error) {
				called = true
				return false, failure
			}
			_, err := c.execute(t.Context(), c.observe(volume), action)
			if called != want {
				t.Errorf("%v: the entry is removed: %v", action, called)
			}
			if want && failure != nil && (!errors.Is(err, failure) || len(client.Actions()) > 0 || len(d.deleted) > 0) {
				t.Errorf("%v with an entry that stays: requests %v, deleted %v, error %v", action, client.Actions(), d.deleted, err)
			}
			if got := testutil.ToFloat64(c.Metrics.PersistentVolumeDeleteFailedTotal.WithLabelValues(volume.Spec.StorageClassName)); want && got != counted {
				t.Errorf("%v with an entry that stays: %v failures counted for %v", action, got, failure)
			}
		}
	}
}

func TestUnreachableVolumeIsNotDeleted(t *testing.T) {
	for _, reaches := range []bool{false, true} {
		volume := directory("pv")
		client, d := fake.NewClientset(volume.DeepCopy()), &directories{}
		c := guarded(t, client, d, volume)
		c.Reaches = func(*v1.PersistentVolume) bool { return reaches }
		if err := c.Reconcile(t.Context(), "pv"); err != nil || (len(d.deleted) > 0) != reaches {
			t.Errorf("reached %v: deleted %v, error %v", reaches, d.deleted, err)
		}
	}
}

// An informer without the index cannot tell of attachments.
func TestUnknownAttachmentsCountAsAttached(t *testing.T) {
	volume, client := directory("pv"), fake.NewClientset()
	c := guarded(t, client, &directories{}, volume)
	c.Attachments = informers.NewSharedInformerFactory(client, 0).Storage().V1().VolumeAttachments().Informer()
	if !c.isAttached(volume) {
		t.Error("the volume counts as detached")
	}
}

// vanishing loses its volume in the cache while the driver deletes the disk.
type vanishing struct {
	directories
	lose func()
}

func (v *vanishing) PrepareDelete(context.Context, *v1.PersistentVolume) (backend.DeleteCall, error) {
	return func(context.Context) error {
		v.lose()
		return nil
	}, nil
}

func TestProgressOfGoneVolumeIsForgotten(t *testing.T) {
	volume, deleter := directory("pv"), &vanishing{}
	c := guarded(t, fake.NewClientset(volume.DeepCopy()), deleter, volume)
	deleter.lose = func() {
		if err := c.Volumes.GetStore().Delete(volume); err != nil {
			t.Error(err)
		}
		c.onVolumeDeleted(volume)
	}
	if err := c.Reconcile(t.Context(), "pv"); err != nil {
		t.Error(err)
	}
	if got := c.memory.Get(volume.UID); got != (progress{}) {
		t.Errorf("the controller remembers %+v", got)
	}
}

// aliases is a backend whose volumes have two keys; only some of the volumes with a key have
// one disk.
type aliases struct {
	directories
	same func(a, b *v1.PersistentVolume) bool
}

func (*aliases) Keys(*v1.PersistentVolume) []string { return []string{"path", "inode"} }

func (a *aliases) Same(x, y *v1.PersistentVolume) bool { return a.same(x, y) }

func TestVolumesOnDisk(t *testing.T) {
	volume, other := directory("pv"), directory("other")
	other.UID = "other"
	backend := &aliases{}
	for name, tc := range map[string]struct {
		same func(c *Controller) bool
		want int
	}{
		"each volume counts once":                 {func(*Controller) bool { return true }, 2},
		"equal keys are no proof":                 {func(*Controller) bool { return false }, 0},
		"a volume deleted meanwhile still counts": {func(c *Controller) bool { return c.Volumes.GetStore().Replace(nil, "") == nil }, 2},
	} {
		c := guarded(t, fake.NewClientset(), backend, volume, other)
		backend.same = func(_, other *v1.PersistentVolume) bool { return other.Name != "" && tc.same(c) }
		if got := c.VolumesOnDisk(volume); len(got) != tc.want {
			t.Errorf("%s: %v, want %d", name, got, tc.want)
		}
	}
}
