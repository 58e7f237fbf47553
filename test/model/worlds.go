package model

import (
	"slices"

	v1 "k8s.io/api/core/v1"

	"github.com/exeunt-io/exeunt/test/model/check"
	"github.com/exeunt-io/exeunt/test/model/programs"
	"github.com/exeunt-io/exeunt/test/model/upstream"
)

// Resources that the programs cache.
var (
	loopCaches        = []string{"persistentvolumes", "persistentvolumeclaims", "pods", "storageclasses"}
	provisionerCaches = []string{"persistentvolumes", "persistentvolumeclaims", "volumeattachments", "storageclasses"}
)

// pvController and provisioner are our programs.
func pvController() Program {
	return Program{Name: "pv-controller", Build: programs.PVController, Actor: check.PVController, Honor: true, Caches: loopCaches}
}

func provisioner() Program {
	return Program{Name: "provisioner", Build: programs.Provisioner, Actor: check.Provisioner, Honor: true, Journaled: true, Caches: provisionerCaches}
}

// upstreamLoops and upstreamProvisioner are those of upstream.
func upstreamLoops() Program {
	return Program{Name: "kube-controller-manager", Build: upstream.Controllers, Actor: check.UpstreamLoops, Honor: true, Caches: loopCaches}
}

func upstreamProvisioner(options upstream.Options) Program {
	return Program{Name: "csi-provisioner", Build: options.Sidecar, Actor: check.UpstreamProvisioner, Honor: true, Caches: provisionerCaches}
}

// base returns a configuration with our programs and a class.
func base(name string, creations ...creation) Config {
	return Config{
		Name: name, Programs: []Program{pvController(), provisioner()}, Eager: true, Admission: true, Classes: []string{class},
		Objects: cluster(append([]creation{newNamespace(namespace), newNamespace(programs.Namespace)}, creations...)...),
	}
}

// dynamic is a claim of a class. A user deletes the volume and the claim, in any order and at any time.
func dynamic(policy v1.PersistentVolumeReclaimPolicy) Config {
	c := base("dynamic "+string(policy), newClass(policy), newClaim("data", class))
	c.Users = []UserAction{deleteVolume("pvc-"), deleteClaim("data")}
	return c
}

// recreated is a claim whose name is used again.
func recreated() Config {
	c := base("claim created again", newClass(v1.PersistentVolumeReclaimDelete), newClaim("data", class))
	c.Users = []UserAction{deleteClaim("data"), createClaim("data", class)}
	return c
}

// static is a volume of an administrator and a claim for it.
func static(policy v1.PersistentVolumeReclaimPolicy) Config {
	c := base("static "+string(policy), newVolume("disk", policy), newClaim("data", ""))
	c.Disks, c.Users = []string{"disk-of-disk"}, []UserAction{deleteVolume("disk"), deleteClaim("data")}
	return c
}

// flipped is a claim whose volume gets the policy Retain, and may get Delete again.
func flipped() Config {
	c := dynamic(v1.PersistentVolumeReclaimDelete)
	c.Name, c.Users = "policy flipped", []UserAction{setPolicy("pvc-", v1.PersistentVolumeReclaimRetain), setPolicy("pvc-", v1.PersistentVolumeReclaimDelete), deleteClaim("data")}
	return c
}

// stripped is a volume whose finalizers a user removes, at any time.
func stripped() Config {
	c := dynamic(v1.PersistentVolumeReclaimDelete)
	c.Name, c.Users = "finalizers removed", []UserAction{deleteVolume("pvc-"), stripFinalizers("pvc-"), deleteClaim("data")}
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

// with returns the configuration with a change, and the change in its name.
func (c Config) with(name string, change func(*Config)) Config {
	c.Users = slices.Clone(c.Users)
	c.Programs = slices.Clone(c.Programs)
	c.Name += ", " + name
	change(&c)
	return c
}

// faults are what can go wrong, each once.
var faults = []struct {
	name string
	add  func(*Config)
}{
	{"an interruption", func(c *Config) { c.Interruptions++ }},
	{"a stalled watch", func(c *Config) { c.Stalls++ }},
	{"a crash", func(c *Config) { c.Crashes++ }},
	{"a lost answer", func(c *Config) { c.Losses++ }},
	{"a failed call", func(c *Config) { c.Errors++ }},
	{"a denied write", deny},
}

// worldsOf returns a configuration without a fault and with each one.
func worldsOf(c Config) []Config {
	all := []Config{c}
	for _, fault := range faults {
		all = append(all, c.with(fault.name, fault.add))
	}
	return all
}

// pairsOf returns a configuration with each pair of faults.
func pairsOf(c Config) []Config {
	var all []Config
	for i, first := range faults {
		for _, second := range faults[i:] {
			all = append(all, c.with(first.name, first.add).with(second.name, second.add))
		}
	}
	return all
}

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
		{"driver", lied()},
		{"again", worldsOf(recreated())},
		{"users", slices.Concat(worldsOf(flipped()), worldsOf(stripped()), worldsOf(reused()))},
		{"beside", besideWorlds()},
		{"concurrent", concurrentWorlds()},
		{"views", viewWorlds()},
		{"hours", hourWorlds()},
		{"cluster", clusterWorlds()},
		{"late", lateWorlds()},
		{"former", formerWorlds()},
		{"delayed", delayedWorlds()},
		{"webhook", append(webhookWorlds(scenes()), static(v1.PersistentVolumeReclaimDelete).with("an undone write", undo), static(v1.PersistentVolumeReclaimRetain).with("an undone write", undo))},
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
