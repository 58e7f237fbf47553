package claim

import (
	"fmt"
	"testing"

	v1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
)

// BenchmarkBoundClaim reconciles claims that are bound, as after every start.
func BenchmarkBoundClaim(b *testing.B) {
	benchmarkBound(b, ofClass("class"), "class")
}

// BenchmarkBoundClaimWithoutClass reconciles bound claims without class beside many classes.
func BenchmarkBoundClaimWithoutClass(b *testing.B) {
	var classes []runtime.Object
	for i := range 50 {
		other := class("example.com/driver", storagev1.VolumeBindingImmediate)
		other.Name = fmt.Sprint("class-", i)
		classes = append(classes, other)
	}
	benchmarkBound(b, func(*v1.PersistentVolumeClaim) {}, "", classes...)
}

func benchmarkBound(b *testing.B, setClass func(*v1.PersistentVolumeClaim), className string, classes ...runtime.Object) {
	b.Helper()
	const pairs = 1000
	objects := append(classes, class("example.com/driver", storagev1.VolumeBindingImmediate))
	var keys []string
	for i := range pairs {
		name := fmt.Sprint("pair-", i)
		claim := pendingClaim(setClass, naming(name), boundOnce)
		claim.Name, claim.UID = name, types.UID(name)
		objects = append(objects, claim, free(name, "1", inClass(className), referringTo(name, name), func(v *v1.PersistentVolume) { v.Status.Phase = v1.VolumeBound }))
		keys = append(keys, "ns/"+name)
	}
	c, _ := newController(b, objects...)
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		if err := c.Reconcile(b.Context(), keys[i%pairs]); err != nil {
			b.Fatal(err)
		}
	}
}
