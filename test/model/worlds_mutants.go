package model

import (
	"slices"

	v1 "k8s.io/api/core/v1"

	"github.com/exeunt-io/exeunt/pkg/finalizer"
)

const (
	keep   = v1.PersistentVolumeReclaimRetain
	remove = v1.PersistentVolumeReclaimDelete
)

// mutantGroups are the worlds in which mutants are judged. Most of them are tiny: they start in
// the middle of a story, and have few or no users. Each group aims at some of the decisions.
func (l *Lab) mutantGroups() []Group {
	return []Group{
		{"binding", bindingWorlds()}, {"release", releaseWorlds()}, {"reclaim", slices.Concat(reclaimWorlds(), reclaimFaultWorlds())}, {"finalizers", finalizerWorlds()}, {"protection", protectionWorlds()},
		{"in-tree", inTreeWorlds()}, {"provisioning", slices.Concat(provisioningWorlds(), faultyWorlds())}, {"restart", l.restartWorlds()}, {"whole", wholeWorlds()}, {"webhook", smallWebhookWorlds()},
		{"restore", append(smallRestoreWorlds(), l.journalRestored())},
	}
}

// scene names a world with a disk for each volume.
func scene(name string, disks []string, creations []creation, users ...UserAction) Config {
	c := placedWorld(name, creations...)
	c.Disks, c.Users = disks, users
	return c
}

var oneDisk = []string{"disk-of-disk"}

// bindingWorlds start within the four writes of a binding.
func bindingWorlds() []Config {
	phase := func(phase v1.PersistentVolumePhase) volumeChange { return inPhase(phase) }
	return []Config{
		scene("bind a static volume", oneDisk, []creation{newVolume("disk", keep), claimOf("data", "")}),
		scene("bind a reserved volume", oneDisk, []creation{newVolume("disk", keep, claimedBy("data")), claimOf("data", "")}),
		scene("bind a named volume", oneDisk, []creation{newVolume("disk", keep), claimOf("data", "", naming("disk"))}),
		scene("binding after write 1", oneDisk, []creation{newVolume("disk", keep, referTo("data"), phase(v1.VolumeAvailable)), claimOf("data", "")}),
		scene("binding after write 2", oneDisk, []creation{newVolume("disk", remove, referTo("data"), phase(v1.VolumeBound)), claimOf("data", "")}),
		scene("binding after write 3", oneDisk, []creation{newVolume("disk", remove, referTo("data"), phase(v1.VolumeBound)), claimOf("data", "", naming("disk"), complete)}),
		scene("claim names its volume without mark", oneDisk, []creation{newVolume("disk", remove, referTo("data"), phase(v1.VolumeBound)), claimOf("data", "", naming("disk"))}),
		scene("bound pair with pending volume", oneDisk, []creation{newVolume("disk", keep, referTo("data")), claimOf("data", "", boundTo("disk"))}),
		scene("bound claim, volume refers to nobody", oneDisk, []creation{newVolume("disk", keep, phase(v1.VolumeAvailable)), claimOf("data", "", boundTo("disk"))}),
		scene("bound claim, volume is gone", nil, []creation{claimOf("data", "", boundTo("disk"))}),
		scene("lost claim, volume is back", oneDisk, []creation{newVolume("disk", keep, referTo("data"), phase(v1.VolumeBound)), claimOf("data", "", naming("disk"), lost)}),
		scene("bound claim, volume of another claim", oneDisk, []creation{newVolume("disk", keep, referTo("other"), phase(v1.VolumeBound)), claimOf("data", "", boundTo("disk")), claimOf("other", "", boundTo("disk"))}),
		scene("claim names the volume of another claim", oneDisk, []creation{newVolume("disk", keep, referTo("other"), phase(v1.VolumeBound)), claimOf("data", "", naming("disk")), claimOf("other", "", boundTo("disk"))}),
		scene("claim names a volume that is missing", nil, []creation{claimOf("data", "", naming("disk"))}),
		scene("bound claim and its volume are restored", oneDisk, nil, certainly(volumeComes(newVolume("disk", keep, referTo("data")))), certainly(create("persistentvolumeclaims", claimOf("data", "", naming("disk"), complete)))).with("a stalled watch", stalled),
		scene("two volumes, one claim", []string{"disk-of-disk", "disk-of-twin"}, []creation{newVolume("disk", keep, referTo("data")), newVolume("twin", keep, referTo("data"), phase(v1.VolumeBound)), claimOf("data", "")}),
		scene("two claims, one volume", oneDisk, []creation{newVolume("disk", keep), claimOf("data", ""), claimOf("other", "")}),
		scene("deleted claim gets no volume", oneDisk, []creation{newVolume("disk", keep), claimOf("data", "", claimWith(finalizer.ClaimProtection, "example.com/backup"), deletedClaim)}),
		scene("two volumes for a deleted claim", oneDisk, []creation{newVolume("disk", keep, claimedBy("data")), claimOf("data", "", claimWith(finalizer.ClaimProtection, "example.com/backup"), deletedClaim)}),
	}
}

