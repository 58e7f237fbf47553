package finalizer_test

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/exeunt-io/exeunt/pkg/finalizer"
	"github.com/exeunt-io/exeunt/pkg/patch"
)

func BenchmarkEdit(b *testing.B) {
	volume := &metav1.ObjectMeta{UID: "1b4e28ba-2fa1-11d2-883f-0016d3cca427",
		Finalizers: []string{string(finalizer.External), string(finalizer.VolumeProtection)}}
	change := finalizer.Change{Remove: []finalizer.Name{finalizer.External}}
	b.ReportAllocs()
	for b.Loop() {
		if finalizer.Edit(patch.For(volume), volume, change).Empty() {
			b.Fatal("nothing is removed")
		}
	}
}
