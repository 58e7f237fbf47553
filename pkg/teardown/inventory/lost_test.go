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
