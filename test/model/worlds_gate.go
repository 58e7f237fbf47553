package model

import (
	v1 "k8s.io/api/core/v1"

	"github.com/exeunt-io/exeunt/test/model/check"
)

// volumeUnreleased is what pv-controller leaves to do with its gate off.
var volumeUnreleased = Excuse{
	Rule: check.StuckVolume, Sentence: "claim Unbound", Also: []check.Rule{check.NotBound},
	Why: "with its gate off, pv-controller releases no volume that was deleted before its claim was bound, as kube-controller-manager does not; provisioner, with its gate on, keeps it",
}

// switched is a claim while the gate of one program is switched.
func switched(policy v1.PersistentVolumeReclaimPolicy) Config {
	c := dynamic(policy)
	c.Name, c.Switches = "gate switched, "+string(policy), 1
	if policy == v1.PersistentVolumeReclaimDelete {
		c.Excused = []Excuse{volumeUnreleased}
	}
	return c
}

// switchedTwice is the same for the gates of both programs, or for one gate that is switched back. A
// user deletes the claim.
func switchedTwice() Config {
	c := dynamic(v1.PersistentVolumeReclaimDelete)
	c.Name, c.Switches, c.Users, c.States = "gate switched twice, Delete", 2, []UserAction{deleteClaim("data")}, 300_000
	return c
}

// switchedStatic is a volume of an administrator while the gates are switched twice.
func switchedStatic() Config {
	c := static(v1.PersistentVolumeReclaimDelete)
	c.Name, c.Switches = "gate switched twice, static Delete", 2
	return c
}
