package external_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	. "github.com/exeunt-io/exeunt/pkg/reclaim/external"
	"github.com/exeunt-io/exeunt/pkg/storage"
	"github.com/exeunt-io/exeunt/test/fuzzobj"
)

// The driver of a volume owns the volume; another driver owns the volume only if the
// annotations name both.
func FuzzOwner(f *testing.F) {
	fuzzobj.AddSeeds(f, 60, 50)
	drivers := []string{fuzzobj.Driver, "other.example.com", "kubernetes.io/host-path"}
	f.Fuzz(func(t *testing.T, data []byte) {
		volume := fuzzobj.New(data).Volume("v0")
		before := volume.DeepCopy()
		driver := DriverOf(volume)
		if driver != "" && !Owns(driver, volume) {
			t.Errorf("driver %q does not own its volume %v", driver, volume.Annotations)
		}
		for _, other := range drivers {
			if !Owns(other, volume) || other == driver {
				continue
			}
			if driver == "" || volume.Annotations[storage.AnnMigratedTo] != driver ||
				volume.Annotations[storage.AnnDynamicallyProvisioned] != other &&
					(volume.Spec.CSI == nil || volume.Spec.CSI.Driver != other) {
				t.Errorf("volume of driver %q is owned by %q too: %v", driver, other, volume.Annotations)
			}
		}
		if diff := cmp.Diff(before, volume); diff != "" {
			t.Errorf("changed the volume:\n%s", diff)
		}
	})
}
