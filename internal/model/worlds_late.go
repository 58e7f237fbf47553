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
	return []Config{c}
}
