package model

import (
	v1 "k8s.io/api/core/v1"
)

// switched is a claim while the gate of one program after the other, or of one program twice, is
// switched. A user deletes the claim.
func switched(policy v1.PersistentVolumeReclaimPolicy) Config {
	c := dynamic(policy)
	c.Name, c.Switches, c.Users = "gate switched, "+string(policy), 2, []UserAction{deleteClaim("data")}
	return c
}

// switchedStatic is the same for a volume of an administrator, which a user can delete too.
func switchedStatic() Config {
	c := static(v1.PersistentVolumeReclaimDelete)
	c.Name, c.Switches = "gate switched, static Delete", 2
	return c
}
