package inventory_test

import (
	"testing"
	"time"

	"github.com/exeunt-io/exeunt/pkg/teardown"
	"github.com/exeunt-io/exeunt/pkg/teardown/inventory"
)

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
