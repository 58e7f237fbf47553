package journalctl_test

import (
	"fmt"
	"testing"

	. "github.com/exeunt-io/exeunt/pkg/journalctl"
	"github.com/exeunt-io/exeunt/pkg/storage"
)

func TestDecide(t *testing.T) {
	volumes := []storage.Record{storage.RecordAbsent, storage.RecordPresent, storage.RecordConflict}
	want := map[Action]map[storage.Record]map[bool]Verdict{
		Finish: {
			storage.RecordAbsent:   {false: Proceed, true: Refuse},
			storage.RecordPresent:  {false: Refuse, true: Refuse},
			storage.RecordConflict: {false: Refuse, true: Refuse},
		},
		Drop: {
			storage.RecordAbsent:   {false: Confirm, true: Confirm},
			storage.RecordPresent:  {false: Proceed, true: Proceed},
			storage.RecordConflict: {false: Confirm, true: Confirm},
		},
	}
	for action, byVolume := range want {
		for _, volume := range volumes {
			for bound, want := range byVolume[volume] {
				t.Run(fmt.Sprint(action, bound, volume), func(t *testing.T) {
					if got := Decide(action, bound, volume); got != want {
						t.Errorf("verdict = %v, want %v", got, want)
					}
				})
			}
		}
	}
}
