package binding

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/exeunt-io/exeunt/pkg/storage"
	"github.com/exeunt-io/exeunt/test/fuzzobj"
)

func seed(f *testing.F) {
	f.Helper()
	fuzzobj.AddSeeds(f, 100, 1500)
}

// bytesOf returns the storage in whole bytes.
func bytesOf(list v1.ResourceList) resource.Quantity {
	quantity := list[v1.ResourceStorage]
	quantity.RoundUp(0)
	return quantity
}

func compareBytes(a, b *v1.PersistentVolume) int {
	size := bytesOf(a.Spec.Capacity)
	return size.Cmp(bytesOf(b.Spec.Capacity))
}

// fits is a simple twin of the rules: it tests one condition after the other.
func fits(volume *v1.PersistentVolume, claim *v1.PersistentVolumeClaim) bool {
	size, requested := bytesOf(volume.Spec.Capacity), bytesOf(claim.Spec.Resources.Requests)
	mode := func(m *v1.PersistentVolumeMode) v1.PersistentVolumeMode {
		if m == nil {
			return v1.PersistentVolumeFilesystem
		}
		return *m
	}
	attributes := func(name *string) string {
		if name == nil {
			return ""
		}
		return *name
	}
	for _, requested := range claim.Spec.AccessModes {
		if !slices.Contains(volume.Spec.AccessModes, requested) {
			return false
		}
	}
	return volume.DeletionTimestamp == nil && size.Cmp(requested) >= 0 &&
		mode(volume.Spec.VolumeMode) == mode(claim.Spec.VolumeMode) &&
		attributes(volume.Spec.VolumeAttributesClassName) == attributes(claim.Spec.VolumeAttributesClassName)
}

func FuzzMatchEqualsSimpleTwin(f *testing.F) {
	seed(f)
	f.Fuzz(func(t *testing.T, data []byte) {
		d := fuzzobj.New(data)
		claim := d.Claim("p0")
		var volumes, candidates []*v1.PersistentVolume
		for i := range 3 {
			volume := d.Volume(fmt.Sprint("v", i))
			volumes = append(volumes, volume)
			if got, want := Mismatch(volume, claim) == "", fits(volume, claim) &&
				storage.VolumeClass(volume) == storage.ClaimClass(claim); got != want {
				t.Errorf("Mismatch says %q, the twin %v, of\n%+v\nand\n%+v", Mismatch(volume, claim), want, volume, claim)
			}
			ref := volume.Spec.ClaimRef
			if ref != nil && ref.Namespace == claim.Namespace && ref.Name == claim.Name &&
				(ref.UID == "" || ref.UID == claim.UID) && fits(volume, claim) {
				candidates = append(candidates, volume)
			}
		}
		expectReserved(t, ReservedVolume(volumes, claim), candidates)
	})
}

// expectReserved wants the best volume: with the UID, then the smallest, then the first by
// name.
func expectReserved(t *testing.T, got *v1.PersistentVolume, candidates []*v1.PersistentVolume) {
	t.Helper()
	for _, c := range candidates {
		switch {
		case got == nil:
			t.Fatalf("nothing is reserved, though %s refers to the claim", c.Name)
		case got.Spec.ClaimRef.UID != "" && c.Spec.ClaimRef.UID == "":
		case got.Spec.ClaimRef.UID == "" && c.Spec.ClaimRef.UID != "":
			t.Fatalf("%s is reserved, though %s names the UID", got.Name, c.Name)
		case compareBytes(c, got) < 0:
			t.Fatalf("%s is reserved, though %s is smaller", got.Name, c.Name)
		}
	}
	if got != nil && !slices.Contains(candidates, got) {
		t.Fatalf("%s is reserved, which cannot serve", got.Name)
	}
}

// scan is a simple twin of Index: it scans all volumes.
type scan struct {
	volumes  map[string]*v1.PersistentVolume
	reserved map[string]string // claim, by volume
}

