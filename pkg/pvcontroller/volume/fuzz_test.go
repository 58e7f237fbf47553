package volume

import (
	"testing"

	v1 "k8s.io/api/core/v1"
	"k8s.io/client-go/kubernetes/fake"

	"github.com/exeunt-io/exeunt/pkg/binding"
	"github.com/exeunt-io/exeunt/pkg/controller"
	"github.com/exeunt-io/exeunt/pkg/protection"
	"github.com/exeunt-io/exeunt/pkg/pvcontroller/intree"
	"github.com/exeunt-io/exeunt/pkg/storage"
	"github.com/exeunt-io/exeunt/test/enumtest"
	"github.com/exeunt-io/exeunt/test/fuzzobj"
	"github.com/exeunt-io/exeunt/test/fuzzobj/fuzzcache"
)

// The states of any volume are known and the same each time. No volume of an existing claim
// is released, none is released by the cache alone, and a bound volume stays protected.
func FuzzStates(f *testing.F) {
	fuzzobj.AddSeeds(f, 100, 250)
	client := fake.NewClientset()
	caches, fill := fuzzcache.New(f, client)
	c, _ := newControllers(f, client, caches, &recorder{}, &intree.HostPath{Provisions: true}, &intree.NFS{})
	f.Fuzz(func(t *testing.T, data []byte) {
		d := fuzzobj.New(data)
		c.Honor = d.Below(4) > 0
		expectUnchanged := fill.Fill(t, d.Objects())
		for _, name := range fuzzobj.Volumes {
			volume := caches.Volume(name)
			if volume == nil {
				continue
			}
			o := observation{volume: volume, claim: caches.Claim(controller.ClaimKey(volume)), confirmed: d.Below(2) == 1}
			state := c.phaseState(o)
			if again := c.phaseState(o); again != state {
				t.Errorf("state %+v, the second time %+v", state, again)
			}
			enumtest.ExpectKnown(t, state)
			decision := binding.DecideVolume(state)
			enumtest.ExpectKnown(t, decision)
			exists := o.claim != nil && o.claim.UID == volume.Spec.ClaimRef.UID && o.claim.Spec.VolumeName == volume.Name
			releases := decision.Action == binding.SetPhaseReleased || decision.Action == binding.ClearClaimRef
			if releases && exists || decision.Action == binding.SetPhaseReleased && !o.confirmed {
				t.Errorf("action %v for state %+v", decision.Action, state)
			}
			expectProtection(t, c, volume, state.Claim)
			_ = c.needsNoWrite(volume)
		}
		expectUnchanged()
	})
}

func expectProtection(t *testing.T, c *Controller, volume *v1.PersistentVolume, claim storage.ClaimRelation) {
	t.Helper()
	state := c.protectionState(volume, volume.Status.Phase, claim)
	action := protection.DecideVolume(state)
	enumtest.ExpectKnown(t, action)
	if action == protection.UnprotectVolume && (volume.Status.Phase == v1.VolumeBound || volume.DeletionTimestamp == nil) {
		t.Errorf("action %v for phase %s", action, volume.Status.Phase)
	}
	change := c.phaseChange(volume, v1.VolumeBound)
	if change.RemoveProtection {
		t.Error("protection is removed with the phase Bound")
	}
}
