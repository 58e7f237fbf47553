package reclaim_test

import (
	"iter"

	"github.com/exeunt-io/exeunt/pkg/reclaim"
	"github.com/exeunt-io/exeunt/pkg/storage"
)

var (
	policies = []storage.Policy{storage.PolicyUnknown, storage.PolicyRetain, storage.PolicyRecycle, storage.PolicyDelete}
	phases   = []storage.Phase{storage.PhasePending, storage.PhaseAvailable, storage.PhaseBound, storage.PhaseReleased, storage.PhaseFailed}
	claims   = []storage.ClaimRelation{storage.ClaimNone, storage.ClaimUnread, storage.ClaimGone, storage.ClaimUnbound, storage.ClaimLost, storage.ClaimBound, storage.ClaimElsewhere}
)

// flags yields every assignment of n booleans.
func flags(n int) iter.Seq[[]bool] {
	return func(yield func([]bool) bool) {
		for bits := range 1 << n {
			values := make([]bool, n)
			for i := range values {
				values[i] = bits>>i&1 == 1
			}
			if !yield(values) {
				return
			}
		}
	}
}

// externalStates yields every value of State.
func externalStates(yield func(reclaim.State) bool) {
	for f := range flags(9) {
		for _, policy := range policies {
			for _, phase := range phases {
				for _, claim := range claims {
					for mark := reclaim.NoMark; mark <= reclaim.MarkDone; mark++ {
						s := reclaim.State{
							Honor: f[0], Owned: f[1], Deleting: f[2], Protected: f[3], Attached: f[4],
							Shared: f[5], Deleted: f[6], Confirmed: f[7], Dynamic: f[8], Policy: policy, Phase: phase, Claim: claim, Mark: mark,
						}
						if !yield(s) {
							return
						}
					}
				}
			}
		}
	}
}

// inTreeStates yields every value of InTreeState.
func inTreeStates(yield func(reclaim.InTreeState) bool) {
	for f := range flags(10) {
		for plugin := reclaim.Migrated; plugin <= reclaim.Deletes; plugin++ {
			for _, policy := range policies {
				for _, phase := range phases {
					for _, claim := range claims {
						for recycler := reclaim.NoRecycler; recycler <= reclaim.RecyclerFailed; recycler++ {
							s := reclaim.InTreeState{
								Honor: f[0], Deleting: f[1], Protected: f[2], Deleted: f[3], Confirmed: f[4],
								Recycles: f[5], Dynamic: f[6], Shared: f[7], Used: f[8], Recycled: f[9],
								Plugin: plugin, Policy: policy, Phase: phase, Claim: claim, Recycler: recycler,
							}
							if !yield(s) {
								return
							}
						}
					}
				}
			}
		}
	}
}

// marksStates yields every value of MarksState.
func marksStates(yield func(reclaim.MarksState) bool) {
	for f := range flags(5) {
		for origin := reclaim.Static; origin <= reclaim.StaticMigrated; origin++ {
			for _, policy := range policies {
				for migrated := reclaim.MigratedNowhere; migrated <= reclaim.MigratedWrong; migrated++ {
					s := reclaim.MarksState{
						Honor: f[0], Deleting: f[1], InTree: f[2], External: f[3], Unclaimed: f[4],
						Origin: origin, Policy: policy, Migrated: migrated,
					}
					if !yield(s) {
						return
					}
				}
			}
		}
	}
}
