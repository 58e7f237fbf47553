package protection

import (
	"fmt"
	"net/http"
	"testing"

	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/client-go/tools/record"

	"github.com/exeunt-io/exeunt/pkg/controller"
)

// A webhook or quota refuses the write of the finalizer: without an event nothing says why the claim stays.
func TestRefusedWriteOfFinalizerIsReported(t *testing.T) {
	for write, claim := range map[string]*v1.PersistentVolumeClaim{"Adding": claimOf(unprotected), "Removing": claimOf(inDeletion)} {
		for _, code := range []int32{http.StatusBadRequest, http.StatusNotFound, http.StatusConflict, http.StatusUnprocessableEntity} {
			t.Run(fmt.Sprintf("%s, %d", write, code), func(t *testing.T) {
				events := record.NewFakeRecorder(10)
				c, client, _ := newController(t, []runtime.Object{claim}, claim)
				c.reporter = controller.NewReporter(events)
				client.PrependReactor("patch", "persistentvolumeclaims", func(clienttesting.Action) (bool, runtime.Object, error) {
					return true, nil, &apierrors.StatusError{ErrStatus: metav1.Status{Status: metav1.StatusFailure, Code: code, Message: `admission webhook "w" denied the request`}}
				})
				for range 3 {
					if err := c.Reconcile(t.Context(), "shop/data"); err == nil {
						t.Fatal("the refusal is no error")
					}
				}
				want := "Warning WriteRefused " + write + ` the finalizer kubernetes.io/pvc-protection failed, and is repeated with backoff: patch claim shop/data: admission webhook "w" denied the request`
				if count := len(events.Events); count != 1 {
					t.Fatalf("%d events", count)
				}
				if got := <-events.Events; got != want {
					t.Errorf("event %q, want %q", got, want)
				}
			})
		}
	}
}
