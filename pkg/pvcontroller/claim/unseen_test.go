package claim

import (
	"errors"
	"strconv"
	"testing"

	v1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"

	"github.com/exeunt-io/exeunt/pkg/controller"
)

// failSecondWrite has the API server count the versions of volumes, and refuse the first write of a volume's phase.
func failSecondWrite(c *Controller) {
	client, version, failed := c.Client.(*fake.Clientset), 100, false
	client.PrependReactor("patch", "persistentvolumes", func(action clienttesting.Action) (bool, runtime.Object, error) {
		if action.GetSubresource() == "status" && !failed {
			failed = true
			return true, nil, errors.New("no answer")
		}
		_, object, err := clienttesting.ObjectReaction(client.Tracker())(action)
		if err != nil {
			return true, nil, err
		}
		volume := object.(*v1.PersistentVolume).DeepCopy()
		version++
		volume.ResourceVersion = strconv.Itoa(version)
		return true, volume, client.Tracker().Update(action.GetResource(), volume, "")
	})
}

// bindHalf reserves volume v for the claim: the next write fails, and no watch shows the first one.
func bindHalf(t *testing.T, c *Controller) {
	t.Helper()
	failSecondWrite(c)
	if err := c.Reconcile(t.Context(), "ns/claim"); err == nil {
		t.Fatal("no write failed")
	}
	volume, err := c.Client.CoreV1().PersistentVolumes().Get(t.Context(), "v", metav1.GetOptions{})
	if err != nil || volume.Spec.ClaimRef == nil {
		t.Fatalf("claimRef %v, %v", volume.Spec.ClaimRef, err)
	}
	c.Client.(*fake.Clientset).ClearActions()
}

func defaultClass() runtime.Object {
	standard := class("example.com/driver", immediate)
	standard.Annotations = map[string]string{"storageclass.kubernetes.io/is-default-class": "true"}
	return standard
}

func twoGi(v *v1.PersistentVolume) {
	v.Spec.Capacity = v1.ResourceList{v1.ResourceStorage: resource.MustParse("2Gi")}
}

// show has the watch show the object.
func show(t *testing.T, c *Controller, object runtime.Object) {
	t.Helper()
	informer := c.Caches.Volumes
	if _, ok := object.(*storagev1.StorageClass); ok {
		informer = c.Caches.Classes
	}
	if err := informer.GetStore().Add(object); err != nil {
		t.Fatal(err)
	}
}

// A claim that has reserved a volume takes no other one while the watch does not show the reservation.
func TestClaimAwaitsItsUnseenVolume(t *testing.T) {
	inAnyClass := pendingClaim(ofClass("class"))
	for name, tc := range map[string]struct {
		claim  *v1.PersistentVolumeClaim
		volume *v1.PersistentVolume
		others []runtime.Object
		later  runtime.Object // shown by the watch after the failed write
	}{
		"another volume fits":          {pendingClaim(), free("v", "1"), []runtime.Object{free("w", "1", twoGi)}, nil},
		"default class":                {pendingClaim(), free("v", "1"), nil, defaultClass()},
		"class with provisioner":       {inAnyClass, free("v", "1", inClass("class")), []runtime.Object{class("example.com/driver", immediate)}, nil},
		"class that waits is created":  {inAnyClass, free("v", "1", inClass("class")), nil, class("example.com/driver", wait)},
		"another volume is reserved":   {pendingClaim(), free("v", "1"), nil, free("w", "1", prebound)},
		"both volumes were reserved":   {pendingClaim(), free("v", "1", prebound), []runtime.Object{free("w", "1", prebound)}, nil},
		"reserved, waits for consumer": {inAnyClass, free("v", "1", inClass("class"), prebound), []runtime.Object{class("example.com/driver", wait)}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			c, _ := newController(t, append(tc.others, tc.claim, tc.volume)...)
			bindHalf(t, c)
			if tc.later != nil {
				show(t, c, tc.later)
			}
			for range 2 {
				if err := c.Reconcile(t.Context(), "ns/claim"); !errors.Is(err, controller.ErrStaleCache) || len(requests(c)) > 0 {
					t.Errorf("Reconcile() = %v, requests %q, want %v", err, requests(c), controller.ErrStaleCache)
				}
			}
		})
	}
}

