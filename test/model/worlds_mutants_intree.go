package model

import (
	"slices"

	v1 "k8s.io/api/core/v1"

	"github.com/exeunt-io/exeunt/pkg/finalizer"
	"github.com/exeunt-io/exeunt/pkg/storage"
	"github.com/exeunt-io/exeunt/test/model/process"
)

// inTreeWorlds have an in-tree plugin and no provisioner.
func inTreeWorlds() []Config {
	all := slices.Concat(pluginProvisionsWorlds(), pluginReclaimsWorlds(), pluginBoundWorlds())
	for i := range all {
		all[i].Programs = slices.Clone(all[i].Programs[:1])
		all[i].Programs[0].Name, all[i].Programs[0].Build = "pv-controller with a plugin", process.InTree
	}
	return all
}

// pluginProvisionsWorlds start with a claim for the plugin.
func pluginProvisionsWorlds() []Config {
	claim := claimOf("data", class, claimNote(storage.AnnStorageProvisioner, process.PluginName),
		claimNote(storage.AnnBetaStorageProvisioner, process.PluginName))
	here := changeClass(newClass(remove), process.PluginName)
	return []Config{
		smallWorld("in-tree, provision, Delete", nil, []creation{here, claimOf("data", class)}),
		smallWorld("in-tree, provision, Retain", nil, []creation{changeClass(newClass(keep), process.PluginName),
			claimOf("data", class)}),
		smallWorld("in-tree, provision, users", nil, []creation{here, claim}, deleteVolume("pvc-"), deleteClaim("data")),
		smallWorld("in-tree, provision, crash", nil, []creation{here, claim}, deleteClaim("data")).crash(),
		smallWorld("in-tree, provision, failed call", nil, []creation{here, claim}, deleteClaim("data")).fail(),
		smallWorld("in-tree, provision, interruption", nil, []creation{here, claim}, deleteClaim("data")).
			with("i", interrupted),
		smallWorld("in-tree, name conflict", nil, []creation{here, newVolume(pvcName(), keep, onPath, claimedBy("other")),
			claim}).served(),
	}
}

// pluginReclaimsWorlds start with a volume whose claim is gone.
func pluginReclaimsWorlds() []Config {
	bound, released := inPhase(v1.VolumeBound), inPhase(v1.VolumeReleased)
	both := volumeWith(finalizer.VolumeProtection, finalizer.InTree)
	return []Config{
		smallWorld("in-tree, released", oneDisk, []creation{pluginVolume(remove, referTo("data"), released, both)}),
		smallWorld("in-tree, released, static", oneDisk, []creation{pathVolume(remove, referTo("data"), released)}),
		smallWorld("in-tree, released, deleted", oneDisk,
			[]creation{pluginVolume(remove, referTo("data"), released, both, deletedVolume)}),
		smallWorld("in-tree, released, static, deleted", oneDisk,
			[]creation{pathVolume(remove, referTo("data"), released, deletedVolume)}),
		smallWorld("in-tree, released, Retain", oneDisk, []creation{pluginVolume(keep, referTo("data"), released, both)}),
		smallWorld("in-tree, failed", oneDisk,
			[]creation{pluginVolume(remove, referTo("data"), inPhase(v1.VolumeFailed), both)}),
		smallWorld("in-tree, shared directory", oneDisk, []creation{pluginVolume(remove, referTo("data"), released, both),
			newVolume("twin", keep, onPath, referTo("other"), bound), claimOf("other", "", boundTo("twin"))}),
		smallWorld("in-tree, released, crash", oneDisk, []creation{pluginVolume(remove, referTo("data"), released, both)}).
			crash(),
		smallWorld("in-tree, released, failed call", oneDisk,
			[]creation{pluginVolume(remove, referTo("data"), released, both)}).fail(),
		smallWorld("in-tree, released, becomes Retain", oneDisk,
			[]creation{pluginVolume(remove, referTo("data"), released, both)}, setPolicy("disk", keep)).with("i", interrupted),
		smallWorld("in-tree, released, user deletes", oneDisk,
			[]creation{pluginVolume(remove, referTo("data"), released, both)}, deleteVolume("disk")).with("i", interrupted),
		smallWorld("in-tree, released, claimRef removed", oneDisk,
			[]creation{pluginVolume(remove, referTo("data"), released, both)}, clearClaimRef("disk")).with("i", interrupted),
		smallWorld("in-tree, released, static, deleted, claim exists", oneDisk,
			[]creation{pathVolume(remove, referTo("data"), released, deletedVolume), claimOf("data", "")}).givenUp(),
		smallWorld("in-tree, recycle", oneDisk,
			[]creation{pathVolume(v1.PersistentVolumeReclaimRecycle, referTo("data"), released)}, finishPod(v1.PodSucceeded)),
		smallWorld("in-tree, recycle fails", oneDisk,
			[]creation{pathVolume(v1.PersistentVolumeReclaimRecycle, referTo("data"), released)}, finishPod(v1.PodFailed),
			finishPod(v1.PodSucceeded)),
		smallWorld("in-tree, recycle becomes Retain", oneDisk,
			[]creation{pathVolume(v1.PersistentVolumeReclaimRecycle, referTo("data"), released)}, finishPod(v1.PodSucceeded),
			setPolicy("disk", keep)),
	}
}

