package plugin_test

import (
	. "github.com/exeunt-io/exeunt/pkg/reclaim/plugin"
	. "github.com/exeunt-io/exeunt/pkg/storage"
)

// states yields every value of State.
func states(yield func(State) bool) {
	for bits := range 1 << 10 {
		on := func(i int) bool { return bits>>i&1 == 1 }
		for reclaimer := ReclaimerMigrated; reclaimer <= ReclaimerPlugin; reclaimer++ {
			for policy := PolicyUnknown; policy <= PolicyDelete; policy++ {
				for phase := PhasePending; phase <= PhaseFailed; phase++ {
					for claim := ClaimNone; claim <= ClaimElsewhere; claim++ {
						for recycler := RecyclerNone; recycler <= RecyclerForbidden; recycler++ {
							s := State{
								Honor: on(0), Deleting: on(1), Protected: on(2), Deleted: on(3), Confirmed: on(4),
								CanRecycle: on(5), Dynamic: on(6), Shared: on(7), Used: on(8), Recycled: on(9),
								Reclaimer: reclaimer, Policy: policy, Phase: phase, Claim: claim, Recycler: recycler,
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

// metadataStates yields every value of MetadataState.
func metadataStates(yield func(MetadataState) bool) {
	for bits := range 1 << 5 {
		on := func(i int) bool { return bits>>i&1 == 1 }
		for origin := OriginStatic; origin <= OriginStaticMigrated; origin++ {
			for policy := PolicyUnknown; policy <= PolicyDelete; policy++ {
				for migrated := MigratedToNone; migrated <= MigratedToOther; migrated++ {
					s := MetadataState{
						Honor: on(0), Deleting: on(1), InTree: on(2), External: on(3), Unclaimed: on(4),
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
