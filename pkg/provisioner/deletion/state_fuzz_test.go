package deletion

import (
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/tools/record"
	"sigs.k8s.io/sig-storage-lib-external-provisioner/v10/controller/metrics"

	"github.com/exeunt-io/exeunt/pkg/controller"
	"github.com/exeunt-io/exeunt/pkg/provisioner/csibackend"
	"github.com/exeunt-io/exeunt/pkg/reclaim/external"
	"github.com/exeunt-io/exeunt/pkg/storage"
	"github.com/exeunt-io/exeunt/test/enumtest"
	"github.com/exeunt-io/exeunt/test/fuzzobj"
	"github.com/exeunt-io/exeunt/test/fuzzobj/fuzzcache"
)

// newFuzzed returns a controller and its caches, which were not started.
func newFuzzed(f *testing.F) (*Controller, fuzzcache.Caches) {
	f.Helper()
	client, driver := fake.NewClientset(), &shredder{}
	factory := informers.NewSharedInformerFactory(client, 0)
	fill := fuzzcache.Caches{Volumes: factory.Core().V1().PersistentVolumes().Informer(),
		Attachments: factory.Storage().V1().VolumeAttachments().Informer()}
	c, err := New(Config{
		Client: client, Volumes: fill.Volumes, Attachments: fill.Attachments,
		Deleter:  &csibackend.Deleter{Client: client, Driver: driver, Translator: driver},
		Reporter: controller.NewReporter(&record.FakeRecorder{}), Metrics: metrics.New("fuzzstate"),
		Locks:   &controller.KeyLocks{},
		Backoff: controller.Backoff{Initial: time.Second, Max: time.Second},
	})
	if err != nil {
		f.Fatal(err)
	}
	return c, fill
}

// The state of any volume is known and the same each time. DeleteVolume is decided only from
// live reads, for a volume of the driver with policy Delete whose claim does not use it.
func FuzzState(f *testing.F) {
	fuzzobj.AddSeeds(f, 100, 250)
	c, fill := newFuzzed(f)
	f.Fuzz(func(t *testing.T, data []byte) {
		d := fuzzobj.New(data)
		c.Honor = d.Below(4) > 0
		claim, volumes := d.Claim("p0"), volumesIn(d.Objects())
		var objects []runtime.Object
		for _, volume := range volumes {
			objects = append(objects, volume)
		}
		for range d.Below(3) {
			objects = append(objects, d.Attachment("a"))
		}
		expectUnchanged := fill.Fill(t, objects)
		for _, volume := range volumes {
			cached := c.observe(volume)
			if again := c.observe(volume); again.state != cached.state {
				t.Errorf("state %+v, the second time %+v", cached.state, again.state)
			}
			live := c.stateOf(volume, storage.ClaimOf(volume, claim), true)
			for _, state := range []external.State{cached.state, live} {
				decision := external.Decide(state)
				enumtest.ExpectKnown(t, state)
				enumtest.ExpectKnown(t, decision)
				if decision.Action == external.DeleteVolume {
					expectDeletable(t, volume, claim, state)
				}
			}
		}
		expectUnchanged()
	})
}

func expectDeletable(t *testing.T, volume *v1.PersistentVolume, claim *v1.PersistentVolumeClaim, state external.State) {
	t.Helper()
	ref := volume.Spec.ClaimRef
	uses := ref != nil && ref.UID == claim.UID && claim.Spec.VolumeName == volume.Name
	deletes := volume.Spec.PersistentVolumeReclaimPolicy == v1.PersistentVolumeReclaimDelete
	if !state.Confirmed || uses || !deletes || !external.Owns(fuzzobj.Driver, volume) || state.Shared {
		t.Errorf("DeleteVolume for state %+v of %v", state, volume.Spec)
	}
}
