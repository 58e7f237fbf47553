package journalctl_test

import (
	"fmt"
	"testing"

	. "github.com/exeunt-io/exeunt/pkg/journalctl"
)

func TestDecide(t *testing.T) {
	claims := []ClaimState{ClaimGone, ClaimWants, ClaimElsewhere, ClaimBound}
	volumes := []VolumeState{VolumeMissing, VolumeRecorded, VolumeOfAnother}
	want := map[Action]map[VolumeState][]Verdict{
		Finish: {
			VolumeMissing:   {Proceed, Proceed, Proceed, Refuse},
			VolumeRecorded:  {Refuse, Refuse, Refuse, Refuse},
			VolumeOfAnother: {Refuse, Refuse, Refuse, Refuse},
		},
		Drop: {
			VolumeMissing:   {Confirm, Confirm, Confirm, Confirm},
			VolumeRecorded:  {Proceed, Proceed, Proceed, Proceed},
			VolumeOfAnother: {Confirm, Confirm, Confirm, Confirm},
		},
	}
	for action, byVolume := range want {
		for _, volume := range volumes {
			for i, claim := range claims {
				t.Run(fmt.Sprint(action, claim, volume), func(t *testing.T) {
					if got := Decide(action, claim, volume); got != byVolume[volume][i] {
						t.Errorf("verdict = %v, want %v", got, byVolume[volume][i])
					}
				})
			}
		}
	}
}
