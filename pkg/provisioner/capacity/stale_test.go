package capacity_test

import (
	"errors"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	clienttesting "k8s.io/client-go/testing"

	domain "github.com/exeunt-io/exeunt/pkg/capacity"
	"github.com/exeunt-io/exeunt/pkg/controller"
	"github.com/exeunt-io/exeunt/pkg/topology"
)

// The answer to an update has a version that the cache does not show.
func TestObjectOlderThanOwnWriteIsRequeued(t *testing.T) {
	w := newFixture(t, time.Hour, zoneA, class("fast"), object("o", "fast", "a", 3, manager.Labels()))
	w.client.PrependReactor("patch", "csistoragecapacities", func(clienttesting.Action) (bool, runtime.Object, error) {
		written := object("o", "fast", "a", 10, manager.Labels())
		written.ResourceVersion = "2"
		return true, written, nil
	})
	if err := w.Watch(t.Context()); err != nil {
		t.Fatal(err)
	}
	key := domain.Item{Class: "fast", Segment: topology.Segment("zone=a")}.Key()
	_ = w.Reconcile(t.Context(), key)
	if err := w.Reconcile(t.Context(), key); !errors.Is(err, controller.ErrStaleCache) || w.writes() != 1 {
		t.Errorf("Reconcile() = %v after %d writes, want %v", err, w.writes(), controller.ErrStaleCache)
	}
}