// pluginBoundWorlds start with a volume that may still be used.
func pluginBoundWorlds() []Config {
	bound, released := inPhase(v1.VolumeBound), inPhase(v1.VolumeReleased)
	both := volumeWith(finalizer.VolumeProtection, finalizer.InTree)
	return []Config{
		smallWorld("in-tree, bound, no finalizer", oneDisk, []creation{pluginVolume(remove, referTo("data"), bound),
			claimOf("data", class, boundTo("disk"))}),
		smallWorld("in-tree, bound, users", oneDisk, []creation{pluginVolume(remove, referTo("data"), bound, both),
			claimOf("data", class, boundTo("disk"))}, deleteVolume("disk"), deleteClaim("data")),
		smallWorld("in-tree, bound, external finalizer", oneDisk,
			[]creation{pluginVolume(remove, referTo("data"), bound, volumeWith(finalizer.VolumeProtection, finalizer.External)),
				claimOf("data", class, boundTo("disk"))}, deleteClaim("data")),
		smallWorld("in-tree, bound, policy flips", oneDisk, []creation{pluginVolume(remove, referTo("data"), bound, both),
			claimOf("data", class, boundTo("disk"))}, setPolicy("disk", keep), deleteVolume("disk"), deleteClaim("data")),
		smallWorld("in-tree, static, users", oneDisk, []creation{pathVolume(remove), claimOf("data", "")},
			deleteVolume("disk"), deleteClaim("data")),
		smallWorld("in-tree, unclaimed, deleted", oneDisk,
			[]creation{pluginVolume(remove, inPhase(v1.VolumeAvailable), both, deletedVolume)}).givenUp(),
		smallWorld("in-tree, gate off", oneDisk, []creation{pluginVolume(remove, referTo("data"), bound, both),
			claimOf("data", class, boundTo("disk"))}, deleteClaim("data")).gateOff(),
		smallWorld("in-tree, gate off, deleted", oneDisk,
			[]creation{pluginVolume(remove, referTo("data"), released, both, deletedVolume)}).gateOff().givenUp(),
		smallWorld("in-tree, claim elsewhere", []string{"disk-of-disk", "disk-of-twin"},
			[]creation{pluginVolume(remove, referTo("data"), both), newVolume("twin", keep, referTo("data"), bound),
				claimOf("data", "", boundTo("twin"))}),
		smallWorld("in-tree, plugin is missing", oneDisk,
			[]creation{newVolume("disk", remove, missingPlugin, referTo("data"), bound, both),
				claimOf("data", "", boundTo("disk"))}).givenUp(),
		smallWorld("in-tree, plugin is missing, users", oneDisk,
			[]creation{newVolume("disk", remove, missingPlugin, referTo("data"), bound, both),
				claimOf("data", "", boundTo("disk"))}, certainly(deleteVolume("disk")), certainly(deleteClaim("data"))).givenUp(),
		smallWorld("in-tree, plugin is missing, external finalizer", oneDisk,
			[]creation{newVolume("disk", remove, missingPlugin, referTo("data"), bound,
				volumeWith(finalizer.VolumeProtection, finalizer.External)), claimOf("data", "", boundTo("disk"))},
			certainly(deleteVolume("disk")), certainly(deleteClaim("data"))).givenUp(),
		smallWorld("in-tree, external volume with in-tree finalizer", oneDisk,
			[]creation{newVolume("disk", keep, byDriver, referTo("data"), bound, both),
				claimOf("data", class, boundTo("disk"))}),
	}
}

// pluginVolume is a volume that the plugin byDriver, pathVolume is that of an administrator.
func pluginVolume(policy v1.PersistentVolumeReclaimPolicy, changes ...volumeChange) creation {
	return newVolume("disk", policy, append([]volumeChange{byPlugin}, changes...)...)
}

func pathVolume(policy v1.PersistentVolumeReclaimPolicy, changes ...volumeChange) creation {
	return newVolume("disk", policy, append([]volumeChange{onPath}, changes...)...)
}
