package model

import (
	"testing"

	v1 "k8s.io/api/core/v1"

	"github.com/exeunt-io/exeunt/test/model/explore"
)

// TestSmallWorldsAreSafe explores the worlds that take seconds; "make model" explores all.
func TestSmallWorldsAreSafe(t *testing.T) {
	worlds := []Config{
		static(v1.PersistentVolumeReclaimDelete), static(v1.PersistentVolumeReclaimRetain), dynamic(v1.PersistentVolumeReclaimDelete), dynamic(v1.PersistentVolumeReclaimRetain),
		// A user deletes a volume that was never Bound while it is released.
		static(v1.PersistentVolumeReclaimDelete).with(faults[0].name, faults[0].add).with(faults[2].name, faults[2].add),
		switchedStatic(),
		static(v1.PersistentVolumeReclaimDelete).with("a denied write", deny), static(v1.PersistentVolumeReclaimDelete).with("an undone write", undo),
	}
	exploreAll(t, explore.Limits{Violations: 1}, worlds, func(r Result) { report(t, r) })
}
