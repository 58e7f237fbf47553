package claim

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

// A webhook chooses the code of its denial. Each write of a binding has an event if it is refused.
func TestRefusedWriteIsReported(t *testing.T) {
	bound := free("v", "1", referringTo("claim", "claim"), phaseOfVolume(v1.VolumeBound))
	for name, tc := range map[string]struct {
		resource string
		objects  []runtime.Object
		event    string
	}{
		"claimRef":       {"persistentvolumes", []runtime.Object{pendingClaim(), free("v", "1")}, "Warning FailedBinding"},
		"phase":          {"persistentvolumes", []runtime.Object{pendingClaim(), free("v", "1", referringTo("claim", "claim"))}, "Warning FailedBinding"},
		"name of volume": {"persistentvolumeclaims", []runtime.Object{pendingClaim(), bound}, "Warning FailedBinding"},
		"default class":  {"persistentvolumeclaims", []runtime.Object{pendingClaim(), defaultClass()}, "Warning FailedBinding"},
		"provisioner":    {"persistentvolumeclaims", []runtime.Object{pendingClaim(ofClass("class")), class("example.com/driver", immediate)}, "Warning ProvisioningFailed"},
	} {
		for _, code := range []int32{http.StatusBadRequest, http.StatusNotFound, http.StatusConflict, http.StatusGone, http.StatusUnprocessableEntity} {
			t.Run(fmt.Sprintf("%s, %d", name, code), func(t *testing.T) {
				c, events := newController(t, tc.objects...)
				c.Client.(*fake.Clientset).PrependReactor("patch", tc.resource, func(clienttesting.Action) (bool, runtime.Object, error) {
					return true, nil, &apierrors.StatusError{ErrStatus: metav1.Status{Status: metav1.StatusFailure, Code: code, Message: `admission webhook "w" denied the request`}}
				})
				for range 3 {
					if err := c.Reconcile(t.Context(), "ns/claim"); err == nil {
						t.Fatal("the refusal is no error")
					}
				}
				if got := events.sent(); len(got) != 1 || got[0] != "*v1.PersistentVolumeClaim claim: "+tc.event {
					t.Errorf("events %q, want one %s", got, tc.event)
				}
			})
		}
	}
}

// A mutating webhook removes the default class from the claim: no event of the claim follows.
func TestUndoneClassIsAnError(t *testing.T) {
	c, events := newController(t, pendingClaim(), defaultClass())
	c.Client.(*fake.Clientset).PrependReactor("patch", "persistentvolumeclaims", func(clienttesting.Action) (bool, runtime.Object, error) {
		return true, pendingClaim(), nil
	})
	if err := c.Reconcile(t.Context(), "ns/claim"); err == nil || len(events.sent()) != 1 {
		t.Errorf("Reconcile() = %v, events %q", err, events.sent())
	}
}
