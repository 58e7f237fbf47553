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
		{"dynamic", slices.Concat(worldsOf(dynamic(remove)), worldsOf(dynamic(keep)))},
		{"static", slices.Concat(
			worldsOf(static(remove)), worldsOf(static(keep)), worldsOf(static(v1.PersistentVolumeReclaimRecycle)),
		)},
		{"pairs", slices.Concat(pairsOf(static(remove)), pairsOf(static(keep)))},
		{"volumes", slices.Concat(
			worldsOf(oneVolume(remove)), worldsOf(oneVolume(keep)), worldsOf(oneClaim(remove)), worldsOf(oneClaim(keep)),
		)},
		{"overtaken", worldsOf(overtaken())},
		{"claims", []Config{twoClaims(remove), twoClaims(keep), twoClaimsAndVolume(remove)}},
		{"gate", []Config{switchedStatic(), switched(remove), switched(keep), switchedTwice()}},
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
		{"webhook", append(
			webhookWorlds(smallWorlds()), static(remove).with("an undone write", undo),
			static(keep).with("an undone write", undo),
		)},
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
		Name: name, Programs: []Program{pvController(), provisioner()}, Eager: true, Admission: true,
		Classes: []string{class},
		Objects: cluster(append(
			[]creation{newNamespace(namespace), newNamespace(process.JournalNamespace)}, creations...,
		)...),
	}
}

// Resources that the programs cache.
var (
	loopCaches        = []string{"persistentvolumes", "persistentvolumeclaims", "pods", "storageclasses"}
	provisionerCaches = []string{"persistentvolumes", "persistentvolumeclaims", "volumeattachments", "storageclasses"}
)

// pvController and provisioner are our programs.
func pvController() Program {
	return Program{
		Name: "pv-controller", Build: process.PVController, Actor: check.PVController, Honor: true, Caches: loopCaches,
	}
}

func provisioner() Program {
	return Program{
		Name: "provisioner", Build: process.Provisioner, Actor: check.Provisioner, Honor: true, Journaled: true,
		Caches: provisionerCaches,
	}
}

// upstreamLoops and upstreamProvisioner are those of upstream.
func upstreamLoops() Program {
	return Program{
		Name: "kube-controller-manager", Build: upstream.Controllers, Actor: check.UpstreamLoops, Honor: true,
		Caches: loopCaches,
	}
}

func upstreamProvisioner(build process.Build) Program {
	return Program{
		Name: "csi-provisioner", Build: build, Actor: check.UpstreamProvisioner, Honor: true, Caches: provisionerCaches,
	}
}
