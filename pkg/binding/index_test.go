package binding

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
)

func freeVolume(name, size string, change ...func(*v1.PersistentVolume)) *v1.PersistentVolume {
	volume := &v1.PersistentVolume{
		ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID(name)},
		Spec: v1.PersistentVolumeSpec{
			Capacity:    v1.ResourceList{v1.ResourceStorage: resource.MustParse(size)},
			AccessModes: []v1.PersistentVolumeAccessMode{v1.ReadWriteOnce},
		},
		Status: v1.PersistentVolumeStatus{Phase: v1.VolumeAvailable},
	}
	for _, f := range change {
		f(volume)
	}
	return volume
}

func waitingClaim(name, size string, change ...func(*v1.PersistentVolumeClaim)) *v1.PersistentVolumeClaim {
	claim := &v1.PersistentVolumeClaim{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name, UID: types.UID(name)},
		Spec: v1.PersistentVolumeClaimSpec{
			Resources:   v1.VolumeResourceRequirements{Requests: v1.ResourceList{v1.ResourceStorage: resource.MustParse(size)}},
			AccessModes: []v1.PersistentVolumeAccessMode{v1.ReadWriteOnce},
		},
	}
	for _, f := range change {
		f(claim)
	}
	return claim
}

func inClass(class string) func(*v1.PersistentVolume) {
	return func(volume *v1.PersistentVolume) { volume.Spec.StorageClassName = class }
}

func offering(modes ...v1.PersistentVolumeAccessMode) func(*v1.PersistentVolume) {
	return func(volume *v1.PersistentVolume) { volume.Spec.AccessModes = modes }
}

func labeled(key, value string) func(*v1.PersistentVolume) {
	return func(volume *v1.PersistentVolume) { volume.Labels = map[string]string{key: value} }
}

var reserveCases = map[string]struct {
	volumes []*v1.PersistentVolume
	claim   *v1.PersistentVolumeClaim
	want    string
}{
	"smallest sufficient volume": {
		[]*v1.PersistentVolume{freeVolume("a", "10Gi"), freeVolume("b", "2Gi"), freeVolume("c", "1Gi")},
		waitingClaim("c", "1500Mi"), "b"},
	"first of equal volumes by name": {
		[]*v1.PersistentVolume{freeVolume("b", "1Gi"), freeVolume("a", "1Gi")}, waitingClaim("c", "1Gi"), "a"},
	"no sufficient volume": {
		[]*v1.PersistentVolume{freeVolume("a", "1Gi")}, waitingClaim("c", "2Gi"), ""},
	"different class": {
		[]*v1.PersistentVolume{freeVolume("a", "1Gi", inClass("slow"))}, waitingClaim("c", "1Gi"), ""},
	"class in beta annotation": {
		[]*v1.PersistentVolume{freeVolume("a", "1Gi", inClass("slow"))},
		waitingClaim("c", "1Gi", func(c *v1.PersistentVolumeClaim) {
			c.Annotations = map[string]string{v1.BetaStorageClassAnnotation: "slow"}
		}), "a"},
	"missing access mode": {
		[]*v1.PersistentVolume{freeVolume("a", "1Gi"), freeVolume("b", "2Gi", func(v *v1.PersistentVolume) {
			v.Spec.AccessModes = []v1.PersistentVolumeAccessMode{v1.ReadWriteMany, v1.ReadWriteOnce}
		})},
		waitingClaim("c", "1Gi", func(c *v1.PersistentVolumeClaim) {
			c.Spec.AccessModes = []v1.PersistentVolumeAccessMode{v1.ReadWriteMany}
		}), "b"},
	"fewer access modes before less capacity": {
		[]*v1.PersistentVolume{freeVolume("many", "1Gi", offering(v1.ReadWriteOnce, v1.ReadWriteMany)),
			freeVolume("one", "5Gi")},
		waitingClaim("c", "1Gi"), "one"},
	"fewer access modes but too small": {
		[]*v1.PersistentVolume{freeVolume("many", "3Gi", offering(v1.ReadWriteOnce, v1.ReadWriteMany)),
			freeVolume("one", "1Gi")},
		waitingClaim("c", "2Gi"), "many"},
	"smallest of equal access modes": {
		[]*v1.PersistentVolume{
			freeVolume("a", "4Gi", offering(v1.ReadWriteOnce, v1.ReadWriteMany)),
			freeVolume("b", "2Gi", offering(v1.ReadOnlyMany, v1.ReadWriteOnce)),
			freeVolume("c", "1Gi", offering(v1.ReadWriteOnce, v1.ReadWriteMany, v1.ReadOnlyMany))},
		waitingClaim("c", "1Gi"), "b"},
	"access mode named twice": {
		[]*v1.PersistentVolume{freeVolume("many", "1Gi", offering(v1.ReadWriteOnce, v1.ReadWriteMany)),
			freeVolume("one", "2Gi", offering(v1.ReadWriteOnce, v1.ReadWriteOnce))},
		waitingClaim("c", "1Gi"), "one"},
	"different volume mode": {
		[]*v1.PersistentVolume{freeVolume("a", "1Gi")},
		waitingClaim("c", "1Gi", func(c *v1.PersistentVolumeClaim) { c.Spec.VolumeMode = ptr.To(v1.PersistentVolumeBlock) }),
		""},
	"different attributes class": {
		[]*v1.PersistentVolume{freeVolume("a", "1Gi"), freeVolume("b", "2Gi",
			func(v *v1.PersistentVolume) { v.Spec.VolumeAttributesClassName = ptr.To("gold") })},
		waitingClaim("c", "1Gi", func(c *v1.PersistentVolumeClaim) { c.Spec.VolumeAttributesClassName = ptr.To("gold") }),
		"b"},
	"selector": {
		[]*v1.PersistentVolume{freeVolume("a", "1Gi"), freeVolume("b", "2Gi", labeled("tier", "x"))},
		waitingClaim("c", "1Gi", func(c *v1.PersistentVolumeClaim) {
			c.Spec.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{"tier": "x"}}
		}), "b"},
	"volume being deleted": {
		[]*v1.PersistentVolume{freeVolume("a", "1Gi", func(v *v1.PersistentVolume) { v.DeletionTimestamp = &metav1.Time{} })},
		waitingClaim("c", "1Gi"), ""},
	"claimed volume": {
		[]*v1.PersistentVolume{freeVolume("a", "1Gi",
			func(v *v1.PersistentVolume) { v.Spec.ClaimRef = &v1.ObjectReference{} })}, waitingClaim("c", "1Gi"), ""},
}

