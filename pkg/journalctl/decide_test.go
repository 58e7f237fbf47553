package journalctl

import (
	"fmt"
	"testing"

	v1 "k8s.io/api/core/v1"

	"github.com/exeunt-io/exeunt/pkg/journal"
	"github.com/exeunt-io/exeunt/pkg/storage"
)

func TestDecide(t *testing.T) {
	type answers struct{ keeps, mayDelete verdict }
	volumes := []storage.Record{storage.RecordAbsent, storage.RecordPresent, storage.RecordConflict}
	want := map[command]map[storage.Record]map[bool]answers{
		finish: {
			storage.RecordAbsent:   {false: {proceed, confirm}, true: {refuse, refuse}},
			storage.RecordPresent:  {false: {refuse, refuse}, true: {refuse, refuse}},
			storage.RecordConflict: {false: {refuse, refuse}, true: {refuse, refuse}},
		},
		drop: {
			storage.RecordAbsent:   {false: {confirm, confirm}, true: {confirm, confirm}},
			storage.RecordPresent:  {false: {proceed, proceed}, true: {proceed, proceed}},
			storage.RecordConflict: {false: {confirm, confirm}, true: {confirm, confirm}},
		},
	}
	for c, byVolume := range want {
		for _, volume := range volumes {
			for bound, want := range byVolume[volume] {
				t.Run(fmt.Sprintf("%v, bound %v, volume %v", c, bound, volume), func(t *testing.T) {
					if got := (answers{decide(c, bound, false, volume), decide(c, bound, true, volume)}); got != want {
						t.Errorf("verdicts = %v, want %v", got, want)
					}
				})
			}
		}
	}
}

func TestMayDelete(t *testing.T) {
	const kept, deleted = v1.PersistentVolumeReclaimRetain, v1.PersistentVolumeReclaimDelete
	for claim := storage.ClaimNone; claim <= storage.ClaimElsewhere; claim++ {
		for _, policy := range []v1.PersistentVolumeReclaimPolicy{kept, deleted, ""} {
			for bits := range 4 {
				live, announced := liveObjects{claim: claim, deleting: bits&1 > 0}, bits&2 > 0
				entry := newEntry("7", func(e *journal.Entry) {
					e.Announced = announced
					e.Volume.Spec.PersistentVolumeReclaimPolicy = policy
				})
				unused := claim == storage.ClaimGone || claim == storage.ClaimElsewhere || live.deleting
				if got, want := mayDelete(live, &entry), unused && (policy != kept || announced); got != want {
					t.Errorf("claim %v, deleting %v, policy %q, announced %v: %v, want %v", claim, live.deleting, policy, announced,
						got, want)
				}
			}
		}
	}
	if !mayDelete(liveObjects{claim: storage.ClaimGone}, &journal.Entry{}) {
		t.Error("the volume of an entry without a policy may be deleted")
	}
}

func TestEnumValuesHaveDistinctNames(t *testing.T) {
	names := map[string]bool{}
	for _, value := range []fmt.Stringer{finish, drop, refuse, confirm, proceed} {
		names[value.String()] = true
	}
	if len(names) != 5 {
		t.Errorf("names = %v", names)
	}
}
