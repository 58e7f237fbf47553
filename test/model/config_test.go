package model

import (
	"testing"
	"testing/synctest"

	v1 "k8s.io/api/core/v1"
)

// TestDeletedDiskOfEditedVolumeIsGivenUp: a user gives a Released volume to another claim while its disk is
// being deleted, which no program can know. A random walk did so.
func TestDeletedDiskOfEditedVolumeIsGivenUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		edit := clearClaimRef("disk")
		edit.GivesUp = true
		lab := NewLab()
		defer lab.Close()
		w, err := newWorld(lab, scene("released", oneDisk, []creation{newVolume("disk", remove, referTo("data"), inPhase(v1.VolumeReleased))}, edit))
		if err != nil {
			t.Fatal(err)
		}
		s := w.initial()
		s.disks, s.deleted = nil, s.disks
		if step, possible := w.userStep(s, 0); !possible || len(step.After.givenUp) != 1 {
			t.Errorf("possible %v, given up: %v", possible, step.After.givenUp)
		}
	})
}