func TestReserveReturnsBestVolume(t *testing.T) {
	for name, tc := range reserveCases {
		t.Run(name, func(t *testing.T) {
			x := NewIndex(func(string) {})
			for _, volume := range tc.volumes {
				x.Update(volume)
			}
			if got, err := x.Reserve(tc.claim); err != nil || got != tc.want {
				t.Errorf("Take = %q, %v, want %q", got, err, tc.want)
			}
		})
	}
}

func TestVolumeIsReservedForOneClaim(t *testing.T) {
	x := NewIndex(func(string) {})
	x.Update(freeVolume("a", "1Gi"))
	first, _ := x.Reserve(waitingClaim("c1", "1Gi"))
	second, _ := x.Reserve(waitingClaim("c2", "1Gi"))
	if first != "a" || second != "" {
		t.Errorf("reserved: %q and %q, want a and none", first, second)
	}
}

func TestCanceledReservationWakesNextClaim(t *testing.T) {
	var woken []string
	x := NewIndex(func(claim string) { woken = append(woken, claim) })
	x.Update(freeVolume("a", "1Gi"))
	for _, name := range []string{"c1", "c2"} {
		if _, err := x.Reserve(waitingClaim(name, "1Gi")); err != nil {
			t.Fatal(err)
		}
	}
	x.Cancel("ns/c1")
	if len(woken) != 1 || woken[0] != "ns/c2" {
		t.Errorf("woken %v, want ns/c2", woken)
	}
}

func TestNewVolumeWakesOneClaim(t *testing.T) {
	woken := 0
	x := NewIndex(func(string) { woken++ })
	for i := range 100 {
		if _, err := x.Reserve(waitingClaim(fmt.Sprint(i), "1Gi")); err != nil {
			t.Fatal(err)
		}
	}
	x.Update(freeVolume("a", "1Gi"))
	if woken != 1 {
		t.Errorf("one volume woke %d claims", woken)
	}
}

func TestInvalidSelectorErrorNamesClaim(t *testing.T) {
	x := NewIndex(func(string) {})
	_, err := x.Reserve(waitingClaim("c", "1Gi", func(c *v1.PersistentVolumeClaim) {
		c.Spec.Selector = &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "k",
			Operator: "Near"}}}
	}))
	if err == nil {
		t.Error("a selector with an unknown operator was accepted")
	}
	if volumes, claims := x.Len(); volumes != 0 || claims != 0 {
		t.Errorf("the index keeps %d volumes and %d claims", volumes, claims)
	}
}

