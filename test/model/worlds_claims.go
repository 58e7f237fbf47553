package model

import (
	v1 "k8s.io/api/core/v1"
)

// dynamic is a claim of a class. A user deletes the volume and the claim, in any order and at any time.
func dynamic(policy v1.PersistentVolumeReclaimPolicy) Config {
	c := base("dynamic "+string(policy), newClass(policy), newClaim("data", class))
	c.Users = []UserAction{deleteVolume("pvc-"), deleteClaim("data")}
	return c
}

// static is a volume of an administrator and a claim for it.
func static(policy v1.PersistentVolumeReclaimPolicy) Config {
	c := base("static "+string(policy), newVolume("disk", policy), newClaim("data", ""))
	c.Disks, c.Users = []string{"disk-of-disk"}, []UserAction{deleteVolume("disk"), deleteClaim("data")}
	return c
}

// recreated is a claim whose name is used again.
func recreated() Config {
	c := base("claim created again", newClass(v1.PersistentVolumeReclaimDelete), newClaim("data", class))
	c.Users = []UserAction{deleteClaim("data"), createClaim("data", class)}
	return c
}

// flipped is a claim whose volume gets the policy Retain, and may get Delete again.
func flipped() Config {
	c := dynamic(v1.PersistentVolumeReclaimDelete)
	c.Name, c.Users = "policy flipped",
		[]UserAction{
			setPolicy("pvc-", v1.PersistentVolumeReclaimRetain), setPolicy("pvc-", v1.PersistentVolumeReclaimDelete),
			deleteClaim("data"),
		}
	return c
}

// stripped is a volume whose finalizers a user removes, at any time.
func stripped() Config {
	c := dynamic(v1.PersistentVolumeReclaimDelete)
	c.Name, c.Users = "finalizers removed",
		[]UserAction{deleteVolume("pvc-"), stripFinalizers("pvc-"), deleteClaim("data")}
	c.States = 400_000
	return c
}

// reused is a volume whose claimRef a user removes, so that another claim can have it.
func reused() Config {
	c := base("claimRef removed", newVolume("disk", v1.PersistentVolumeReclaimRetain), newClaim("data", ""))
	c.Disks = []string{"disk-of-disk"}
	c.Users = []UserAction{deleteClaim("data"), clearClaimRef("disk"), createClaim("data", "")}
	return c
}

// volumeOf is the name of the volume that is provisioned for a claim.
func volumeOf(claim string) string {
	return "pvc-uid-persistentvolumeclaims-" + namespace + "-" + claim
}

// twoClaims are two claims of a class, with a volume each. The claims differ by their names only, so
// the one whose name comes first is deleted first.
func twoClaims(policy v1.PersistentVolumeReclaimPolicy) Config {
	c := base("two claims, "+string(policy), newClass(policy), newClaim("one", class), newClaim("two", class))
	c.Users, c.States = []UserAction{deleteClaim("one"), deleteClaimAfter("two", "one")}, 300_000
	return c
}

// twoClaimsAndVolume are two claims of a class. A user deletes one of the volumes too.
func twoClaimsAndVolume(policy v1.PersistentVolumeReclaimPolicy) Config {
	c := twoClaims(policy)
	c.Name, c.Users = c.Name+", and a volume deleted",
		[]UserAction{deleteClaim("one"), deleteClaim("two"), deleteVolume(volumeOf("one"))}
	return c
}

// oneVolume is a volume of an administrator that two claims want. They differ by their names only.
func oneVolume(policy v1.PersistentVolumeReclaimPolicy) Config {
	c := base(
		"two claims for one volume, "+string(policy), newVolume("disk", policy), newClaim("one", ""), newClaim("two", ""),
	)
	c.Disks, c.Users = []string{"disk-of-disk"},
		[]UserAction{deleteVolume("disk"), deleteClaim("one"), deleteClaimAfter("two", "one")}
	return c
}

// oneClaim is a claim for which two volumes of an administrator fit.
func oneClaim(policy v1.PersistentVolumeReclaimPolicy) Config {
	c := base(
		"two volumes for one claim, "+string(policy), newVolume("disk", policy), newVolume("spare", policy),
		newClaim("data", ""),
	)
	c.Disks, c.Users = []string{"disk-of-disk", "disk-of-spare"},
		[]UserAction{deleteVolume("disk"), deleteVolume("spare"), deleteClaim("data")}
	return c
}

// overtaken is a claim of a class for which an administrator creates a volume, perhaps while
// another is provisioned.
func overtaken() Config {
	c := base(
		"a volume reserved while another is provisioned", newClass(v1.PersistentVolumeReclaimDelete),
		newClaim("data", class),
	)
	volume := newVolume("disk", v1.PersistentVolumeReclaimDelete, ofClass, claimedBy("data"))
	c.Users, c.States = []UserAction{createVolume(volume, "disk-of-disk"), deleteClaim("data")}, 400_000
	return c
}

// ofClass puts a volume into the class.
func ofClass(volume *v1.PersistentVolume) { volume.Spec.StorageClassName = class }
