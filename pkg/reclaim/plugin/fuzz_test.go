package plugin_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	v1 "k8s.io/api/core/v1"

	. "github.com/exeunt-io/exeunt/pkg/reclaim/plugin"
	"github.com/exeunt-io/exeunt/pkg/storage"
	"github.com/exeunt-io/exeunt/test/fuzzobj"
)

// The origin, the reclaimer and the recycler of any volume are known values. Only the plugin
// of a volume without a migrated-to annotation reclaims it, and a pod for other data never
// counts as its recycler.
func FuzzVolume(f *testing.F) {
	fuzzobj.AddSeeds(f, 60, 50)
	f.Fuzz(func(t *testing.T, data []byte) {
		d := fuzzobj.New(data)
		volume, pod := d.Volume("v0"), d.Pod("recycler-for-v0")
		pod.Annotations = map[string]string{RecyclerAnnotation: fuzzobj.Pick(d, DataID(volume), "", "v0/p0")}
		volumeBefore, podBefore := volume.DeepCopy(), pod.DeepCopy()
		migrated, deletes := d.Below(2) == 1, d.Below(2) == 1
		origin, reclaimer := OriginOf(volume, migrated, deletes), ReclaimerOf(volume, migrated, deletes)
		if origin < OriginStatic || origin > OriginStaticMigrated || reclaimer < ReclaimerMigrated ||
			reclaimer > ReclaimerPlugin {
			t.Errorf("origin %v, reclaimer %v", origin, reclaimer)
		}
		_, annotated := volume.Annotations[storage.AnnMigratedTo]
		if reclaimer == ReclaimerPlugin && (annotated || migrated || volume.Spec.CSI != nil || !deletes) {
			t.Errorf("plugin reclaims a volume with annotations %v, migrated %v, deletes %v", volume.Annotations, migrated,
				deletes)
		}
		if annotated == (MigratedToOf(volume, fuzzobj.Driver) == MigratedToNone) {
			t.Errorf("migrated-to of %v is %v", volume.Annotations, MigratedToOf(volume, fuzzobj.Driver))
		}
		recycler := RecyclerOf(pod, volume)
		finished := pod.Status.Phase == v1.PodSucceeded || pod.Status.Phase == v1.PodFailed
		if done := recycler == RecyclerSucceeded || recycler == RecyclerFailed; done &&
			(pod.Annotations[RecyclerAnnotation] != DataID(volume) || !finished) {
			t.Errorf("recycler %v for data %q of %q", recycler, pod.Annotations[RecyclerAnnotation], DataID(volume))
		}
		if diff := cmp.Diff(volumeBefore, volume) + cmp.Diff(podBefore, pod); diff != "" {
			t.Errorf("changed the objects:\n%s", diff)
		}
	})
}
