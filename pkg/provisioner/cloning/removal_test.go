package cloning_test

import (
	"sync/atomic"
	"testing"
	"testing/synctest"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clienttesting "k8s.io/client-go/testing"
)

// A clone is created after the index shows the deleted source as unneeded, and its worker
// reaches the source before the finalizer is removed.
func TestSourceIsReadAfterRemovalOfFinalizer(t *testing.T) {
	controller, client, claims := world(t, claim("source", protected, deleting))
	synctest.Test(t, func(t *testing.T) {
		var removed atomic.Bool
		refused := make(chan error, 1)
		client.PrependReactor("patch", "persistentvolumeclaims", func(clienttesting.Action) (bool, runtime.Object, error) {
			if err := claims.Add(claim("clone", waitsForCloneOf("source"), func(c *v1.PersistentVolumeClaim) { c.UID = "clone" })); err != nil {
				t.Error(err)
			}
			go func() {
				controller.AwaitRemoval("ns/source")
				if !removed.Load() {
					t.Error("the source would be read while its finalizer is being removed")
					refused <- nil
					return
				}
				source, err := client.CoreV1().PersistentVolumeClaims("ns").Get(t.Context(), "source", metav1.GetOptions{})
				if err == nil {
					err = controller.Protect(t.Context(), source)
				}
				refused <- err
			}()
			synctest.Wait() // the worker waits, or is done
			removed.Store(true)
			return false, nil, nil
		})
		if err := controller.Reconcile(t.Context(), "ns/source"); err != nil {
			t.Fatal(err)
		}
		if err := <-refused; err == nil {
			t.Error("a source that is being deleted is cloned without its finalizer")
		}
	})
}
