package deletion

import (
	"fmt"
	"net/http"
	"testing"

	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"
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
		for _, code := range []int32{http.StatusForbidden, http.StatusNotFound, http.StatusConflict,
			http.StatusUnprocessableEntity} {
			t.Run(fmt.Sprintf("%s, %d", name, code), func(t *testing.T) {
				client := fake.NewClientset(tc.volume)
				client.PrependReactor("patch", "persistentvolumes", func(clienttesting.Action) (bool, runtime.Object, error) {
					return true, nil, &apierrors.StatusError{ErrStatus: metav1.Status{Status: metav1.StatusFailure, Code: code,
						Message: `admission webhook "w" denied the request`}}
				})
				client.PrependReactor("delete", "persistentvolumes", func(clienttesting.Action) (bool, runtime.Object, error) {
					return true, nil, nil // its finalizers keep the object
				})
				c, events := newReporting(t, client, tc.volume)
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
