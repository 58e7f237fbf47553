package deletion

import (
	"context"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/tools/record"
	"sigs.k8s.io/sig-storage-lib-external-provisioner/v10/controller/metrics"

	"github.com/exeunt-io/exeunt/pkg/controller"
	"github.com/exeunt-io/exeunt/pkg/provisioner/csibackend"
)

// busy is a driver whose deletions fail.
type busy struct{ shredder }

func (*busy) DeleteVolume(context.Context, string, map[string]string) error {
	return status.Error(codes.Internal, "disk is busy")
}

// The key words are those of external-provisioner 6.4.
func TestVolumeEventsHaveUpstreamKeyWords(t *testing.T) {
	for name, tc := range map[string]struct {
		attached bool
		words    []string
	}{
		"driver fails":     {false, []string{"Warning VolumeFailedDelete ", "rpc error: code = Internal desc = disk is busy"}},
		"volume is in use": {true, []string{"Normal VolumeDelete ", "persistentvolume pv is still attached to node b"}},
	} {
		t.Run(name, func(t *testing.T) {
			volume := released("pv")
			client := fake.NewClientset(volume)
			factory, events, driver := informers.NewSharedInformerFactory(client, 0), record.NewFakeRecorder(10), &busy{}
			c, err := New(Config{
				Client: client, Deleter: &csibackend.Deleter{Client: client, Driver: driver, Translator: driver}, Honor: true,
				Volumes:     factory.Core().V1().PersistentVolumes().Informer(),
				Attachments: factory.Storage().V1().VolumeAttachments().Informer(),
				Reporter:    controller.NewReporter(events), Metrics: metrics.New("words"), Locks: &controller.KeyLocks{},
				Backoff: controller.Backoff{Initial: time.Second, Max: time.Second},
			})
			if err == nil {
				err = c.Volumes.GetStore().Add(volume)
			}
			if err == nil && tc.attached {
				err = c.Attachments.GetStore().
					Add(&storagev1.VolumeAttachment{ObjectMeta: metav1.ObjectMeta{Name: "b"}, Spec: storagev1.VolumeAttachmentSpec{
						NodeName: "b", Source: storagev1.VolumeAttachmentSource{PersistentVolumeName: &volume.Name},
					}})
			}
			if err != nil {
				t.Fatal(err)
			}
			_ = c.Reconcile(t.Context(), volume.Name)
			if len(events.Events) != 1 {
				t.Fatalf("%d events", len(events.Events))
			}
			event := <-events.Events
			for _, words := range tc.words {
				if !strings.Contains(event, words) {
					t.Errorf("event %q lacks %q", event, words)
				}
			}
		})
	}
}
