package journalctl

import (
	"fmt"
	"testing"

	"github.com/exeunt-io/exeunt/pkg/storage"
)

func TestDecide(t *testing.T) {
	volumes := []storage.Record{storage.RecordAbsent, storage.RecordPresent, storage.RecordConflict}
	want := map[command]map[storage.Record]map[bool]verdict{
		finish: {
			storage.RecordAbsent:   {false: proceed, true: refuse},
			storage.RecordPresent:  {false: refuse, true: refuse},
			storage.RecordConflict: {false: refuse, true: refuse},
		},
		drop: {
			storage.RecordAbsent:   {false: confirm, true: confirm},
			storage.RecordPresent:  {false: proceed, true: proceed},
			storage.RecordConflict: {false: confirm, true: confirm},
		},
	}
	for c, byVolume := range want {
		for _, volume := range volumes {
			for bound, want := range byVolume[volume] {
				t.Run(fmt.Sprintf("%v, bound %v, volume %v", c, bound, volume), func(t *testing.T) {
					if got := decide(c, bound, volume); got != want {
						t.Errorf("verdict = %v, want %v", got, want)
					}
				})
			}
		}
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