// The claimRef was set, but the answer was lost, and the watch is late: a volume that fits better meanwhile is not taken.
func TestUnansweredReservationIsRepeated(t *testing.T) {
	waits := class("example.com/driver", wait)
	for name, tc := range map[string]struct {
		executed      bool
		first, later  *v1.PersistentVolume
		waitsForClass bool
	}{
		"write was executed, better volume":         {true, free("v", "1", twoGi), free("u", "1"), false},
		"write was executed, reserved volume":       {true, free("v", "1", twoGi), free("w", "1", prebound), false},
		"write was not executed, better volume":     {false, free("v", "1", twoGi), free("u", "1"), false},
		"both reserved, class waits for a consumer": {true, free("v", "1", twoGi, prebound, inClass("class")), free("u", "1", prebound, inClass("class")), true},
		"both reserved, of another class":           {true, free("v", "1", twoGi, prebound, inClass("other")), free("u", "1", prebound), false},
	} {
		t.Run(name, func(t *testing.T) {
			objects := []runtime.Object{pendingClaim(), tc.first}
			if tc.waitsForClass {
				objects = []runtime.Object{pendingClaim(ofClass("class")), tc.first, waits}
			}
			c, _ := newController(t, objects...)
			loseAnswer(c.Client.(*fake.Clientset), tc.executed)
			if err := c.Reconcile(t.Context(), "ns/claim"); err == nil {
				t.Fatal("no write failed")
			}
			if _, err := c.Client.CoreV1().PersistentVolumes().Create(t.Context(), tc.later,
				metav1.CreateOptions{}); err != nil {
				t.Fatal(err)
			}
			show(t, c, tc.later)
			c.volumeChanged(nil, tc.later)
			_ = c.Reconcile(t.Context(), "ns/claim")
			changeSeen(t, c, func(*v1.PersistentVolume) {})
			if claim := reconcile(t, c); claim.Spec.VolumeName != "v" || c.reserved.Get(claim.UID).name != "" {
				t.Errorf("the claim names volume %q, and %+v is remembered", claim.Spec.VolumeName, c.reserved.Get(claim.UID))
			}
			other, err := c.Client.CoreV1().PersistentVolumes().Get(t.Context(), tc.later.Name, metav1.GetOptions{})
			if err != nil || other.Spec.ClaimRef != nil && other.Spec.ClaimRef.UID != "" {
				t.Errorf("a second volume has claimRef %v, %v", other.Spec.ClaimRef, err)
			}
		})
	}
}

// loseAnswer has the first write of a volume get no answer.
func loseAnswer(client *fake.Clientset, executed bool) {
	writes := 0
	client.PrependReactor("patch", "persistentvolumes", func(action clienttesting.Action) (bool, runtime.Object, error) {
		switch writes++; {
		case writes == 2 && executed && action.(clienttesting.PatchAction).GetName() == "v":
			// the tracker does not check the version of the patch
			return true, nil, apierrors.NewConflict(v1.Resource("persistentvolumes"), "v", errors.New("changed"))
		case writes > 1:
			return false, nil, nil
		case executed:
			_, object, err := clienttesting.ObjectReaction(client.Tracker())(action)
			if err != nil {
				return true, nil, err
			}
			volume := object.(*v1.PersistentVolume).DeepCopy()
			volume.ResourceVersion = "100"
			if err := client.Tracker().Update(action.GetResource(), volume, ""); err != nil {
				return true, nil, err
			}
		}
		return true, nil, errors.New("connection lost")
	})
}

