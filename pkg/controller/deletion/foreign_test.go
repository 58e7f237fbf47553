package deletion_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/tools/record"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/sig-storage-lib-external-provisioner/v10/controller/metrics"

	"github.com/exeunt-io/exeunt/pkg/binding"
	"github.com/exeunt-io/exeunt/pkg/controller"
	"github.com/exeunt-io/exeunt/pkg/controller/deletion"
	"github.com/exeunt-io/exeunt/pkg/controller/provisioning"
	"github.com/exeunt-io/exeunt/pkg/finalizer"
)

// driver deletes everything.
type driver struct{ deleted atomic.Int32 }

func (*driver) Name() string { return "ours" }

func (d *driver) DeleteVolume(context.Context, string, map[string]string) error {
	d.deleted.Add(1)
	return nil
}

// released is a volume of the driver whose claim is gone.
func released() *v1.PersistentVolume {
	return &v1.PersistentVolume{
		ObjectMeta: metav1.ObjectMeta{Name: "mine", UID: "uid-mine", ResourceVersion: "1", Finalizers: []string{string(finalizer.External)}},
		Spec: v1.PersistentVolumeSpec{
			PersistentVolumeReclaimPolicy: v1.PersistentVolumeReclaimDelete,
			ClaimRef:                      &v1.ObjectReference{Namespace: "ns", Name: "gone", UID: "uid-gone"},
			PersistentVolumeSource:        v1.PersistentVolumeSource{CSI: &v1.CSIPersistentVolumeSource{Driver: "ours", VolumeHandle: "handle"}},
		},
		Status: v1.PersistentVolumeStatus{Phase: v1.VolumeReleased},
	}
}

func TestAVolumeWaitsForWhatIsKeptByNameOnly(t *testing.T) {
	others := released()
	others.Name, others.UID, others.Status.Phase = "theirs", "uid-theirs", v1.VolumeBound
	others.Annotations = map[string]string{binding.ProvisionedBy: "theirs"}
	attachment := &storagev1.VolumeAttachment{
		ObjectMeta: metav1.ObjectMeta{Name: "attachment"},
		Spec:       storagev1.VolumeAttachmentSpec{Attacher: "theirs", Source: storagev1.VolumeAttachmentSource{PersistentVolumeName: ptr.To("mine")}},
	}
	for name, tc := range map[string]struct {
		holder runtime.Object
		leave  func(context.Context, *fake.Clientset) error
	}{
		"a volume of another driver with the same handle": {others, func(ctx context.Context, client *fake.Clientset) error {
			return client.CoreV1().PersistentVolumes().Delete(ctx, "theirs", metav1.DeleteOptions{})
		}},
		"an attachment of another driver": {attachment, func(ctx context.Context, client *fake.Clientset) error {
			return client.StorageV1().VolumeAttachments().Delete(ctx, "attachment", metav1.DeleteOptions{})
		}},
	} {
		t.Run(name, func(t *testing.T) {
			client, driver := fake.NewClientset(released(), tc.holder), &driver{}
			reconciler := run(t, client, driver)
			if err := reconciler.Reconcile(t.Context(), "mine"); err != nil || driver.deleted.Load() != 0 {
				t.Fatalf("the volume was deleted %d times, %v, want never", driver.deleted.Load(), err)
			}
			if err := tc.leave(t.Context(), client); err != nil {
				t.Fatal(err)
			}
			working, stop := context.WithTimeout(t.Context(), 10*time.Second)
			defer stop()
			go reconciler.Run(working, 1)
			for driver.deleted.Load() == 0 {
				select {
				case <-working.Done():
					t.Fatal("nobody has woken the volume")
				case <-time.After(time.Millisecond):
				}
			}
		})
	}
}

// run returns a reconciler over filled caches that keep the names only of what
// other drivers have.
func run(t *testing.T, client *fake.Clientset, driver *driver) *deletion.Controller {
	t.Helper()
	factory, names := informers.NewSharedInformerFactory(client, 0), provisioning.Names{Driver: driver.Name()}
	volumes, attachments := factory.Core().V1().PersistentVolumes().Informer(), factory.Storage().V1().VolumeAttachments().Informer()
	if err := errors.Join(volumes.SetTransform(names.TrimVolume), attachments.SetTransform(names.TrimAttachment)); err != nil {
		t.Fatal(err)
	}
	reconciler, err := deletion.New(deletion.Config{
		Client: client, Volumes: volumes, Attachments: attachments, Driver: driver,
		Reporter: controller.NewReporter(record.NewFakeRecorder(100)), Metrics: metrics.New("test"),
		Backoff: controller.Backoff{First: time.Millisecond, Most: time.Second}, Honor: true, Turns: &controller.Turns{},
	})
	if err != nil {
		t.Fatal(err)
	}
	factory.StartWithContext(t.Context())
	factory.WaitForCacheSync(t.Context().Done())
	return reconciler
}