// releaseWorlds start when the claim is gone, or bound elsewhere.
func releaseWorlds() []Config {
	bound, released := inPhase(v1.VolumeBound), inPhase(v1.VolumeReleased)
	external := volumeWith(finalizer.VolumeProtection, finalizer.External)
	return []Config{
		scene("release with Retain", oneDisk, []creation{newVolume("disk", keep, referTo("data"), bound)}),
		scene("release with Delete", oneDisk, []creation{newVolume("disk", remove, referTo("data"), bound, external)}),
		scene("release a dynamic volume", oneDisk, []creation{newVolume("disk", remove, byDriver, referTo("data"), bound, external)}),
		scene("release a pending dynamic volume", oneDisk, []creation{newVolume("disk", remove, byDriver, referTo("data"), external)}),
		scene("release a deleted volume", oneDisk, []creation{newVolume("disk", remove, byDriver, referTo("data"), bound, external, deletedVolume)}),
		scene("release a deleted volume without finalizer", oneDisk, []creation{newVolume("disk", remove, byDriver, referTo("data"), bound, deletedVolume)}).givenUp(),
		scene("release a deleted Retain volume", oneDisk, []creation{newVolume("disk", keep, referTo("data"), bound, deletedVolume)}),
		scene("released volume, claim exists", oneDisk, []creation{newVolume("disk", keep, referTo("data"), released), claimOf("data", "", boundTo("disk"))}),
		scene("available volume, claim exists", oneDisk, []creation{newVolume("disk", remove, referTo("data"), inPhase(v1.VolumeAvailable)), claimOf("data", "", boundTo("disk"))}),
		scene("claim of the name with another UID", oneDisk, []creation{newVolume("disk", remove, byDriver, referToOlder, bound, external), claimOf("data", "", boundTo("elsewhere"))}),
		scene("claim elsewhere, dynamic", []string{"disk-of-disk", "disk-of-twin"}, []creation{newVolume("disk", remove, byDriver, referTo("data"), external), newVolume("twin", keep, referTo("data"), bound), claimOf("data", "", boundTo("twin"))}),
		scene("claim elsewhere, static", []string{"disk-of-disk", "disk-of-twin"}, []creation{newVolume("disk", remove, referTo("data")), newVolume("twin", keep, referTo("data"), bound), claimOf("data", "", boundTo("twin"))}),
		scene("claim elsewhere, reserved by a user", []string{"disk-of-disk", "disk-of-twin"}, []creation{newVolume("disk", keep, referTo("data"), reservedByUser), newVolume("twin", keep, referTo("data"), bound), claimOf("data", "", boundTo("twin"))}),
		scene("deleted before it is bound", []string{diskPrefix + pvcName()}, []creation{newClass(remove), newVolume(pvcName(), remove, byDriver, referTo("data"), external, deletedVolume), claimOf("data", class, namesDriver)}),
		scene("deleted before it is bound, static", oneDisk, []creation{newVolume("disk", remove, referTo("data"), deletedVolume), claimOf("data", "")}),
		scene("lost claim and its volume", oneDisk, []creation{newVolume("disk", keep, referTo("data"), bound), claimOf("data", "", lost)}),
	}
}

