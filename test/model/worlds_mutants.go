package model

import (
	"slices"

	v1 "k8s.io/api/core/v1"

	"github.com/exeunt-io/exeunt/pkg/finalizer"
)

// mutantGroups are the worlds in which mutants are judged. Most of them are tiny: they start in
// the middle of a story, and have few or no users. Each group aims at some of the decisions.
func (l *Lab) mutantGroups() []Group {
	return []Group{
		{"binding", bindingWorlds()}, {"release", releaseWorlds()},
		{"reclaim", slices.Concat(reclaimWorlds(), reclaimFaultWorlds())}, {"finalizers", finalizerWorlds()}, {"protection", protectionWorlds()},
		{"in-tree", inTreeWorlds()}, {"provisioning", slices.Concat(provisioningWorlds(), faultyWorlds())},
		{"restart", l.restartWorlds()}, {"whole", wholeWorlds()}, {"webhook", smallWebhookWorlds()},
		{"restore", append(smallRestoreWorlds(), l.journalRestored())},
	}
}

// smallWorld names a world with a disk for each volume.
func smallWorld(name string, disks []string, creations []creation, users ...UserAction) Config {
	c := placedWorld(name, creations...)
	c.Disks, c.Users = disks, users
	return c
}

var oneDisk = []string{"disk-of-disk"}

// bindingWorlds start within the four writes of a binding.
func bindingWorlds() []Config {
	phase := func(phase v1.PersistentVolumePhase) volumeChange { return inPhase(phase) }
	return []Config{
		smallWorld("bind a static volume", oneDisk, []creation{newVolume("disk", keep), claimOf("data", "")}),
		smallWorld("bind a reserved volume", oneDisk, []creation{newVolume("disk", keep, claimedBy("data")),
			claimOf("data", "")}),
		smallWorld("bind a named volume", oneDisk, []creation{newVolume("disk", keep), claimOf("data", "", naming("disk"))}),
		smallWorld("binding after write 1", oneDisk,
			[]creation{newVolume("disk", keep, referTo("data"), phase(v1.VolumeAvailable)), claimOf("data", "")}),
		smallWorld("binding after write 2", oneDisk,
			[]creation{newVolume("disk", remove, referTo("data"), phase(v1.VolumeBound)), claimOf("data", "")}),
		smallWorld("binding after write 3", oneDisk,
			[]creation{newVolume("disk", remove, referTo("data"), phase(v1.VolumeBound)),
				claimOf("data", "", naming("disk"), complete)}),
		smallWorld("claim names its volume without mark", oneDisk,
			[]creation{newVolume("disk", remove, referTo("data"), phase(v1.VolumeBound)), claimOf("data", "", naming("disk"))}),
		smallWorld("bound pair with pending volume", oneDisk, []creation{newVolume("disk", keep, referTo("data")),
			claimOf("data", "", boundTo("disk"))}),
		smallWorld("bound claim, volume refers to nobody", oneDisk,
			[]creation{newVolume("disk", keep, phase(v1.VolumeAvailable)), claimOf("data", "", boundTo("disk"))}),
		smallWorld("bound claim, volume is gone", nil, []creation{claimOf("data", "", boundTo("disk"))}),
		smallWorld("lost claim, volume is back", oneDisk,
			[]creation{newVolume("disk", keep, referTo("data"), phase(v1.VolumeBound)),
				claimOf("data", "", naming("disk"), lost)}),
		smallWorld("bound claim, volume of another claim", oneDisk,
			[]creation{newVolume("disk", keep, referTo("other"), phase(v1.VolumeBound)), claimOf("data", "", boundTo("disk")),
				claimOf("other", "", boundTo("disk"))}),
		smallWorld("claim names the volume of another claim", oneDisk,
			[]creation{newVolume("disk", keep, referTo("other"), phase(v1.VolumeBound)), claimOf("data", "", naming("disk")), claimOf("other", "", boundTo("disk"))}),
		smallWorld("claim names a volume that is missing", nil, []creation{claimOf("data", "", naming("disk"))}),
		smallWorld("bound claim and its volume are restored", oneDisk, nil,
			certainly(volumeComes(newVolume("disk", keep, referTo("data")))), certainly(create("persistentvolumeclaims", claimOf("data", "", naming("disk"), complete)))).with("a stalled watch", stalled),
		smallWorld("two volumes, one claim", []string{"disk-of-disk", "disk-of-twin"},
			[]creation{newVolume("disk", keep, referTo("data")), newVolume("twin", keep, referTo("data"), phase(v1.VolumeBound)), claimOf("data", "")}),
		smallWorld("two claims, one volume", oneDisk, []creation{newVolume("disk", keep), claimOf("data", ""),
			claimOf("other", "")}),
		smallWorld("deleted claim gets no volume", oneDisk, []creation{newVolume("disk", keep),
			claimOf("data", "", claimWith(finalizer.ClaimProtection, "example.com/backup"), deletedClaim)}),
		smallWorld("two volumes for a deleted claim", oneDisk, []creation{newVolume("disk", keep, claimedBy("data")),
			claimOf("data", "", claimWith(finalizer.ClaimProtection, "example.com/backup"), deletedClaim)}),
	}
}

