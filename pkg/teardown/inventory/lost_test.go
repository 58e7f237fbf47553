package inventory_test

import (
	"testing"
	"time"

	"github.com/exeunt-io/exeunt/pkg/teardown"
	"github.com/exeunt-io/exeunt/pkg/teardown/inventory"
)

// #21 #60 The runner that deleted a refused claim was killed before it wrote so: the events of the claim outlive it.
func TestFinalEventAnswersForClaimThatIsGone(t *testing.T) {
	recorded := []teardown.Item{{Object: teardown.Object{Kind: "PersistentVolumeClaim", Namespace: "shop", Name: "data",
		UID: "data"}, Driver: "ebs", Plan: teardown.PlanDelete, Fate: teardown.Planned}}
	refused := failed("rpc error: code = InvalidArgument desc = no", now)
	for name, tc := range map[string]struct {
		events  []any
		unknown int
	}{
		"refused":          {[]any{refused}, 0},
		"called again":     {[]any{refused, event("Provisioning", "", now.Add(time.Second))}, 1},
		"without a code":   {[]any{failed("no secret", now)}, 1},
		"no event is left": {nil, 1},
	} {
		i := fill(inventory.Options{}, tc.events...)
		if got := i.Unanswered(i.Lost(recorded)); len(got) != tc.unknown {
			t.Errorf("%s: unknown %+v, want %d", name, got, tc.unknown)
		}
	}
}

// #21 #60 A StatefulSet made its claim again; the kept volume of the claim before names a claim of the same name.
func TestVolumeOfEarlierClaimIsNoAnswer(t *testing.T) {
	second := teardown.Object{Kind: "PersistentVolumeClaim", Namespace: "shop", Name: "data", UID: "second"}
	recorded := teardown.Item{Kind: teardown.Volume, Object: second, ExternalID: "pvc-second", Driver: "ebs", Created: now,
		Plan: teardown.PlanDelete, Fate: teardown.Planned}
	kept := teardown.Item{Kind: teardown.Volume, Object: teardown.Object{Kind: "PersistentVolume", Name: "pvc-first"},
		Claim: "shop/data", Created: now.Add(-time.Hour), Plan: teardown.PlanKeep, Fate: teardown.Kept}
	found := inventory.New(inventory.Options{})
	if lost := found.Lost([]teardown.Item{recorded, kept}); len(lost) != 1 {
		t.Errorf("the volume of an earlier claim counts as the answer: %+v", lost)
	}
	kept.Created = now.Add(time.Second)
	if lost := found.Lost([]teardown.Item{recorded, kept}); len(lost) != 0 {
		t.Errorf("its own volume does not count as the answer: %+v", lost)
	}
}
