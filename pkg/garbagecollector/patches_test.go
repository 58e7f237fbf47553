package garbagecollector

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/exeunt-io/exeunt/pkg/garbage/graph"
	"github.com/exeunt-io/exeunt/pkg/patch"
)

// TestPatchesTestWhatTheyChange: a patch applies to the judged version of the object only, and removes
// the judged finalizer only. References are removed from the last one on, so that their places stay true.
func TestPatchesTestWhatTheyChange(t *testing.T) {
	object := graph.Object{UID: "u", Version: "7"}
	const guard = `[{"op":"test","path":"/metadata/uid","value":"u"},{"op":"test","path":"/metadata/resourceVersion","value":"7"},`
	for name, tc := range map[string]struct {
		patch *patch.Patch
		want  string
	}{
		"finalizer": {
			removeFinalizer(object, 1, metav1.FinalizerDeleteDependents),
			guard + `{"op":"test","path":"/metadata/finalizers/1","value":"foregroundDeletion"},{"op":"remove","path":"/metadata/finalizers/1"}]`,
		},
		"references": {
			removeReferences(object, []int{0, 2}),
			guard + `{"op":"remove","path":"/metadata/ownerReferences/2"},{"op":"remove","path":"/metadata/ownerReferences/0"}]`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			if got, err := tc.patch.Bytes(); err != nil || string(got) != tc.want {
				t.Errorf("%s, %v, want\n%s", got, err, tc.want)
			}
		})
	}
}