// reclaimWorlds start with volumes that the provisioner may have to delete.
func reclaimWorlds() []Config {
	released, failed, bound := inPhase(v1.VolumeReleased), inPhase(v1.VolumeFailed), inPhase(v1.VolumeBound)
	both, external := volumeWith(finalizer.VolumeProtection, finalizer.External), volumeWith(finalizer.External)
	pending := volumeNote("exeunt.io/reclaim", "pending")
	twins := []creation{
		newVolume("disk", remove, byDriver, referTo("data"), released, both),
		newVolume("twin", remove, byDriver, referTo("other"), bound, both, onDisk("disk")), claimOf("other", class, namesDriver, boundTo("twin")),
	}
	return []Config{
		scene("released, Delete", oneDisk, []creation{newVolume("disk", remove, byDriver, referTo("data"), released, both)}),
		scene("released, Delete, static", oneDisk, []creation{newVolume("disk", remove, referTo("data"), released, both)}),
		scene("released, Delete, without finalizer", oneDisk, []creation{newVolume("disk", remove, byDriver, referTo("data"), released)}),
		scene("failed, Delete", oneDisk, []creation{newVolume("disk", remove, byDriver, referTo("data"), failed, both)}),
		scene("released, deleted", oneDisk, []creation{newVolume("disk", remove, byDriver, referTo("data"), released, external, deletedVolume)}),
		scene("released, deleted, with pv-protection", oneDisk, []creation{newVolume("disk", remove, byDriver, referTo("data"), released, both, deletedVolume)}),
		scene("released, deleted, marked pending", oneDisk, []creation{newVolume("disk", remove, byDriver, referTo("data"), released, pending, deletedVolume)}),
		scene("released, deleted, backup without mark", oneDisk, []creation{newVolume("disk", remove, byDriver, referTo("data"), released, volumeWith("example.com/backup"), deletedVolume)}).givenUp(),
		scene("released, the namespace of the secret is gone", oneDisk, []creation{newVolume("disk", remove, byDriver, referTo("data"), released, both, sealed("gone"))}),
		scene("released, the secret is missing", oneDisk, []creation{newVolume("disk", remove, byDriver, referTo("data"), released, both, sealed(namespace))}).exempt("disk"),
		scene("released, Retain", oneDisk, []creation{newVolume("disk", keep, byDriver, referTo("data"), released)}),
		scene("released, Retain, with the finalizer", oneDisk, []creation{newVolume("disk", keep, byDriver, referTo("data"), released, both)}),
		scene("released, Retain, deleted with the finalizer", oneDisk, []creation{newVolume("disk", keep, byDriver, referTo("data"), released, both, deletedVolume)}),
		scene("released, Retain becomes Delete", oneDisk, []creation{newVolume("disk", keep, byDriver, referTo("data"), released)}, setPolicy("disk", remove)),
		scene("released, Delete becomes Retain", oneDisk, []creation{newVolume("disk", remove, byDriver, referTo("data"), released, both)}, setPolicy("disk", keep)).with("an interruption", interrupted),
		scene("released, Delete becomes Retain, a secret is read", oneDisk, []creation{newVolume("disk", remove, byDriver, referTo("data"), released, both, sealed("gone"))}, setPolicy("disk", keep)).with("an interruption", interrupted),
		scene("released, Delete becomes Retain, unseen", oneDisk, []creation{newVolume("disk", remove, byDriver, referTo("data"), released, both)}, setPolicy("disk", keep)).with("a stalled watch", stalled),
		scene("released, attached", oneDisk, []creation{newVolume("disk", remove, byDriver, referTo("data"), released, both), attachmentOf("disk")}),
		scene("released, detached later", oneDisk, []creation{newVolume("disk", remove, byDriver, referTo("data"), released, both), attachmentOf("disk")}, deleteAttachment()),
		scene("released, another volume has the disk", oneDisk, twins),
		scene("released, another driver", []string{"disk-of-disk"}, []creation{newVolume("disk", remove, otherDriver, referTo("data"), released)}).exempt("disk"),
	}
}

