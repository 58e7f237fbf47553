package patch_test

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/exeunt-io/exeunt/pkg/patch"
)

// BenchmarkPatch builds and encodes the patch that completes the binding of a claim.
func BenchmarkPatch(b *testing.B) {
	claim := &metav1.ObjectMeta{UID: "1b4e28ba-2fa1-11d2-883f-0016d3cca427", ResourceVersion: "1000000",
		Annotations: map[string]string{"a": "b"}}
	annotations := map[string]string{"pv.kubernetes.io/bind-completed": "yes",
		"pv.kubernetes.io/bound-by-controller": "yes"}
	b.ReportAllocs()
	size := 0
	for b.Loop() {
		body, err := patch.ForVersion(claim).Set("/spec/volumeName", "pvc-1").Annotate(claim, annotations).Bytes()
		if err != nil {
			b.Fatal(err)
		}
		size = len(body)
	}
	b.ReportMetric(float64(size), "bytes/patch")
}
