package museum

import (
	"github.com/exeunt-io/exeunt/pkg/blocker"
	"github.com/exeunt-io/exeunt/test/e2e/harness"
)

// volumes returns the exhibits of PersistentVolumes.
func volumes() []exhibit {
	return []exhibit{
		{
			number: "01", name: "a deleted volume is bound to a living claim",
			programs: &harness.Setup{},
			build: func(r *room) []string {
				r.CreateClaim("claim", harness.DeleteClass)
				volume := r.AwaitBound("claim")
				r.DeleteVolume(volume.Name)
				return []string{"pv/" + volume.Name}
			},
			verdict: blocker.Waiting, roots: []blocker.Reason{blocker.ClaimExists}, next: "delete pvc claim",
			step: func(r *room) { r.DeleteClaim("claim") },
		},
	}
}