// reclaimFaultWorlds are those in which a gate is off, something fails, or a user interferes.
func reclaimFaultWorlds() []Config {
	released, bound := inPhase(v1.VolumeReleased), inPhase(v1.VolumeBound)
	both := volumeWith(finalizer.VolumeProtection, finalizer.External)
	pending := volumeNote("exeunt.io/reclaim", "pending")
	return []Config{
		scene("available, deleted, with the finalizer", oneDisk, []creation{newVolume("disk", remove, inPhase(v1.VolumeAvailable), both, deletedVolume)}).givenUp(),
		scene("released, gate off", oneDisk, []creation{newVolume("disk", remove, byDriver, referTo("data"), released, both)}).gateOff(),
		scene("released, deleted, gate off", oneDisk, []creation{newVolume("disk", remove, byDriver, referTo("data"), released, both, deletedVolume)}).gateOff().givenUp(),
		scene("bound, gate off", oneDisk, []creation{newVolume("disk", remove, byDriver, referTo("data"), bound, both), claimOf("data", class, namesDriver, boundTo("disk"))}).gateOff(),
		scene("bound, deleted, marked pending, gate off", oneDisk, []creation{newVolume("disk", remove, byDriver, referTo("data"), bound, pending, deletedVolume), claimOf("data", class, namesDriver, boundTo("disk"))}, deleteClaim("data")).gateOff().givenUp(),
		scene("released, Delete, a crash", oneDisk, []creation{newVolume("disk", remove, byDriver, referTo("data"), released, both)}).crash(),
		scene("released, Delete, a failed call", oneDisk, []creation{newVolume("disk", remove, byDriver, referTo("data"), released, both)}).fail(),
		scene("released, Delete, a lost answer", oneDisk, []creation{newVolume("disk", remove, byDriver, referTo("data"), released, both)}).with("a lost answer", func(c *Config) { c.Losses++ }),
		scene("released, a user deletes", oneDisk, []creation{newVolume("disk", remove, byDriver, referTo("data"), released, both)}, deleteVolume("disk")).with("an interruption", interrupted),
		scene("released, a user adds a finalizer", oneDisk, []creation{newVolume("disk", remove, byDriver, referTo("data"), released, both)}, addForeignFinalizer("disk")).with("an interruption", interrupted),
		scene("released, a user deletes and creates the volume", oneDisk, []creation{newVolume("disk", remove, byDriver, referTo("data"), released, both)}, stripFinalizers("disk"), volumeComes(newVolume("disk", keep, byDriver, referTo("other")))).with("an interruption", interrupted),
	}
}

