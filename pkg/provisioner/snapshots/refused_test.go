package snapshots_test

import (
	"fmt"
	"net/http"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clienttesting "k8s.io/client-go/testing"
)

// A webhook refuses the removal of the finalizer, or undoes it: without an event nothing says why the snapshot stays.
func TestRefusedRemovalOfFinalizerIsReported(t *testing.T) {
	const removal = "Warning WriteRefused Removing the finalizer " + ours + " failed, and is repeated with backoff: "
	for code, reason := range map[int32]string{
		0:                              "snapshot ns/snap: too many writes to one object: another program reverts our writes",
		http.StatusForbidden:           `patch snapshot ns/snap: admission webhook "w" denied the request`,
		http.StatusNotFound:            `patch snapshot ns/snap: admission webhook "w" denied the request`,
		http.StatusUnprocessableEntity: `patch snapshot ns/snap: admission webhook "w" denied the request`,
	} {
		t.Run(fmt.Sprint(code), func(t *testing.T) {
			w := newWorld(t, 0, snapshot("snap", foreign, ours))
			w.rights.allowed = true
			w.metadata.PrependReactor("patch", "volumesnapshots", func(clienttesting.Action) (bool, runtime.Object, error) {
				if code == 0 {
					return true, snapshot("snap", foreign, ours), nil
				}
				return true, nil, &apierrors.StatusError{ErrStatus: metav1.Status{Status: metav1.StatusFailure, Code: code, Message: `admission webhook "w" denied the request`}}
			})
			for range 3 {
				if err := w.Reconcile(t.Context(), "ns/snap"); err == nil {
					t.Fatal("the refusal is no error")
				}
			}
			if count := len(w.events.Events); count != 1 {
				t.Fatalf("%d events", count)
			}
			if got := <-w.events.Events; got != removal+reason {
				t.Errorf("event %q, want %q", got, removal+reason)
			}
		})
	}
}
