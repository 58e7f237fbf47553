package deletion

import (
	"fmt"
	"path"
	"slices"
	"strings"
	"testing"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/tools/record"

	"github.com/exeunt-io/exeunt/pkg/controller"
	"github.com/exeunt-io/exeunt/pkg/provisioner/backend"
)

// tree is a deleter of directories that may be inside one another.
type tree struct{ directories }

var _ backend.Nested = (*tree)(nil)

func (d *tree) Enclosing(volume *v1.PersistentVolume) []string {
	return []string{path.Dir(d.HandleOf(volume))}
}

func (d *tree) Inside(volume, other *v1.PersistentVolume) bool {
	return path.Dir(d.HandleOf(volume)) == d.HandleOf(other)
}

func TestDirectoryWithAnotherVolumeInsideIsKept(t *testing.T) {
	outer, inner := directory("outer"), directory("inner")
	outer.UID, inner.UID, inner.Status.Phase = "outer", "inner", v1.VolumeBound
	inner.Spec.HostPath.Path += "/inner"
	events, d := record.NewFakeRecorder(10), &tree{}
	c := guarded(t, fake.NewClientset(outer, inner), d, outer, inner)
	c.Reporter = controller.NewReporter(events)
	if err := c.Reconcile(t.Context(), "outer"); err != nil || len(d.deleted) > 0 {
		t.Fatalf("deleted %v, error %v", d.deleted, err)
	}
	if event := <-events.Events; !strings.Contains(event, `"inner"`) {
		t.Errorf("event %s", event)
	}
	if err := c.Volumes.GetStore().Delete(inner); err != nil {
		t.Fatal(err)
	}
	if names := c.enclosing(inner); !slices.Equal(names, []string{"outer"}) {
		t.Errorf("once the inner volume is gone, %v are looked at again", names)
	}
	if err := c.Reconcile(t.Context(), "outer"); err != nil || len(d.deleted) != 1 {
		t.Errorf("deleted %v, error %v", d.deleted, err)
	}
}

// counting counts how often a volume is compared with others.
type counting struct {
	tree
	compared int
}

func (d *counting) Inside(volume, other *v1.PersistentVolume) bool {
	d.compared++
	return d.tree.Inside(volume, other)
}

// Volumes beside one another in a directory do not concern each other.
func TestVolumesOfOneDirectoryAreNotCompared(t *testing.T) {
	var all []*v1.PersistentVolume
	for i := range 100 {
		volume := directory(fmt.Sprint("pv-", i))
		volume.UID = types.UID(volume.Name)
		volume.Spec.HostPath.Path += "/" + volume.Name
		all = append(all, volume)
	}
	d := &counting{}
	c := guarded(t, fake.NewClientset(), d, all...)
	if names := append(c.sharing(all[0]), c.enclosing(all[0])...); len(names) > 0 || d.compared > 10 {
		t.Errorf("%v after %d comparisons", names, d.compared)
	}
}

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
