package intern

import (
	"fmt"
	"sync"
	"testing"
	"unsafe"

	"github.com/google/go-cmp/cmp"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/exeunt-io/exeunt/test/boundpairs"
)

const driver = "csi.example.com"

func transformed[T any](t *testing.T, transformer *Transformer, object T) T {
	t.Helper()
	result, err := transformer.Transform(object)
	if err != nil {
		t.Fatal(err)
	}
	return result.(T)
}

func volume(number int, change ...func(*v1.PersistentVolume)) *v1.PersistentVolume {
	volume := boundpairs.DecodedVolume(number, driver)
	for _, f := range change {
		f(volume)
	}
	return volume
}

func secret(name string) *v1.SecretReference { return &v1.SecretReference{Namespace: "ns", Name: name} }

func inZone(zone string) *v1.VolumeNodeAffinity {
	return &v1.VolumeNodeAffinity{Required: &v1.NodeSelector{NodeSelectorTerms: []v1.NodeSelectorTerm{{
		MatchExpressions: []v1.NodeSelectorRequirement{{Key: "zone", Operator: v1.NodeSelectorOpIn, Values: []string{zone}}},
	}}}}
}

// volumeChanges change the parts of a volume that could be shared.
var volumeChanges = []func(*v1.PersistentVolume){
	func(v *v1.PersistentVolume) { v.Annotations = map[string]string{} },
	func(v *v1.PersistentVolume) { v.Annotations = map[string]string{"ab": "c"} },
	func(v *v1.PersistentVolume) { v.Annotations = map[string]string{"a": "bc"} },
	func(v *v1.PersistentVolume) { v.Labels = map[string]string{"a": "", "b": "c"} },
	func(v *v1.PersistentVolume) { v.Labels = map[string]string{"a": "b", "": "c"} },
	func(v *v1.PersistentVolume) { v.Finalizers = []string{} },
	func(v *v1.PersistentVolume) { v.Finalizers = []string{"ab", "c"} },
	func(v *v1.PersistentVolume) { v.Finalizers = []string{"a", "bc"} },
	func(v *v1.PersistentVolume) { v.Spec.MountOptions = []string{"bc", "a"} },
	func(v *v1.PersistentVolume) {
		v.Spec.AccessModes = []v1.PersistentVolumeAccessMode{v1.ReadWriteMany, v1.ReadWriteOnce}
	},
	func(v *v1.PersistentVolume) { v.Spec.Capacity = v1.ResourceList{} },
	func(v *v1.PersistentVolume) {
		v.Spec.Capacity = v1.ResourceList{v1.ResourceStorage: resource.MustParse("1G")}
	},
	func(v *v1.PersistentVolume) {
		v.Spec.Capacity = v1.ResourceList{v1.ResourceStorage: resource.MustParse("1500m")}
	},
	func(v *v1.PersistentVolume) { v.Spec.VolumeMode = ptr.To(v1.PersistentVolumeBlock) },
	func(v *v1.PersistentVolume) { v.Spec.VolumeMode = nil },
	func(v *v1.PersistentVolume) { v.Spec.VolumeAttributesClassName = ptr.To("gold") },
	func(v *v1.PersistentVolume) { v.Spec.VolumeAttributesClassName = ptr.To("") },
	func(v *v1.PersistentVolume) { v.Spec.NodeAffinity = inZone("a") },
	func(v *v1.PersistentVolume) { v.Spec.NodeAffinity = inZone("b") },
	func(v *v1.PersistentVolume) { v.Spec.NodeAffinity = &v1.VolumeNodeAffinity{} },
	func(v *v1.PersistentVolume) { v.Spec.ClaimRef = nil },
	func(v *v1.PersistentVolume) { v.Spec.ClaimRef.UID = "another" },
	func(v *v1.PersistentVolume) { v.Spec.CSI = nil },
	func(v *v1.PersistentVolume) {
		v.Spec.CSI.NodeStageSecretRef, v.Spec.CSI.NodePublishSecretRef = secret("a"), secret("b")
	},
	func(v *v1.PersistentVolume) {
		v.OwnerReferences = []metav1.OwnerReference{{Kind: "Set", UID: "1", Controller: ptr.To(true),
			BlockOwnerDeletion: ptr.To(false)}, {}}
	},
}

// volumes are equal volumes, and volumes that differ from the others.
func volumes() []*v1.PersistentVolume {
	result := []*v1.PersistentVolume{{}}
	for number := range 20 {
		result = append(result, volume(number))
	}
	for _, change := range volumeChanges {
		result = append(result, volume(len(result), change), volume(len(result), change))
	}
	return result
}