// take returns what Reserve has to return.
func (s *scan) take(claim *v1.PersistentVolumeClaim) string {
	key := claim.Namespace + "/" + claim.Name
	s.leave(key)
	var best *v1.PersistentVolume
	for _, volume := range s.volumes {
		free := volume.Spec.ClaimRef == nil && volume.Status.Phase == v1.VolumeAvailable && s.reserved[volume.Name] == ""
		if !free || !fits(volume, claim) || storage.VolumeClass(volume) != storage.ClaimClass(claim) ||
			!selected(volume, claim) {
			continue
		}
		if best == nil || better(volume, best) {
			best = volume
		}
	}
	if best == nil {
		return ""
	}
	s.reserved[best.Name] = key
	return best.Name
}

func selected(volume *v1.PersistentVolume, claim *v1.PersistentVolumeClaim) bool {
	if claim.Spec.Selector == nil {
		return true
	}
	selector, err := metav1.LabelSelectorAsSelector(claim.Spec.Selector)
	return err == nil && selector.Matches(labels.Set(volume.Labels))
}

// better reports whether a has fewer access modes than b, or as many and is smaller.
func better(a, b *v1.PersistentVolume) bool {
	if order := different(a.Spec.AccessModes) - different(b.Spec.AccessModes); order != 0 {
		return order < 0
	}
	if order := compareBytes(a, b); order != 0 {
		return order < 0
	}
	return strings.Compare(a.Name, b.Name) < 0
}

func different(modes []v1.PersistentVolumeAccessMode) int {
	return len(slices.Compact(slices.Sorted(slices.Values(modes))))
}

// bindableVolume returns a fuzz volume. Three of four volumes are free and have no class.
func bindableVolume(d *fuzzobj.Choices, name string) *v1.PersistentVolume {
	volume := d.Volume(name)
	if d.Below(4) > 0 {
		volume.Spec.ClaimRef, volume.DeletionTimestamp, volume.Status.Phase = nil, nil, v1.VolumeAvailable
		volume.Spec.VolumeMode, volume.Spec.VolumeAttributesClassName = nil, nil
		volume.Spec.StorageClassName, volume.Annotations = "", nil
	}
	return volume
}

// bindableClaim returns a fuzz claim. Three of four claims have no class and at most one
// access mode.
func bindableClaim(d *fuzzobj.Choices, name string) *v1.PersistentVolumeClaim {
	claim := d.Claim(name)
	if d.Below(4) > 0 {
		claim.Spec.VolumeMode, claim.Spec.VolumeAttributesClassName = nil, nil
		claim.Spec.StorageClassName, claim.Annotations = nil, nil
		claim.Spec.AccessModes = claim.Spec.AccessModes[:min(1, len(claim.Spec.AccessModes))]
	}
	return claim
}

func FuzzIndexEqualsSimpleTwin(f *testing.F) {
	seed(f)
	f.Fuzz(func(t *testing.T, data []byte) {
		d := fuzzobj.New(data)
		woken := map[string]bool{}
		x := NewIndex(func(claim string) { woken[claim] = true })
		twin := &scan{volumes: map[string]*v1.PersistentVolume{}, reserved: map[string]string{}}
		for range 50 {
			name := fmt.Sprint(d.Below(4))
			switch d.Below(4) {
			case 0:
				volume := bindableVolume(d, "v"+name)
				twin.put(volume)
				x.Update(volume)
			case 1:
				twin.drop("v" + name)
				x.Remove("v" + name)
			case 2:
				delete(woken, "ns/p"+name)
				twin.leave("ns/p" + name)
				x.Cancel("ns/p" + name)
			default:
				delete(woken, "ns/p"+name)
				claim := bindableClaim(d, "p"+name)
				got, err := x.Reserve(claim)
				if want := twin.take(claim); got != want || got != "" && err != nil {
					t.Fatalf("Take returns %q, the twin %q, for %+v", got, want, claim)
				}
			}
			check(t, x, woken)
			if d.Done() {
				return
			}
		}
	})
}

func (s *scan) put(volume *v1.PersistentVolume) {
	s.volumes[volume.Name] = volume
	if !isFree(volume) {
		s.drop(volume.Name)
	}
}

func (s *scan) drop(volume string) {
	delete(s.volumes, volume)
	delete(s.reserved, volume)
}

func (s *scan) leave(claim string) {
	maps.DeleteFunc(s.reserved, func(_, by string) bool { return by == claim })
}
