package inventory_test

import (
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"

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

// #21 #60 A StatefulSet made its claim again; the kept volume of the claim before names a claim of the same name. A request
// that was recorded from the journal alone has no time of creation, and the late volume of a claim may be the younger one.
func TestVolumeOfAnotherClaimIsNoAnswer(t *testing.T) {
	second := teardown.Object{Kind: "PersistentVolumeClaim", Namespace: "shop", Name: "data", UID: "second"}
	for name, created := range map[string]time.Time{"earlier": now.Add(-time.Hour), "journal": {}, "later": now.Add(time.Hour)} {
		recorded := teardown.Item{Kind: teardown.Volume, Object: second, ExternalID: "pvc-second", Driver: "ebs",
			Created: created, Plan: teardown.PlanDelete, Fate: teardown.Planned}
		other := disk("shop", retain, marked, func(v *v1.PersistentVolume) { v.Spec.ClaimRef.UID = "first" })
		found := fill(inventory.Options{}, other)
		if lost := found.Lost(append(found.Items(now), recorded)); len(lost) != 1 {
			t.Errorf("%s: the volume of another claim counts as the answer: %+v", name, lost)
		}
		other.Spec.ClaimRef.UID = "second"
		items := fill(inventory.Options{}, other).Items(now)
		if lost := inventory.New(inventory.Options{}).Lost(append(items, recorded)); len(lost) != 0 {
			t.Errorf("%s: its own volume does not count as the answer: %+v", name, lost)
		}
	}
}
