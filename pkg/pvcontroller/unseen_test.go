package pvcontroller_test

import (
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/client-go/tools/record"

	"github.com/exeunt-io/exeunt/pkg/finalizer"
	"github.com/exeunt-io/exeunt/pkg/storage"
)

// loseFirst has the first write of the resource answered, and etcd restored to the version of before: no watch and no list
// shows anything.
func loseFirst(client *fake.Clientset, verb, resource string, answer func() runtime.Object) {
	var lost atomic.Bool
	client.PrependReactor(verb, resource, func(clienttesting.Action) (bool, runtime.Object, error) {
		if lost.Swap(true) {
			return false, nil, nil
		}
		return true, answer(), nil
	})
}

// lostWrite is a write that is lost: what is before, the write and its answer, and whether it was repeated.
type lostWrite struct {
	change func(*v1.PersistentVolume, *v1.PersistentVolumeClaim)
	verb   string
	answer func(*v1.PersistentVolume, *v1.PersistentVolumeClaim) runtime.Object
	done   func(*v1.PersistentVolume, *v1.PersistentVolumeClaim) bool
}

var lostWrites = map[string]lostWrite{
	"phase of a claim": {
		func(v *v1.PersistentVolume, c *v1.PersistentVolumeClaim) {
			v.Spec.ClaimRef = &v1.ObjectReference{Namespace: c.Namespace, Name: c.Name, UID: c.UID}
			c.Annotations, c.Spec.VolumeName = map[string]string{storage.AnnBindCompleted: "yes"}, v.Name
			v.Status.Phase = v1.VolumeBound
		}, "patch persistentvolumeclaims",
		func(v *v1.PersistentVolume, c *v1.PersistentVolumeClaim) runtime.Object {
			c.Status = v1.PersistentVolumeClaimStatus{Phase: v1.ClaimBound, AccessModes: v.Spec.AccessModes, Capacity: v.Spec.Capacity}
			return c
		},
		func(_ *v1.PersistentVolume, c *v1.PersistentVolumeClaim) bool { return c.Status.Phase == v1.ClaimBound },
	},
	"phase of a volume": {
		func(v *v1.PersistentVolume, c *v1.PersistentVolumeClaim) {
			c.Spec.VolumeName, v.Status.Phase = "other", v1.VolumePending
		}, "patch persistentvolumes",
		func(v *v1.PersistentVolume, _ *v1.PersistentVolumeClaim) runtime.Object {
			v.Status.Phase = v1.VolumeAvailable
			return v
		},
		func(v *v1.PersistentVolume, _ *v1.PersistentVolumeClaim) bool {
			return v.Status.Phase == v1.VolumeAvailable
		},
	},
	"protection of a claim": {
		func(_ *v1.PersistentVolume, c *v1.PersistentVolumeClaim) {
			c.Spec.VolumeName, c.Finalizers = "other", nil
		}, "patch persistentvolumeclaims",
		func(_ *v1.PersistentVolume, c *v1.PersistentVolumeClaim) runtime.Object {
			c.Finalizers = []string{string(finalizer.ClaimProtection)}
			return c
		},
		func(_ *v1.PersistentVolume, c *v1.PersistentVolumeClaim) bool { return len(c.Finalizers) == 1 },
	},
	"last finalizer of a claim": {
		func(_ *v1.PersistentVolume, c *v1.PersistentVolumeClaim) { c.DeletionTimestamp = new(metav1.Now()) }, "patch persistentvolumeclaims",
		func(_ *v1.PersistentVolume, c *v1.PersistentVolumeClaim) runtime.Object {
			c.Finalizers = nil
			return c
		},
		func(_ *v1.PersistentVolume, c *v1.PersistentVolumeClaim) bool { return len(c.Finalizers) == 0 },
	},
	"last finalizer of a volume": {
		func(v *v1.PersistentVolume, c *v1.PersistentVolumeClaim) {
			c.Spec.VolumeName, v.DeletionTimestamp = "other", new(metav1.Now())
		}, "patch persistentvolumes",
		func(v *v1.PersistentVolume, _ *v1.PersistentVolumeClaim) runtime.Object {
			v.Finalizers = nil
			return v
		},
		func(v *v1.PersistentVolume, _ *v1.PersistentVolumeClaim) bool { return len(v.Finalizers) == 0 },
	},
}

func TestObjectsWhoseWriteWasLostAreReconciled(t *testing.T) {
	volume, _, claim := recycledVolume(v1.VolumeAvailable)
	volume.Finalizers = []string{string(finalizer.VolumeProtection)}
	claim.Finalizers, claim.Spec.StorageClassName = []string{string(finalizer.ClaimProtection)}, new("")
	for name, tc := range lostWrites {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				volume, claim := volume.DeepCopy(), claim.DeepCopy()
				tc.change(volume, claim)
				client := fake.NewClientset(volume, claim)
				verb, resource := tc.verb[:5], tc.verb[6:]
				loseFirst(client, verb, resource, func() runtime.Object {
					written, of := volume.DeepCopy(), claim.DeepCopy()
					written.ResourceVersion, of.ResourceVersion = "5000", "5000"
					return tc.answer(written, of)
				})
				run(t, client, record.NewFakeRecorder(100))
				<-time.After(3 * time.Minute)
				synctest.Wait()
				volume, err := client.CoreV1().PersistentVolumes().Get(t.Context(), "v", metav1.GetOptions{})
				claim, claimErr := client.CoreV1().PersistentVolumeClaims("ns").Get(t.Context(), "claim", metav1.GetOptions{})
				if err != nil || claimErr != nil || !tc.done(volume, claim) {
					t.Errorf("nobody wrote again: phase %s, claimRef %v, finalizers %q and %q, %v, %v",
						storage.PhaseOf(volume.Status.Phase), volume.Spec.ClaimRef, volume.Finalizers, claim.Finalizers, err, claimErr)
				}
			})
		})
	}
}