// finalizerWorlds start with volumes whose finalizers are not as they should be.
func finalizerWorlds() []Config {
	bound := inPhase(v1.VolumeBound)
	both := volumeWith(finalizer.VolumeProtection, finalizer.External)
	pair := func(policy v1.PersistentVolumeReclaimPolicy, changes ...volumeChange) []creation {
		return []creation{newVolume("disk", policy, append([]volumeChange{byDriver, referTo("data"), bound}, changes...)...), claimOf("data", class, namesDriver, boundTo("disk"))}
	}
	users := []UserAction{deleteVolume("disk"), deleteClaim("data")}
	return []Config{
		scene("bound, Delete, without finalizer", oneDisk, pair(remove)),
		scene("bound, Retain, with finalizer", oneDisk, pair(keep, both)),
		scene("bound, Delete, deleted without finalizer", oneDisk, pair(remove, deletedVolume)),
		scene("bound, Delete, then released", oneDisk, pair(remove, both), users...),
		scene("bound, Retain, then released", oneDisk, pair(keep), users...),
		scene("bound, policy flips", oneDisk, pair(remove, both), setPolicy("disk", keep), setPolicy("disk", remove), deleteClaim("data")),
		scene("bound, policy becomes Delete without admission", oneDisk, pair(keep), setPolicy("disk", remove), deleteVolume("disk")).unadmitted(),
		scene("bound, finalizers of others", oneDisk, pair(remove, volumeWith("example.com/backup", finalizer.VolumeProtection, finalizer.External)), addForeignFinalizer("disk"), deleteClaim("data")).with("an interruption", interrupted),
		scene("pending, Delete, without finalizer", oneDisk, []creation{newVolume("disk", remove, byDriver, claimedBy("nobody"))}),
		scene("bound, Delete, then released, stalled", oneDisk, pair(remove, both), deleteClaim("data")).with("a stalled watch", stalled),
		scene("bound, Delete becomes Retain, interrupted", oneDisk, pair(remove, both), setPolicy("disk", keep), deleteClaim("data")).with("an interruption", interrupted),
		scene("bound, Retain becomes Delete, interrupted", oneDisk, pair(keep, both), setPolicy("disk", remove)).with("an interruption", interrupted).unadmitted(),
		scene("bound, deleted without finalizer, interrupted", oneDisk, pair(remove), deleteVolume("disk")).with("an interruption", interrupted).unadmitted(),
	}
}

// protectionWorlds start with volumes and claims that pv-protection or pvc-protection keeps.
func protectionWorlds() []Config {
	bound := inPhase(v1.VolumeBound)
	named := func(claim string, changes ...claimChange) []creation {
		return []creation{newVolume("disk", keep, referTo(claim), bound), claimOf(claim, "", append([]claimChange{boundTo("disk")}, changes...)...)}
	}
	pair := func(changes ...claimChange) []creation { return named("data", changes...) }
	with := func(all []creation, more ...creation) []creation { return append(all, more...) }
	return []Config{
		scene("volume and claim without protection", oneDisk, []creation{newVolume("disk", keep, referTo("data"), bound, volumeWith()), claimOf("data", "", boundTo("disk"), claimWith())}),
		scene("deleted claim, no pod", oneDisk, pair(deletedClaim)),
		scene("deleted claim, a pod uses it", oneDisk, with(pair(deletedClaim), podOf("data"))),
		scene("deleted claim, its pod is deleted", oneDisk, with(pair(deletedClaim), podOf("data")), podGoes()),
		scene("deleted claim, a pod on no node", oneDisk, with(pair(deletedClaim), podOf("data", onNoNode))),
		scene("deleted claim, a pod of another claim", oneDisk, with(pair(deletedClaim), podOf("other"))),
		scene("claim is deleted while a pod comes", oneDisk, pair(), deleteClaim("data"), podComes("data")).with("a stalled watch", stalled),
		scene("deleted claim, an ephemeral pod", oneDisk, with(named("web-data", deletedClaim, ownedByPod), podOf("", ephemeral))),
		scene("deleted claim, a terminated ephemeral pod", oneDisk, with(named("web-data", deletedClaim, ownedByPod), podOf("", ephemeral, terminated))),
		scene("deleted claim, a terminated pod", oneDisk, with(pair(deletedClaim), podOf("data", terminated))),
		scene("deleted claim with finalizers of others", oneDisk, pair(deletedClaim, claimWith("example.com/backup", finalizer.ClaimProtection, "example.com/audit"))),
		scene("deleted available volume", oneDisk, []creation{newVolume("disk", keep, inPhase(v1.VolumeAvailable), deletedVolume)}),
		scene("deleted volume that is bound", oneDisk, []creation{newVolume("disk", keep, referTo("data"), bound, deletedVolume), claimOf("data", "", boundTo("disk"))}),
		scene("claim loses pvc-protection and is deleted", oneDisk, pair(claimWith()), deleteClaim("data")).with("an interruption", interrupted),
	}
}
