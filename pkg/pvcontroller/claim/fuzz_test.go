package claim

import (
	"testing"

	v1 "k8s.io/api/core/v1"
	"k8s.io/client-go/kubernetes/fake"

	"github.com/exeunt-io/exeunt/pkg/binding"
	"github.com/exeunt-io/exeunt/pkg/migration"
	"github.com/exeunt-io/exeunt/pkg/pvcontroller/intree"
	"github.com/exeunt-io/exeunt/test/enumtest"
	"github.com/exeunt-io/exeunt/test/fuzzobj"
	"github.com/exeunt-io/exeunt/test/fuzzobj/fuzzcache"
)

// The state of any claim is known and the same each time. The decision has what its action
// needs: a volume to bind, a class to assign, a provisioner to request, a confirmed loss.
func FuzzObserve(f *testing.F) {
	fuzzobj.AddSeeds(f, 100, 300)
	caches, fill := fuzzcache.New(f, fake.NewClientset())
	plugins := intree.NewSet(migration.New(), &intree.HostPath{Provisions: true}, &intree.NFS{})
	f.Fuzz(func(t *testing.T, data []byte) {
		d := fuzzobj.New(data)
		observer := &Observer{Caches: caches, Provisioners: plugins, Dynamic: d.Below(4) > 0}
		confirmed := d.Below(2) == 1
		expectUnchanged := fill.Fill(t, d.Objects())
		for _, key := range fuzzobj.Claims {
			claim := caches.Claim(key)
			if claim == nil {
				continue
			}
			volume := observer.volumeOf(claim)
			if volume == nil && d.Below(2) == 1 {
				volume = caches.Volume("v0")
			}
			o := observer.observe(claim, volume, confirmed)
			if again := observer.observe(claim, volume, confirmed); again.state != o.state {
				t.Errorf("state %+v, the second time %+v", o.state, again.state)
			}
			decision := binding.DecideClaim(o.state)
			enumtest.ExpectKnown(t, o.state)
			enumtest.ExpectKnown(t, decision)
			expectNeeds(t, o, decision.Action, confirmed)
			_ = observer.AwaitsPlugin(claim)
		}
		expectUnchanged()
	})
}

// expectNeeds wants the observation to have what the action needs.
func expectNeeds(t *testing.T, o *observation, action binding.ClaimAction, confirmed bool) {
	t.Helper()
	bound := o.volume != nil && o.volume.Spec.ClaimRef != nil && o.volume.Spec.ClaimRef.UID == o.claim.UID
	needs := map[binding.ClaimAction]bool{
		binding.BindFreeVolume: o.volume != nil && o.volume.Spec.ClaimRef == nil,
		binding.BindReservedVolume: o.volume != nil && o.volume.Spec.ClaimRef != nil &&
			o.volume.Spec.ClaimRef.Name == o.claim.Name,
		binding.SetVolumePhaseBound: bound,
		binding.BindClaim:           bound,
		binding.CompleteBinding:     bound,
		binding.SetStatusBound:      o.volume != nil,
		binding.SetStatusLost:       confirmed || o.claim.Spec.VolumeName == "",
		binding.AssignClass:         o.defaultClass != "",
		binding.RequestVolume:       o.provisioner != "",
		binding.ProvisionVolume:     o.provisioner != "" && o.claim.DeletionTimestamp == nil,
	}
	if has, needed := needs[action]; needed && !has {
		t.Errorf("action %v for state %+v of volume %v", action, o.state, o.volume)
	}
	if o.claim.Status.Phase == v1.ClaimBound && action == binding.ProvisionVolume && bindCompleted(o.claim) {
		t.Errorf("action %v for a bound claim", action)
	}
}