// releaseWorlds start when the claim is gone, or bound elsewhere.
func releaseWorlds() []Config {
	bound, released := inPhase(v1.VolumeBound), inPhase(v1.VolumeReleased)
	external := volumeWith(finalizer.VolumeProtection, finalizer.External)
	return []Config{
		smallWorld("release with Retain", oneDisk, []creation{newVolume("disk", keep, referTo("data"), bound)}),
		smallWorld("release with Delete", oneDisk, []creation{newVolume("disk", remove, referTo("data"), bound, external)}),
		smallWorld("release a dynamic volume", oneDisk,
			[]creation{newVolume("disk", remove, byDriver, referTo("data"), bound, external)}),
		smallWorld("release a pending dynamic volume", oneDisk,
			[]creation{newVolume("disk", remove, byDriver, referTo("data"), external)}),
		smallWorld("release a deleted volume", oneDisk,
			[]creation{newVolume("disk", remove, byDriver, referTo("data"), bound, external, deletedVolume)}),
		smallWorld("release a deleted volume without finalizer", oneDisk,
			[]creation{newVolume("disk", remove, byDriver, referTo("data"), bound, deletedVolume)}).givenUp(),
		smallWorld("release a deleted Retain volume", oneDisk,
			[]creation{newVolume("disk", keep, referTo("data"), bound, deletedVolume)}),
		smallWorld("released volume, claim exists", oneDisk, []creation{newVolume("disk", keep, referTo("data"), released),
			claimOf("data", "", boundTo("disk"))}),
		smallWorld("available volume, claim exists", oneDisk,
			[]creation{newVolume("disk", remove, referTo("data"), inPhase(v1.VolumeAvailable)),
				claimOf("data", "", boundTo("disk"))}),
		smallWorld("claim of the name with another UID", oneDisk,
			[]creation{newVolume("disk", remove, byDriver, referToOlder, bound, external),
				claimOf("data", "", boundTo("elsewhere"))}),
		smallWorld("claim elsewhere, dynamic", []string{"disk-of-disk", "disk-of-twin"},
			[]creation{newVolume("disk", remove, byDriver, referTo("data"), external),
				newVolume("twin", keep, referTo("data"), bound), claimOf("data", "", boundTo("twin"))}),
		smallWorld("claim elsewhere, static", []string{"disk-of-disk", "disk-of-twin"},
			[]creation{newVolume("disk", remove, referTo("data")), newVolume("twin", keep, referTo("data"), bound),
				claimOf("data", "", boundTo("twin"))}),
		smallWorld("claim elsewhere, reserved by a user", []string{"disk-of-disk", "disk-of-twin"},
			[]creation{newVolume("disk", keep, referTo("data"), reservedByUser), newVolume("twin", keep, referTo("data"), bound),
				claimOf("data", "", boundTo("twin"))}),
		smallWorld("deleted before it is bound", []string{diskPrefix + pvcName()},
			[]creation{newClass(remove), newVolume(pvcName(), remove, byDriver, referTo("data"), external, deletedVolume),
				claimOf("data", class, namesDriver)}),
		smallWorld("deleted before it is bound, static", oneDisk,
			[]creation{newVolume("disk", remove, referTo("data"), deletedVolume), claimOf("data", "")}),
		smallWorld("lost claim and its volume", oneDisk, []creation{newVolume("disk", keep, referTo("data"), bound),
			claimOf("data", "", lost)}),
	}
}

