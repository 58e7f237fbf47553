package nodedeployment_test

import (
	"fmt"
	"net/http"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/client-go/tools/record"

	"github.com/exeunt-io/exeunt/pkg/controller"
	"github.com/exeunt-io/exeunt/pkg/provisioner/nodedeployment"
)

func TestRefusedSelectionIsReported(t *testing.T) {
	for _, code := range []int32{http.StatusBadRequest, http.StatusNotFound, http.StatusConflict, http.StatusUnprocessableEntity} {
		t.Run(fmt.Sprint(code), func(t *testing.T) {
			events := record.NewFakeRecorder(10)
			w := newWorld(t, time.Hour, claim(), class(), func(c *nodedeployment.Config) { c.Reporter = controller.NewReporter(events) })
			w.client.PrependReactor("patch", "persistentvolumeclaims", func(clienttesting.Action) (bool, runtime.Object, error) {
				return true, nil, &apierrors.StatusError{ErrStatus: metav1.Status{Status: metav1.StatusFailure, Code: code, Message: `admission webhook "w" denied the request`}}
			})
			for range 3 {
				if err := w.Reconcile(t.Context(), "ns/claim"); err == nil {
					t.Fatal("the refusal is no error")
				}
			}
			want := `Warning WriteRefused Selecting node mine for the claim failed, and is repeated with backoff: patch claim ns/claim: admission webhook "w" denied the request`
			if count := len(events.Events); count != 1 {
				t.Fatalf("%d events", count)
			}
			if got := <-events.Events; got != want {
				t.Errorf("event %q, want %q", got, want)
			}
		})
	}
}
