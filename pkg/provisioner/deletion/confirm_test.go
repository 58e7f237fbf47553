package deletion

import (
	"context"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/client-go/tools/record"
	"sigs.k8s.io/sig-storage-lib-external-provisioner/v10/controller/metrics"

	"github.com/exeunt-io/exeunt/pkg/controller"
)

// TestRetainCountsUntilDeleteVolume sets the policy Retain after the first live read of the volume.
func TestRetainCountsUntilDeleteVolume(t *testing.T) {
	for name, tc := range map[string]struct {
		duringClaimRead, duringEntryRemoval bool
	}{
		"while the claim is read":            {duringClaimRead: true},
		"while the journal entry is removed": {duringEntryRemoval: true},
	} {
		t.Run(name, func(t *testing.T) {
			volume := released("pv")
			volume.Spec.PersistentVolumeSource = v1.PersistentVolumeSource{HostPath: &v1.HostPathVolumeSource{Path: "/d"}}
			client, d := fake.NewClientset(volume), &directories{}
			retain := func() {
				kept := volume.DeepCopy()
				kept.Spec.PersistentVolumeReclaimPolicy = v1.PersistentVolumeReclaimRetain
				if err := client.Tracker().Update(v1.SchemeGroupVersion.WithResource("persistentvolumes"), kept, ""); err != nil {
					t.Error(err)
				}
			}
			client.PrependReactor("get", "persistentvolumeclaims", func(clienttesting.Action) (bool, runtime.Object, error) {
				if tc.duringClaimRead {
					retain()
				}
				return false, nil, nil
			})
			entry := tc.duringEntryRemoval
			err := reconcileOnce(t, client, d, volume, func(context.Context, *v1.PersistentVolume) (bool, error) {
				removed := entry
				if removed {
					retain()
				}
				entry = false
				return removed, nil
			})
			if err != nil || len(d.deleted) > 0 {
				t.Errorf("deleted %v, error %v", d.deleted, err)
			}
		})
	}
}

// TestClaimRefThatChangedIsReadAgain changes the claimRef to that of a claim that exists.
func TestClaimRefThatChangedIsReadAgain(t *testing.T) {
	volume := released("pv")
	volume.Spec.PersistentVolumeSource = v1.PersistentVolumeSource{HostPath: &v1.HostPathVolumeSource{Path: "/d"}}
	used := volume.DeepCopy()
	used.Spec.ClaimRef = &v1.ObjectReference{Namespace: "ns", Name: "new", UID: "new"}
	claim := &v1.PersistentVolumeClaim{}
	claim.Namespace, claim.Name, claim.UID, claim.Spec.VolumeName = "ns", "new", "new", volume.Name
	client, d := fake.NewClientset(used, claim), &directories{}
	err := reconcileOnce(t, client, d, volume, nil)
	if err != nil || len(d.deleted) > 0 {
		t.Errorf("deleted %v, error %v", d.deleted, err)
	}
}

// reconcileOnce reconciles the volume, which the cache shows.
func reconcileOnce(
	t *testing.T, client kubernetes.Interface, d *directories, volume *v1.PersistentVolume,
	removeEntry func(context.Context, *v1.PersistentVolume) (bool, error),
) error {
	t.Helper()
	c, err := New(Config{
		Client: client, Volumes: informers.NewSharedInformerFactory(client, 0).Core().V1().PersistentVolumes().Informer(),
		Deleter: d, Honor: true,
		Reporter: controller.NewReporter(&record.FakeRecorder{}), Metrics: metrics.New("confirm"),
		Locks:   &controller.KeyLocks{},
		Backoff: controller.Backoff{Initial: time.Second, Max: time.Second}, RemoveEntry: removeEntry,
	})
	if err != nil {
		return err
	}
	if err := c.Volumes.GetStore().Add(volume); err != nil {
		return err
	}
	return c.Reconcile(t.Context(), volume.Name)
}