// The claim neither waits for ever nor forgets a volume that is still there.
func TestClaimIsBoundOnceWatchIsCurrent(t *testing.T) {
	for name, tc := range map[string]struct {
		change func(*v1.PersistentVolume) // of volume v; nil deletes the volume
		want   string
	}{
		"reservation is shown": {func(*v1.PersistentVolume) {}, "v"},
		"reservation is undone": {func(v *v1.PersistentVolume) {
			v.Spec.ClaimRef = &v1.ObjectReference{Namespace: "ns", Name: "other", UID: "other"}
		}, "w"},
		"volume is created again": {func(v *v1.PersistentVolume) {
			v.UID, v.ResourceVersion, v.Spec.StorageClassName, v.Spec.ClaimRef = "again", "1", "other", nil
		}, "w"},
		"volume is gone": {nil, "w"},
	} {
		t.Run(name, func(t *testing.T) {
			c, _ := newController(t, pendingClaim(), free("v", "1"), free("w", "1", twoGi))
			bindHalf(t, c)
			changeSeen(t, c, tc.change)
			claim := reconcile(t, c)
			if claim.Spec.VolumeName != tc.want || claim.Status.Phase != v1.ClaimBound {
				t.Errorf("the claim is %s to %q, want %q", claim.Status.Phase, claim.Spec.VolumeName, tc.want)
			}
			if reconcile(t, c); c.reserved.Get(claim.UID).name != "" {
				t.Error("the volume of a bound claim is still remembered")
			}
		})
	}
}

// changeSeen changes volume v, or deletes it without a change, and has the watch show that.
func changeSeen(t *testing.T, c *Controller, change func(*v1.PersistentVolume)) {
	t.Helper()
	volumes := c.Client.CoreV1().PersistentVolumes()
	now, err := volumes.Get(t.Context(), "v", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if change == nil {
		if err := errors.Join(volumes.Delete(t.Context(), "v", metav1.DeleteOptions{}),
			c.Caches.Volumes.GetStore().Delete(now)); err != nil {
			t.Fatal(err)
		}
		c.volumeGone(now)
		return
	}
	changed := now.DeepCopy()
	change(changed)
	if _, err := volumes.Update(t.Context(), changed, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	show(t, c, changed)
	c.volumeChanged(nil, changed)
}

func TestGoneClaimIsForgotten(t *testing.T) {
	claim := pendingClaim()
	c, _ := newController(t, claim, free("v", "1"))
	bindHalf(t, c)
	if c.reserved.Get(claim.UID).name != "v" {
		t.Error("the reserved volume is not remembered")
	}
	if c.claimGone(claim); c.reserved.Get(claim.UID).name != "" {
		t.Error("the volume of a deleted claim is still remembered")
	}
}

// The claim is gone when the answer to a write of its volume arrives.
func TestGoneClaimIsNotRememberedAgain(t *testing.T) {
	claim := pendingClaim()
	c, _ := newController(t, claim, free("v", "1"))
	if err := c.Caches.Claims.GetStore().Delete(claim); err != nil {
		t.Fatal(err)
	}
	c.claimGone(claim)
	if c.remember(claim, reservation{name: "v"}); c.reserved.Get(claim.UID).name != "" {
		t.Error("the volume of a deleted claim is remembered")
	}
}

// While the answer to a reservation is on its way, the claim is deleted, and the volume is made free again: the
// index keeps the volume, since no event follows.
func TestVolumeThatIsFreeAgainStaysInIndex(t *testing.T) {
	c, _ := newController(t, pendingClaim(), free("v", "1"))
	again := free("v", "200")
	c.Client.(*fake.Clientset).PrependReactor("patch", "persistentvolumes",
		func(action clienttesting.Action) (bool, runtime.Object, error) {
			if action.GetSubresource() == "" {
				show(t, c, again)
				c.volumeChanged(nil, again)
			}
			return false, nil, nil
		})
	if err := c.Reconcile(t.Context(), "ns/claim"); err != nil {
		t.Log(err) // the fake API server has the claim still
	}
	if name, err := c.index.Reserve(newClaim()); name != "v" || err != nil {
		t.Errorf("reserved %q, %v, want the volume", name, err)
	}
}