// reclaimWorlds start with volumes that the provisioner may have to delete.
func reclaimWorlds() []Config {
	released, failed, bound := inPhase(v1.VolumeReleased), inPhase(v1.VolumeFailed), inPhase(v1.VolumeBound)
	both, external := volumeWith(finalizer.VolumeProtection, finalizer.External), volumeWith(finalizer.External)
	pending := volumeNote("exeunt.io/reclaim", "pending")
	twins := []creation{
		newVolume("disk", remove, byDriver, referTo("data"), released, both),
		newVolume("twin", remove, byDriver, referTo("other"), bound, both, onDisk("disk")),
		claimOf("other", class, namesDriver, boundTo("twin")),
	}
	return []Config{
		smallWorld("released, Delete", oneDisk,
			[]creation{newVolume("disk", remove, byDriver, referTo("data"), released, both)}),
		smallWorld("released, Delete, static", oneDisk,
			[]creation{newVolume("disk", remove, referTo("data"), released, both)}),
		smallWorld("released, Delete, without finalizer", oneDisk,
			[]creation{newVolume("disk", remove, byDriver, referTo("data"), released)}),
		smallWorld("failed, Delete", oneDisk, []creation{newVolume("disk", remove, byDriver, referTo("data"), failed, both)}),
		smallWorld("released, deleted", oneDisk,
			[]creation{newVolume("disk", remove, byDriver, referTo("data"), released, external, deletedVolume)}),
		smallWorld("released, deleted, with pv-protection", oneDisk,
			[]creation{newVolume("disk", remove, byDriver, referTo("data"), released, both, deletedVolume)}),
		smallWorld("released, deleted, marked pending", oneDisk,
			[]creation{newVolume("disk", remove, byDriver, referTo("data"), released, pending, deletedVolume)}),
		smallWorld("released, deleted, backup without mark", oneDisk,
			[]creation{newVolume("disk", remove, byDriver, referTo("data"), released, volumeWith("example.com/backup"), deletedVolume)}).givenUp(),
		smallWorld("released, the namespace of the secret is gone", oneDisk,
			[]creation{newVolume("disk", remove, byDriver, referTo("data"), released, both, sealed("gone"))}),
		smallWorld("released, the secret is missing", oneDisk,
			[]creation{newVolume("disk", remove, byDriver, referTo("data"), released, both, sealed(namespace))}).exempt("disk"),
		smallWorld("released, Retain", oneDisk, []creation{newVolume("disk", keep, byDriver, referTo("data"), released)}),
		smallWorld("released, Retain, with the finalizer", oneDisk, []creation{newVolume("disk", keep, byDriver, referTo("data"), released, both)}),
		smallWorld("released, Retain, deleted with the finalizer", oneDisk, []creation{newVolume("disk", keep, byDriver, referTo("data"), released, both, deletedVolume)}),
		smallWorld("released, Retain becomes Delete", oneDisk, []creation{newVolume("disk", keep, byDriver, referTo("data"), released)}, setPolicy("disk", remove)),
		smallWorld("released, Delete becomes Retain", oneDisk, []creation{newVolume("disk", remove, byDriver, referTo("data"), released, both)}, setPolicy("disk", keep)).with("an interruption", interrupted),
		smallWorld("released, Delete becomes Retain, a secret is read", oneDisk, []creation{newVolume("disk", remove, byDriver, referTo("data"), released, both, sealed("gone"))}, setPolicy("disk", keep)).with("an interruption", interrupted),
		smallWorld("released, Delete becomes Retain, unseen", oneDisk, []creation{newVolume("disk", remove, byDriver, referTo("data"), released, both)}, setPolicy("disk", keep)).with("a stalled watch", stalled),
		smallWorld("released, attached", oneDisk, []creation{newVolume("disk", remove, byDriver, referTo("data"), released, both), attachmentOf("disk")}),
		smallWorld("released, detached later", oneDisk, []creation{newVolume("disk", remove, byDriver, referTo("data"), released, both), attachmentOf("disk")}, deleteAttachment()),
		smallWorld("released, another volume has the disk", oneDisk, twins),
		smallWorld("released, another driver", []string{"disk-of-disk"}, []creation{newVolume("disk", remove, otherDriver, referTo("data"), released)}).exempt("disk"),
	}
}