func TestTransformedVolumeEqualsOriginal(t *testing.T) {
	transformer := New()
	for range 2 { // the second time, all parts are in the tables
		for _, object := range volumes() {
			want := object.DeepCopy()
			want.ManagedFields = nil
			if diff := cmp.Diff(want, transformed(t, transformer, object)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		}
	}
}

func TestTransformedClaimEqualsOriginal(t *testing.T) {
	transformer := New()
	for number, change := range []func(*v1.PersistentVolumeClaim){
		func(*v1.PersistentVolumeClaim) {},
		func(c *v1.PersistentVolumeClaim) { c.Spec.StorageClassName = nil },
		func(c *v1.PersistentVolumeClaim) { c.Spec.StorageClassName = ptr.To("") },
		func(c *v1.PersistentVolumeClaim) { c.Spec.VolumeName = "" },
		func(c *v1.PersistentVolumeClaim) { c.Spec.VolumeName = "pvc-of-another" },
		func(c *v1.PersistentVolumeClaim) {
			c.Spec.Resources.Limits = v1.ResourceList{v1.ResourceStorage: resource.MustParse("9Gi"),
				"other": resource.MustParse("1")}
		},
		func(c *v1.PersistentVolumeClaim) {
			c.Status.AllocatedResources = v1.ResourceList{v1.ResourceStorage: resource.MustParse("9Gi")}
		},
		func(c *v1.PersistentVolumeClaim) { c.Status.CurrentVolumeAttributesClassName = ptr.To("gold") },
		func(c *v1.PersistentVolumeClaim) { c.Status = v1.PersistentVolumeClaimStatus{Phase: v1.ClaimPending} },
	} {
		for range 2 {
			object := boundpairs.DecodedClaim(number, driver)
			change(object)
			want := object.DeepCopy()
			want.ManagedFields = nil
			if diff := cmp.Diff(want, transformed(t, transformer, object)); diff != "" {
				t.Errorf("claim %d (-want +got):\n%s", number, diff)
			}
		}
	}
}

func TestEqualPartsAreShared(t *testing.T) {
	transformer := New()
	a, b := transformed(t, transformer, volume(1)), transformed(t, transformer, volume(9))
	if unsafe.StringData(a.Spec.CSI.Driver) != unsafe.StringData(b.Spec.CSI.Driver) {
		t.Error("two volumes have their own name of the driver")
	}
	if &a.Finalizers[0] != &b.Finalizers[0] || &a.Spec.AccessModes[0] != &b.Spec.AccessModes[0] {
		t.Error("two volumes have their own lists")
	}
	for name, maps := range map[string][2]any{
		"annotations": {a.Annotations, b.Annotations}, "attributes": {a.Spec.CSI.VolumeAttributes, b.Spec.CSI.VolumeAttributes},
		"capacity": {a.Spec.Capacity, b.Spec.Capacity},
	} {
		if fmt.Sprintf("%p", maps[0]) != fmt.Sprintf("%p", maps[1]) {
			t.Errorf("two volumes have their own %s", name)
		}
	}
}

func TestOtherObjectsOnlyLoseManagedFields(t *testing.T) {
	pod := &v1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "a", ManagedFields: []metav1.ManagedFieldsEntry{{}}}}
	got := transformed(t, New(), pod)
	if diff := cmp.Diff(&v1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "a"}}, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestTableIsBounded(t *testing.T) {
	var tab table[string]
	for i := range 10 * maxEntries {
		for _, key := range []string{"often", fmt.Sprint(i), fmt.Sprintf("%0*d", maxKey+1, i)} {
			if got := tab.get([]byte(key), func() string { return key }); got != key {
				t.Fatalf("get(%q) = %q", key, got)
			}
		}
	}
	if entries := len(tab.recent) + len(tab.previous); entries > 2*maxEntries {
		t.Errorf("%d entries, want at most %d", entries, 2*maxEntries)
	}
	if got := tab.get([]byte("often"), func() string { return "dropped" }); got != "often" {
		t.Error("an entry in use was dropped")
	}
}

func TestTransformIsSafeForConcurrentUse(t *testing.T) {
	transformer := New()
	var running sync.WaitGroup
	for range 4 {
		running.Go(func() {
			for number := range 50 {
				transformed(t, transformer, volume(number))
			}
		})
	}
	running.Wait()
}

func BenchmarkTransform(b *testing.B) {
	transformer := New()
	b.ReportAllocs()
	object := volume(1)
	for b.Loop() {
		if _, err := transformer.Transform(object); err != nil {
			b.Fatal(err)
		}
	}
}
