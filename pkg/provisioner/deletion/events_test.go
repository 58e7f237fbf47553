package deletion

import (
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/tools/record"
	"sigs.k8s.io/sig-storage-lib-external-provisioner/v10/controller/metrics"

	"github.com/exeunt-io/exeunt/pkg/controller"
	"github.com/exeunt-io/exeunt/pkg/finalizer"
	"github.com/exeunt-io/exeunt/pkg/provisioner/csibackend"
	"github.com/exeunt-io/exeunt/test/fuzzobj"
)

// released returns a volume of the driver whose claim is gone.
func released(name string) *v1.PersistentVolume {
	return &v1.PersistentVolume{
		ObjectMeta: metav1.ObjectMeta{
			Name: name, UID: "uid", ResourceVersion: "1", Finalizers: []string{string(finalizer.External)},
			Annotations: map[string]string{"pv.kubernetes.io/provisioned-by": fuzzobj.Driver},
		},
		Spec: v1.PersistentVolumeSpec{
			PersistentVolumeReclaimPolicy: v1.PersistentVolumeReclaimDelete,
			PersistentVolumeSource: v1.PersistentVolumeSource{CSI: &v1.CSIPersistentVolumeSource{Driver: fuzzobj.Driver,
				VolumeHandle: "h"}},
			ClaimRef: &v1.ObjectReference{Namespace: "team", Name: "data", UID: "claim"},
		},
		Status: v1.PersistentVolumeStatus{Phase: v1.VolumeReleased},
	}
}

func attachmentTo(node string, volume *v1.PersistentVolume) *storagev1.VolumeAttachment {
	return &storagev1.VolumeAttachment{ObjectMeta: metav1.ObjectMeta{Name: node}, Spec: storagev1.VolumeAttachmentSpec{
		NodeName: node, Source: storagev1.VolumeAttachmentSource{PersistentVolumeName: &volume.Name},
	}}
}

func TestAttachedVolumeGetsNormalEvent(t *testing.T) {
	for name, tc := range map[string]struct {
		nodes []string
		want  string
	}{
		"one node":  {[]string{"b"}, "Normal VolumeDelete persistentvolume pv is still attached to node b, waiting for detach"},
		"two nodes": {[]string{"b", "a"}, "Normal VolumeDelete persistentvolume pv is still attached to node a and node b, waiting for detach"},
	} {
		t.Run(name, func(t *testing.T) {
			volume := released("pv")
			client := fake.NewClientset(volume)
			factory := informers.NewSharedInformerFactory(client, 0)
			events := record.NewFakeRecorder(10)
			driver := &shredder{}
			c, err := New(Config{
				Client: client, Deleter: &csibackend.Deleter{Client: client, Driver: driver, Translator: driver}, Honor: true,
				Volumes:     factory.Core().V1().PersistentVolumes().Informer(),
				Attachments: factory.Storage().V1().VolumeAttachments().Informer(),
				Reporter:    controller.NewReporter(events), Metrics: metrics.New("attached"), Locks: &controller.KeyLocks{},
				Backoff: controller.Backoff{Initial: time.Second, Max: time.Second},
			})
			if err != nil {
				t.Fatal(err)
			}
			if err := c.Volumes.GetStore().Add(volume); err != nil {
				t.Fatal(err)
			}
			for _, node := range tc.nodes {
				if err := c.Attachments.GetStore().Add(attachmentTo(node, volume)); err != nil {
					t.Fatal(err)
				}
			}
			if err := c.Reconcile(t.Context(), volume.Name); err != nil {
				t.Fatal(err)
			}
			if len(driver.deleted) > 0 || len(events.Events) != 1 {
				t.Fatalf("deleted %v, with %d events, want no deletion and one event", driver.deleted, len(events.Events))
			}
			if got := <-events.Events; got != tc.want {
				t.Errorf("event %q, want %q", got, tc.want)
			}
		})
	}
}

// The volume names no provisioner, so the unbound claim may still be bound to the volume.
func TestVolumeWithoutProvisionerNameIsKept(t *testing.T) {
	volume, driver := released("pv"), &shredder{}
	volume.Annotations = map[string]string{"pv.kubernetes.io/provisioned-by": "",
		"pv.kubernetes.io/migrated-to": fuzzobj.Driver}
	volume.DeletionTimestamp = &metav1.Time{Time: time.Unix(1, 0)}
	claim := &v1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "data", UID: "claim"}}
	client := fake.NewClientset(volume, claim)
	c, err := New(Config{
		Client: client, Volumes: informers.NewSharedInformerFactory(client, 0).Core().V1().PersistentVolumes().Informer(),
		Deleter: &csibackend.Deleter{Client: client, Driver: driver, Translator: driver}, Honor: true,
		Reporter: controller.NewReporter(record.NewFakeRecorder(10)), Metrics: metrics.New("unnamed"),
		Locks:   &controller.KeyLocks{},
		Backoff: controller.Backoff{Initial: time.Second, Max: time.Second},
	})
	if err == nil {
		err = c.Volumes.GetStore().Add(volume)
	}
	if err == nil {
		err = c.Reconcile(t.Context(), volume.Name)
	}
	if err != nil || len(driver.deleted) > 0 {
		t.Errorf("deleted %v, want no deletion; %v", driver.deleted, err)
	}
}
