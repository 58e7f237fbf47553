package graph_test

import (
	"slices"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	. "github.com/exeunt-io/exeunt/pkg/garbage/graph"
)

// An owner may wait for kinds that cannot be read, and for no dependent.
func TestDumpHasWaitingOwnerWithoutDependents(t *testing.T) {
	w := newWorld()
	w.observe(configMaps, "waiting", deleted(metav1.FinalizerDeleteDependents))
	w.observe(configMaps, "lone")
	w.observe(pods, "dependent", ownedBy(configMaps, "owner"))
	for name, tc := range map[string]struct {
		asked, want []types.UID
	}{
		"all objects":             {nil, []types.UID{"dependent", "owner", "waiting"}},
		"the owner":               {[]types.UID{"waiting"}, []types.UID{"waiting"}},
		"an object without edges": {[]types.UID{"lone"}, []types.UID{"lone"}},
		"an unknown object":       {[]types.UID{"none"}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			vertices, edges := w.Dump(tc.asked...)
			Sort(vertices, edges)
			var got []types.UID
			for _, vertex := range vertices {
				got = append(got, vertex.UID)
			}
			if !slices.Equal(got, tc.want) {
				t.Errorf("got %v, want %v", got, tc.want)
			}
		})
	}
}
