package model

import (
	v1 "k8s.io/api/core/v1"
)

// lateWorlds are worlds in which the watch of claims is late, and claims come by the watch.
func lateWorlds() []Config {
	c := base("disk kept behind a late watch", newClass(v1.PersistentVolumeReclaimDelete))
	c.Users = []UserAction{
		createClaim("data", class), setPolicy("pvc-", v1.PersistentVolumeReclaimRetain), deleteVolume("pvc-"), deleteClaim("data"),
	}
	c.Stalls, c.Stalling = 1, []string{"persistentvolumeclaims"}
	return []Config{c, oldList(), forgottenClaim()}
}

// delayedWorlds are worlds in which a program gets no answer to a write, which may take effect within a minute.
func delayedWorlds() []Config {
	var all []Config
	for _, c := range []Config{
		static(v1.PersistentVolumeReclaimDelete), static(v1.PersistentVolumeReclaimRetain),
		dynamic(v1.PersistentVolumeReclaimDelete), dynamic(v1.PersistentVolumeReclaimRetain), recreated(), flipped(),
	} {
		all = append(all, c.with("a delayed write", delaying()))
	}
	all[len(all)-1].States = 200_000
	return all
}

// delaying has one write of the resources get no answer, which may take effect within a minute; of any
// resource for none.
func delaying(resources ...string) func(*Config) {
	return func(c *Config) { c.Delays, c.Delaying = c.Delays+1, resources }
}

// oldList is a disk that a user keeps by the policy Retain, while a provisioner starts with an old list
// of claims: the watch then shows the claim as if it were new.
func oldList() Config {
	c := dynamic(v1.PersistentVolumeReclaimDelete)
	c.Name = "disk kept, a start with an old list"
	c.Users = []UserAction{setPolicy("pvc-", v1.PersistentVolumeReclaimRetain), deleteVolume("pvc-"), deleteClaim("data")}
	c.Ordered, c.Unsteady = true, []string{"provisioner"}
	c.Crashes, c.OldLists, c.Stalling, c.EveryVersion, c.Slow = 1, 1, []string{"persistentvolumeclaims"}, true, true
	return c
}

// forgottenClaim is the end of such a story: the claim and its volume are gone, and the disk is a user's.
// The provisioner starts with a list of claims that does not show the claim yet, or still shows it.
func forgottenClaim() Config {
	c := scene("claim gone, disk kept, a start with an old list", nil, []creation{newClass(remove), claimOf("data", class, namesDriver)}, deleteClaim("data"))
	c.Kept = []string{diskPrefix + pvcName()}
	c.Disks = c.Kept
	c.OldLists, c.Unsteady, c.Stalling, c.EveryVersion, c.Slow = 1, []string{"provisioner"}, []string{"persistentvolumeclaims"}, true, true
	return c
}
