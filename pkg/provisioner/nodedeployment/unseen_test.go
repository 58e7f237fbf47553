package nodedeployment_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clienttesting "k8s.io/client-go/testing"

	"github.com/exeunt-io/exeunt/pkg/controller"
)

// etcd is restored to the version that the cache shows: no event follows the lost write.
func TestClaimOfLostSelectionIsReconciled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, time.Second, claim(), class())
		lost := false
		w.client.PrependReactor("patch", "persistentvolumeclaims", func(clienttesting.Action) (bool, runtime.Object, error) {
			if lost {
				return false, nil, nil
			}
			lost = true
			return true, claim(selected("mine"), func(c *v1.PersistentVolumeClaim) { c.ResourceVersion = "5000" }), nil
		})
		working, end := context.WithCancel(t.Context())
		var running sync.WaitGroup
		running.Go(func() { w.Run(working, 1) })
		<-time.After(3 * time.Minute)
		synctest.Wait()
		if node := w.node(t); !lost || node != "mine" {
			t.Errorf("selected node %q", node)
		}
		end()
		running.Wait()
	})
}

// The driver is not asked again while the watch is late.
func TestClaimOlderThanOwnSelectionWaits(t *testing.T) {
	w := newWorld(t, time.Second, claim(), class())
	w.client.PrependReactor("patch", "persistentvolumeclaims", func(clienttesting.Action) (bool, runtime.Object, error) {
		return true, claim(selected("mine"), func(c *v1.PersistentVolumeClaim) { c.ResourceVersion = "5000" }), nil
	})
	if err := w.Reconcile(t.Context(), "ns/claim"); err != nil {
		t.Fatal(err)
	}
	asked := w.driver.calls.Load()
	if err := w.Reconcile(t.Context(), "ns/claim"); !errors.Is(err, controller.ErrStaleCache) || w.driver.calls.Load() != asked {
		t.Errorf("asked for %d capacities more, error %v", w.driver.calls.Load()-asked, err)
	}
}
