package deletion

import (
	"fmt"
	"net/http"
	"testing"
	"time"

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
	"github.com/exeunt-io/exeunt/pkg/provisioner/csibackend"
)

// A webhook chooses the code of its denial. Without the finalizer, the disk of a volume that is deleted first leaks: the
// user has to know.
func TestRefusedWriteOfVolumeIsReported(t *testing.T) {
	unprotected := released("pv")
	unprotected.Finalizers, unprotected.Status.Phase = nil, v1.VolumeBound
	const adds = "Warning WriteRefused Adding the finalizer external-provisioner.volume.kubernetes.io/finalizer, which keeps the volume until its disk is deleted, failed, and is repeated with backoff: "
	for name, tc := range map[string]struct {
		volume *v1.PersistentVolume
		event  string
	}{
		"finalizer is added":   {unprotected, adds},
		"finalizer is removed": {released("pv"), "Warning VolumeFailedDelete "},
	} {
		for _, code := range []int32{http.StatusForbidden, http.StatusNotFound, http.StatusConflict, http.StatusUnprocessableEntity} {
			t.Run(fmt.Sprintf("%s, %d", name, code), func(t *testing.T) {
				client := fake.NewClientset(tc.volume)
				client.PrependReactor("patch", "persistentvolumes", func(clienttesting.Action) (bool, runtime.Object, error) {
					return true, nil, &apierrors.StatusError{ErrStatus: metav1.Status{Status: metav1.StatusFailure, Code: code, Message: `admission webhook "w" denied the request`}}
				})
				client.PrependReactor("delete", "persistentvolumes", func(clienttesting.Action) (bool, runtime.Object, error) {
					return true, nil, nil // its finalizers keep the object
				})
				factory, events, driver := informers.NewSharedInformerFactory(client, 0), record.NewFakeRecorder(10), &shredder{}
				c, err := New(Config{
					Client: client, Deleter: &csibackend.Deleter{Client: client, Driver: driver, Translator: driver}, Honor: true,
					Volumes: factory.Core().V1().PersistentVolumes().Informer(), Attachments: factory.Storage().V1().VolumeAttachments().Informer(),
					Reporter: controller.NewReporter(events), Metrics: metrics.New("refused"), Locks: &controller.KeyLocks{},
					Backoff: controller.Backoff{Initial: time.Second, Max: time.Second},
				})
				if err == nil {
					err = c.Volumes.GetStore().Add(tc.volume)
				}
				if err != nil {
					t.Fatal(err)
				}
				for range 3 {
					if err := c.Reconcile(t.Context(), "pv"); err == nil {
						t.Fatal("the refusal is no error")
					}
				}
				if count := len(events.Events); count != 1 {
					t.Fatalf("%d events", count)
				}
				if got, want := <-events.Events, tc.event+`patch volume pv: admission webhook "w" denied the request`; got != want {
					t.Errorf("event %q, want %q", got, want)
				}
			})
		}
	}
}
