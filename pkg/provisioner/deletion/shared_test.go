package deletion

import (
	"fmt"
	"testing"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/tools/record"

	"github.com/exeunt-io/exeunt/pkg/controller"
)

// The event names one of several volumes of the disk, each time the same.
func TestEventAboutSharedDiskHasOneText(t *testing.T) {
	var all []*v1.PersistentVolume
	for i := range 4 {
		volume := directory(fmt.Sprint("pv-", i))
		volume.UID = types.UID(volume.Name)
		all = append(all, volume)
	}
	events := record.NewFakeRecorder(100)
	c := guarded(t, fake.NewClientset(), &vanishing{lose: func() {}}, all...)
	c.Reporter = controller.NewReporter(events)
	for range 50 {
		if err := c.Reconcile(t.Context(), "pv-0"); err != nil {
			t.Fatal(err)
		}
	}
	if sent := len(events.Events); sent != 1 {
		t.Errorf("%d events in 50 reconciles, want 1", sent)
	}
}
