package metrics

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/google/go-cmp/cmp"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"
	"k8s.io/component-base/metrics"

	"github.com/exeunt-io/exeunt/pkg/controller"
	"github.com/exeunt-io/exeunt/test/boundpairs"
)

// naiveCounts counts the objects of a store one by one.
func naiveCounts(store cache.Store) (map[volumeKind]int, map[claimKind]int) {
	volumes, claims := map[volumeKind]int{}, map[claimKind]int{}
	for _, object := range store.List() {
		switch object := object.(type) {
		case *v1.PersistentVolume:
			volumes[kindOfVolume(object)]++
		case *v1.PersistentVolumeClaim:
			claims[kindOfClaim(object)]++
		}
	}
	return volumes, claims
}

// cluster is the cache of an informer, and the handler that the informer calls.
type cluster struct {
	cache.Store
	handler cache.ResourceEventHandler
	random  *rand.Rand
	version int
}

// object returns a new version of one of few objects.
func (c *cluster) object(claims bool) metav1.Object {
	c.version++
	metadata := metav1.ObjectMeta{
		Name: fmt.Sprint("object-", c.random.IntN(6)), UID: types.UID(fmt.Sprint(c.random.IntN(2))),
		ResourceVersion: fmt.Sprint(c.version),
	}
	if claims {
		phase := []v1.PersistentVolumeClaimPhase{v1.ClaimBound, v1.ClaimPending, ""}[c.random.IntN(3)]
		object := claim(fmt.Sprint("ns-", c.random.IntN(2)), phase)
		metadata.Namespace = object.Namespace
		object.ObjectMeta = metadata
		return object
	}
	phase := []v1.PersistentVolumePhase{v1.VolumeBound, v1.VolumeReleased, ""}[c.random.IntN(3)]
	object := csi([]string{"fast", "slow"}[c.random.IntN(2)], phase)
	object.ObjectMeta = metadata
	return object
}

// step changes one object as an informer does: by the watch, or by a list that shows
// deletions without the last version.
func (c *cluster) step(object metav1.Object) error {
	old, exists, err := c.Get(object)
	if err != nil {
		return err
	}
	switch change := c.random.IntN(4); {
	case !exists:
		c.handler.OnAdd(object, false)
		return c.Add(object)
	case change == 0: // the event has a newer version than the cache
		c.handler.OnDelete(object)
		return c.Delete(object)
	case change == 1:
		c.handler.OnDelete(cache.DeletedFinalStateUnknown{Key: controller.Key(object), Obj: old})
		return c.Delete(object)
	case change == 2: // a resync
		c.handler.OnUpdate(old, old)
		return nil
	}
	c.handler.OnUpdate(old, object)
	return c.Update(object)
}

func TestCountsEqualNaiveCounts(t *testing.T) {
	for seed := range uint64(100) {
		c := NewCollector()
		random := rand.New(rand.NewPCG(seed, 1))
		volumes := &cluster{Store: cache.NewStore(cache.MetaNamespaceKeyFunc),
			handler: controller.OnChange(c.volumeChanged, c.volumeGone), random: random}
		claims := &cluster{Store: cache.NewStore(cache.MetaNamespaceKeyFunc),
			handler: controller.OnChange(c.claimChanged, c.claimGone), random: random}
		for range 200 {
			if err := volumes.step(volumes.object(false)); err != nil {
				t.Fatal(err)
			}
			if err := claims.step(claims.object(true)); err != nil {
				t.Fatal(err)
			}
			wantVolumes, _ := naiveCounts(volumes.Store)
			_, wantClaims := naiveCounts(claims.Store)
			if diff := cmp.Diff(wantVolumes, c.volumes.byKind(), cmp.AllowUnexported(volumeKind{}, volumeLabels{})); diff != "" {
				t.Fatalf("seed %d: volumes (-want +got):\n%s", seed, diff)
			}
			if diff := cmp.Diff(wantClaims, c.claims.byKind(), cmp.AllowUnexported(claimKind{}, claimLabels{})); diff != "" {
				t.Fatalf("seed %d: claims (-want +got):\n%s", seed, diff)
			}
		}
	}
}

// BenchmarkCollect reads the metrics of 50,000 pairs.
func BenchmarkCollect(b *testing.B) {
	c := NewCollector()
	for number := range 50_000 {
		c.volumeChanged(nil, boundpairs.Volume(number, "csi.example.com"))
		c.claimChanged(nil, boundpairs.Claim(number, "csi.example.com"))
	}
	registry := metrics.NewKubeRegistry()
	if err := registry.CustomRegister(c); err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for b.Loop() {
		if _, err := registry.Gather(); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkCountChange(b *testing.B) {
	c := NewCollector()
	bound := boundpairs.Volume(1, "csi.example.com")
	released := bound.DeepCopy()
	released.Status.Phase = v1.VolumeReleased
	b.ReportAllocs()
	for b.Loop() {
		c.volumeChanged(bound, released)
		c.volumeChanged(released, bound)
	}
}
