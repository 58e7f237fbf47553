package model

import (
	"testing"

	v1 "k8s.io/api/core/v1"
)

// TestSmallWorldsAreSafe explores the worlds that take seconds; "make model" explores all.
func TestSmallWorldsAreSafe(t *testing.T) {
	worlds := []Config{
		static(v1.PersistentVolumeReclaimDelete), static(v1.PersistentVolumeReclaimRetain), dynamic(v1.PersistentVolumeReclaimDelete), dynamic(v1.PersistentVolumeReclaimRetain),
	}
	explore(t, Limits{Violations: 1}, worlds, func(r Result) { report(t, r) })
}