// reclaimFaultWorlds are those in which a gate is off, something fails, or a user interferes.
func reclaimFaultWorlds() []Config {
	released, bound := inPhase(v1.VolumeReleased), inPhase(v1.VolumeBound)
	both := volumeWith(finalizer.VolumeProtection, finalizer.External)
	pending := volumeNote("exeunt.io/reclaim", "pending")
	return []Config{
		smallWorld("available, deleted, with the finalizer", oneDisk,
			[]creation{newVolume("disk", remove, inPhase(v1.VolumeAvailable), both, deletedVolume)}).givenUp(),
		smallWorld("released, gate off", oneDisk,
			[]creation{newVolume("disk", remove, byDriver, referTo("data"), released, both)}).gateOff(),
		smallWorld("released, deleted, gate off", oneDisk,
			[]creation{newVolume("disk", remove, byDriver, referTo("data"), released, both, deletedVolume)}).gateOff().givenUp(),
		smallWorld("bound, gate off", oneDisk, []creation{newVolume("disk", remove, byDriver, referTo("data"), bound, both),
			claimOf("data", class, namesDriver, boundTo("disk"))}).gateOff(),
		smallWorld("bound, deleted, marked pending, gate off", oneDisk,
			[]creation{newVolume("disk", remove, byDriver, referTo("data"), bound, pending, deletedVolume),
				claimOf("data", class, namesDriver, boundTo("disk"))}, deleteClaim("data")).gateOff().givenUp(),
		smallWorld("released, Delete, a crash", oneDisk,
			[]creation{newVolume("disk", remove, byDriver, referTo("data"), released, both)}).crash(),
		smallWorld("released, Delete, a failed call", oneDisk,
			[]creation{newVolume("disk", remove, byDriver, referTo("data"), released, both)}).fail(),
		smallWorld("released, Delete, a lost answer", oneDisk,
			[]creation{newVolume("disk", remove, byDriver, referTo("data"), released, both)}).
			with("a lost answer", func(c *Config) { c.Losses++ }),
		smallWorld("released, a user deletes", oneDisk,
			[]creation{newVolume("disk", remove, byDriver, referTo("data"), released, both)}, deleteVolume("disk")).
			with("an interruption", interrupted),
		smallWorld("released, a user adds a finalizer", oneDisk,
			[]creation{newVolume("disk", remove, byDriver, referTo("data"), released, both)}, addForeignFinalizer("disk")).
			with("an interruption", interrupted),
		smallWorld("released, a user deletes and creates the volume", oneDisk,
			[]creation{newVolume("disk", remove, byDriver, referTo("data"), released, both)}, stripFinalizers("disk"),
			volumeComes(newVolume("disk", keep, byDriver, referTo("other")))).with("an interruption", interrupted),
	}
}

