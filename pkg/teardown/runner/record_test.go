package runner

import (
	"fmt"
	"testing"

	"github.com/exeunt-io/exeunt/pkg/teardown"
)

// Each claim that is gone was compared with each item, in every round.
func TestOutcomesOfManyClaimsTakeOnePass(t *testing.T) {
	const claims = 500
	var items []teardown.Item
	for i := range claims {
		items = append(items, teardown.Item{Kind: teardown.Volume, Object: teardown.Object{Kind: "PersistentVolumeClaim",
			UID: fmt.Sprint(i)}, Plan: teardown.PlanDelete, Fate: teardown.Unknown})
	}
	r := recording{saved: map[string]int{}}
	r.add(items)
	if changed := r.outcomesOf(items, nil); len(changed) != 0 {
		t.Errorf("%d outcomes are new, though all are in the record", len(changed))
	}
	if changed := r.outcomesOf(items[:1], nil); len(changed) != claims-1 {
		t.Errorf("%d claims got their volume, want %d", len(changed), claims-1)
	}
	if got := testing.AllocsPerRun(1, func() { r.outcomesOf(items, nil) }); got > 10*claims {
		t.Errorf("%.0f allocations for %d claims", got, claims)
	}
}
