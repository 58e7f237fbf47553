package model

import (
	"slices"

	v1 "k8s.io/api/core/v1"

	"github.com/exeunt-io/exeunt/test/model/check"
	"github.com/exeunt-io/exeunt/test/model/process"
	"github.com/exeunt-io/exeunt/test/model/upstream"
)

// Group are configurations that share a lab.
type Group struct {
	Name    string
	Configs []Config
}

// Groups returns all configurations of the deep run.
func Groups() []Group {
	return []Group{
		{"dynamic", slices.Concat(worldsOf(dynamic(v1.PersistentVolumeReclaimDelete)), worldsOf(dynamic(v1.PersistentVolumeReclaimRetain)))},
		{"static", slices.Concat(worldsOf(static(v1.PersistentVolumeReclaimDelete)), worldsOf(static(v1.PersistentVolumeReclaimRetain)), worldsOf(static(v1.PersistentVolumeReclaimRecycle)))},
		{"pairs", slices.Concat(pairsOf(static(v1.PersistentVolumeReclaimDelete)), pairsOf(static(v1.PersistentVolumeReclaimRetain)))},
		{"volumes", slices.Concat(worldsOf(oneVolume(v1.PersistentVolumeReclaimDelete)), worldsOf(oneVolume(v1.PersistentVolumeReclaimRetain)),
			worldsOf(oneClaim(v1.PersistentVolumeReclaimDelete)), worldsOf(oneClaim(v1.PersistentVolumeReclaimRetain)))},
		{"overtaken", worldsOf(overtaken())},
		{"claims", []Config{twoClaims(v1.PersistentVolumeReclaimDelete), twoClaims(v1.PersistentVolumeReclaimRetain), twoClaimsAndVolume(v1.PersistentVolumeReclaimDelete)}},
		{"gate", []Config{switchedStatic(), switched(v1.PersistentVolumeReclaimDelete), switched(v1.PersistentVolumeReclaimRetain), switchedTwice()}},
		{"driver", wrongAnswerWorlds()},
		{"again", worldsOf(recreated())},
		{"users", slices.Concat(worldsOf(flipped()), worldsOf(stripped()), worldsOf(reused()))},
		{"beside", besideWorlds()},
		{"concurrent", concurrentWorlds()},
		{"views", cacheWorlds()},
		{"hours", hourWorlds()},
		{"cluster", clusterWorlds()},
		{"late", lateWatchWorlds()},
		{"former", formerWorlds()},
		{"delayed", delayedWorlds()},
		{"webhook", append(webhookWorlds(smallWorlds()), static(v1.PersistentVolumeReclaimDelete).with("an undone write", undo), static(v1.PersistentVolumeReclaimRetain).with("an undone write", undo))},
		{"restore", restoreWorlds()},
		{"known", mendedBugs()},
	}
}

// mendedBugs are the worlds of known bugs, with our programs.
func mendedBugs() []Config {
	var all []Config
	for _, bug := range KnownBugs() {
		if bug.Ours != nil {
			all = append(all, bug.Ours(bug.Config).with("our programs", func(*Config) {}))
		}
	}
	return all
}

// base returns a configuration with our programs and a class.
func base(name string, creations ...creation) Config {
	return Config{
		Name: name, Programs: []Program{pvController(), provisioner()}, Eager: true, Admission: true, Classes: []string{class},
		Objects: cluster(append([]creation{newNamespace(namespace), newNamespace(process.JournalNamespace)}, creations...)...),
	}
}

// Resources that the programs cache.
var (
	loopCaches        = []string{"persistentvolumes", "persistentvolumeclaims", "pods", "storageclasses"}
	provisionerCaches = []string{"persistentvolumes", "persistentvolumeclaims", "volumeattachments", "storageclasses"}
)

// pvController and provisioner are our programs.
func pvController() Program {
	return Program{Name: "pv-controller", Build: process.PVController, Actor: check.PVController, Honor: true, Caches: loopCaches}
}

func provisioner() Program {
	return Program{Name: "provisioner", Build: process.Provisioner, Actor: check.Provisioner, Honor: true, Journaled: true, Caches: provisionerCaches}
}

// upstreamLoops and upstreamProvisioner are those of upstream.
func upstreamLoops() Program {
	return Program{Name: "kube-controller-manager", Build: upstream.Controllers, Actor: check.UpstreamLoops, Honor: true, Caches: loopCaches}
}

func upstreamProvisioner(build process.Build) Program {
	return Program{Name: "csi-provisioner", Build: build, Actor: check.UpstreamProvisioner, Honor: true, Caches: provisionerCaches}
}