// finalizerWorlds start with volumes whose finalizers are not as they should be.
func finalizerWorlds() []Config {
	bound := inPhase(v1.VolumeBound)
	both := volumeWith(finalizer.VolumeProtection, finalizer.External)
	pair := func(policy v1.PersistentVolumeReclaimPolicy, changes ...volumeChange) []creation {
		return []creation{newVolume("disk", policy, append([]volumeChange{byDriver, referTo("data"), bound}, changes...)...),
			claimOf("data", class, namesDriver, boundTo("disk"))}
	}
	users := []UserAction{deleteVolume("disk"), deleteClaim("data")}
	return []Config{
		smallWorld("bound, Delete, without finalizer", oneDisk, pair(remove)),
		smallWorld("bound, Retain, with finalizer", oneDisk, pair(keep, both)),
		smallWorld("bound, Delete, deleted without finalizer", oneDisk, pair(remove, deletedVolume)),
		smallWorld("bound, Delete, then released", oneDisk, pair(remove, both), users...),
		smallWorld("bound, Retain, then released", oneDisk, pair(keep), users...),
		smallWorld("bound, policy flips", oneDisk, pair(remove, both), setPolicy("disk", keep), setPolicy("disk", remove),
			deleteClaim("data")),
		smallWorld("bound, policy becomes Delete without admission", oneDisk, pair(keep), setPolicy("disk", remove),
			deleteVolume("disk")).unadmitted(),
		smallWorld("bound, finalizers of others", oneDisk, pair(remove,
			volumeWith("example.com/backup", finalizer.VolumeProtection, finalizer.External)), addForeignFinalizer("disk"),
			deleteClaim("data")).with("an interruption", interrupted),
		smallWorld("pending, Delete, without finalizer", oneDisk,
			[]creation{newVolume("disk", remove, byDriver, claimedBy("nobody"))}),
		smallWorld("bound, Delete, then released, stalled", oneDisk, pair(remove, both), deleteClaim("data")).
			with("a stalled watch", stalled),
		smallWorld("bound, Delete becomes Retain, interrupted", oneDisk, pair(remove, both), setPolicy("disk", keep),
			deleteClaim("data")).with("an interruption", interrupted),
		smallWorld("bound, Retain becomes Delete, interrupted", oneDisk, pair(keep, both), setPolicy("disk", remove)).
			with("an interruption", interrupted).unadmitted(),
		smallWorld("bound, deleted without finalizer, interrupted", oneDisk, pair(remove), deleteVolume("disk")).
			with("an interruption", interrupted).unadmitted(),
	}
}

// protectionWorlds start with volumes and claims that pv-protection or pvc-protection keeps.
func protectionWorlds() []Config {
	bound := inPhase(v1.VolumeBound)
	named := func(claim string, changes ...claimChange) []creation {
		return []creation{newVolume("disk", keep, referTo(claim), bound),
			claimOf(claim, "", append([]claimChange{boundTo("disk")}, changes...)...)}
	}
	pair := func(changes ...claimChange) []creation { return named("data", changes...) }
	with := func(all []creation, more ...creation) []creation { return append(all, more...) }
	return []Config{
		smallWorld("volume and claim without protection", oneDisk,
			[]creation{newVolume("disk", keep, referTo("data"), bound, volumeWith()),
				claimOf("data", "", boundTo("disk"), claimWith())}),
		smallWorld("deleted claim, no pod", oneDisk, pair(deletedClaim)),
		smallWorld("deleted claim, a pod uses it", oneDisk, with(pair(deletedClaim), podOf("data"))),
		smallWorld("deleted claim, its pod is deleted", oneDisk, with(pair(deletedClaim), podOf("data")), podGoes()),
		smallWorld("deleted claim, a pod on no node", oneDisk, with(pair(deletedClaim), podOf("data", onNoNode))),
		smallWorld("deleted claim, a pod of another claim", oneDisk, with(pair(deletedClaim), podOf("other"))),
		smallWorld("claim is deleted while a pod comes", oneDisk, pair(), deleteClaim("data"), podComes("data")).
			with("a stalled watch", stalled),
		smallWorld("deleted claim, an ephemeral pod", oneDisk, with(named("web-data", deletedClaim, ownedByPod),
			podOf("", ephemeral))),
		smallWorld("deleted claim, a terminated ephemeral pod", oneDisk,
			with(named("web-data", deletedClaim, ownedByPod), podOf("", ephemeral, terminated))),
		smallWorld("deleted claim, a terminated pod", oneDisk, with(pair(deletedClaim), podOf("data", terminated))),
		smallWorld("deleted claim with finalizers of others", oneDisk,
			pair(deletedClaim, claimWith("example.com/backup", finalizer.ClaimProtection, "example.com/audit"))),
		smallWorld("deleted available volume", oneDisk,
			[]creation{newVolume("disk", keep, inPhase(v1.VolumeAvailable), deletedVolume)}),
		smallWorld("deleted volume that is bound", oneDisk,
			[]creation{newVolume("disk", keep, referTo("data"), bound, deletedVolume), claimOf("data", "", boundTo("disk"))}),
		smallWorld("claim loses pvc-protection and is deleted", oneDisk, pair(claimWith()), deleteClaim("data")).
			with("an interruption", interrupted),
	}
}
