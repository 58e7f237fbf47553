package cloning_test

import (
	"fmt"
	"net/http"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/client-go/tools/record"
)

// A webhook refuses the removal of the finalizer, or undoes it: without an event nothing says why the source stays.
func TestRefusedRemovalOfFinalizerIsReported(t *testing.T) {
	const removal = "Warning WriteRefused Removing the finalizer provisioner.storage.kubernetes.io/cloning-protection"
	for _, code := range []int32{0, http.StatusBadRequest, http.StatusNotFound, http.StatusConflict, http.StatusUnprocessableEntity} {
		t.Run(fmt.Sprint(code), func(t *testing.T) {
			events, source := record.NewFakeRecorder(10), claim("source", protected, deleting)
			c, client, _ := worldWithEvents(t, events, source)
			reason := `admission webhook "w" denied the request`
			if code == 0 {
				reason = "another program, such as an admission webhook, undoes this write each time; the write is repeated less and less often"
			}
			client.PrependReactor("patch", "persistentvolumeclaims", func(clienttesting.Action) (bool, runtime.Object, error) {
				if code == 0 {
					return true, source, nil
				}
				return true, nil, &apierrors.StatusError{ErrStatus: metav1.Status{Status: metav1.StatusFailure, Code: code, Message: reason}}
			})
			for range 3 {
				if err := c.Reconcile(t.Context(), "ns/source"); err == nil {
					t.Fatal("the refusal is no error")
				}
			}
			want := removal + " failed, and is repeated with backoff: patch claim ns/source: " + reason
			if count := len(events.Events); count != 1 {
				t.Fatalf("%d events", count)
			}
			if got := <-events.Events; got != want {
				t.Errorf("event %q, want %q", got, want)
			}
		})
	}
}