func TestRefusedOfferWakesNextClaim(t *testing.T) {
	var woken []string
	x := NewIndex(func(claim string) { woken = append(woken, claim) })
	for _, name := range []string{"c1", "c2"} {
		if _, err := x.Reserve(waitingClaim(name, "1Gi")); err != nil {
			t.Fatal(err)
		}
	}
	x.Update(freeVolume("a", "1Gi"))
	if len(woken) != 1 {
		t.Fatalf("woken %v, want one claim", woken)
	}
	// The claim was recreated with an invalid selector.
	again := waitingClaim(strings.TrimPrefix(woken[0], "ns/"), "1Gi", func(c *v1.PersistentVolumeClaim) {
		c.Spec.Selector = &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "k",
			Operator: "Near"}}}
	})
	if _, err := x.Reserve(again); err == nil || len(woken) != 2 {
		t.Errorf("Reserve = %v, woken %v, want an error and the other claim", err, woken)
	}
}

// check asserts the invariant of Index.
func check(t *testing.T, x *Index, woken map[string]bool) {
	t.Helper()
	offered := map[string]bool{}
	for claim, c := range x.offered {
		offered[c.name] = offered[c.name] || woken[claim]
	}
	for _, c := range x.volumes {
		if x.reservers[c.name] != "" || offered[c.name] {
			continue
		}
		for _, w := range x.waiters {
			if w.key == c.key && w.isSatisfiedBy(c) {
				t.Fatalf("claim %s waits although volume %s is free", w.claim, c.name)
			}
		}
	}
	for claim, c := range x.reserved {
		if x.reservers[c.name] != claim || x.volumes[c.name] != c {
			t.Fatalf("reservation of %s by %s is not mutual", c.name, claim)
		}
	}
}

func TestNoClaimWaitsForFreeVolume(t *testing.T) {
	for seed := range uint64(300) {
		random := rand.New(rand.NewPCG(seed, 1))
		woken := map[string]bool{}
		x := NewIndex(func(claim string) { woken[claim] = true })
		size := func() string { return fmt.Sprintf("%dGi", 1+random.IntN(4)) }
		for range 200 {
			number := random.IntN(8)
			claim, volume := fmt.Sprintf("c%d", number), fmt.Sprintf("v%d", number)
			switch random.IntN(5) {
			case 0:
				modes := []v1.PersistentVolumeAccessMode{v1.ReadWriteOnce, v1.ReadOnlyMany, v1.ReadWriteMany}[:1+random.IntN(3)]
				x.Update(freeVolume(volume, size(), labeled("tier", fmt.Sprint(random.IntN(2))), offering(modes...)))
			case 1:
				x.Remove(volume)
			case 2:
				delete(woken, "ns/"+claim)
				x.Cancel("ns/" + claim)
			default:
				delete(woken, "ns/"+claim)
				selective := func(c *v1.PersistentVolumeClaim) {
					if number%2 == 0 {
						c.Spec.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{"tier": "1"}}
					}
				}
				if _, err := x.Reserve(waitingClaim(claim, size(), selective)); err != nil {
					t.Fatal(err)
				}
			}
			check(t, x, woken)
		}
	}
}

// fillIndex adds free volumes, the sizes of which are not in order.
func fillIndex(volumes []*v1.PersistentVolume) *Index {
	x := NewIndex(func(string) {})
	for _, volume := range volumes {
		x.Update(volume)
	}
	return x
}

func freeVolumes(count int) []*v1.PersistentVolume {
	random := rand.New(rand.NewPCG(1, 1))
	volumes := make([]*v1.PersistentVolume, count)
	for i := range volumes {
		volumes[i] = freeVolume(fmt.Sprintf("v%07d", random.IntN(1<<30)), fmt.Sprintf("%dMi", 1+i%100))
	}
	return volumes
}

// BenchmarkAddFreeVolumes fills the index: the time per volume must hardly grow.
func BenchmarkAddFreeVolumes(b *testing.B) {
	for _, count := range []int{1_000, 100_000} {
		b.Run(fmt.Sprint(count), func(b *testing.B) {
			volumes := freeVolumes(count)
			b.ReportAllocs()
			for b.Loop() {
				fillIndex(volumes)
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*count), "ns/volume")
		})
	}
}

func BenchmarkTakeAmong100000(b *testing.B) {
	x := fillIndex(freeVolumes(100_000))
	claim := waitingClaim("c", "50Mi")
	b.ReportAllocs()
	for b.Loop() {
		if name, err := x.Reserve(claim); err != nil || name == "" {
			b.Fatal(name, err)
		}
		x.Cancel("ns/c")
	}
}
