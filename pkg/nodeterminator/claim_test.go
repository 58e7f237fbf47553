package nodeterminator

import (
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clienttesting "k8s.io/client-go/testing"
)

// A webhook may deny a deletion with the code of an object that is gone. No event of the object follows, so the machine
// of the node ran on.
func TestDeletionDeniedAsNotFoundIsRepeated(t *testing.T) {
	for _, resource := range []string{"nodeclaims", "nodes"} {
		for name, gone := range map[string]bool{"lives": false, "is gone": true} {
			t.Run(resource+", the object "+name, func(t *testing.T) {
				inDisrupted(t, "30m", func(w *disrupted) { expectDeletionRepeated(t, w, resource, gone) })
			})
		}
	}
}

func expectDeletionRepeated(t *testing.T, w *disrupted, resource string, gone bool) {
	t.Helper()
	absent := apierrors.NewNotFound(schema.GroupResource{Resource: resource}, "a")
	deny := func(clienttesting.Action) (bool, runtime.Object, error) { return true, nil, absent }
	n := liveNode("a")
	one, _ := w.Claims.of(n)
	var err error
	if resource == "nodes" {
		w.client.PrependReactor("delete", "nodes", deny)
		deleted := one.DeepCopy()
		deleted.SetDeletionTimestamp(new(metav1.Now()))
		w.claims.PrependReactor("get", "nodeclaims", func(clienttesting.Action) (bool, runtime.Object, error) {
			return true, deleted, nil
		})
		if gone {
			w.client.PrependReactor("get", "nodes", deny)
		}
		err = w.deleteNode(t.Context(), n, one)
	} else {
		w.claims.PrependReactor("delete", "nodeclaims", deny)
		if gone {
			w.claims.PrependReactor("get", "nodeclaims", deny)
		}
		err = w.deleteClaim(t.Context(), one)
	}
	if (err == nil) != gone {
		t.Errorf("the deletion that was answered with 404: %v", err)
	}
}
