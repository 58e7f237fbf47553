package model

import (
	"slices"

	v1 "k8s.io/api/core/v1"

	"github.com/exeunt-io/exeunt/test/model/server"
)

// restore has etcd restored from a backup of the beginning.
func restore(c *Config) { c.Restores++ }

// restoreUnled is a restore beside programs that have no leader election.
func restoreUnled(programs ...string) func(*Config) {
	return func(c *Config) { c.Restores, c.Unled = c.Restores+1, programs }
}

// restoreWorlds return worlds in which etcd is restored.
func restoreWorlds() []Config {
	var all []Config
	for _, c := range []Config{
		static(v1.PersistentVolumeReclaimDelete), static(v1.PersistentVolumeReclaimRetain), dynamic(v1.PersistentVolumeReclaimDelete), dynamic(v1.PersistentVolumeReclaimRetain),
	} {
		all = append(all, c.with("a restore", restore), c.with("a restore without leader election", restoreUnled("pv-controller")))
	}
	return slices.Concat(all, smallRestoreWorlds())
}

// smallRestoreWorlds are those for mutants.
func smallRestoreWorlds() []Config {
	requested := []creation{newClass(remove), claimOf("data", class, namesDriver)}
	taken := []creation{newVolume("disk", keep, referTo("other"), inPhase(v1.VolumeBound)), claimOf("other", "", boundTo("disk")), claimOf("data", "")}
	return []Config{
		scene("provision, and a restore", nil, requested).with("a restore", restore),
		scene("restored claim, its disk is in use", []string{diskPrefix + pvcName()}, requested).with("a wrong answer", func(c *Config) {
			c.WrongAnswers, c.Filled, c.Restarted, c.Terms = 1, true, true, 1
		}),
		scene("volume of an earlier claim", oneDisk, taken, deleteClaim("other"), clearClaimRef("disk")).with("a restore without leader election", func(c *Config) {
			c.Programs, c.Ordered, c.Stalls, c.Stalling = c.Programs[:1], true, 1, []string{"persistentvolumes"}
			restoreUnled("pv-controller")(c)
		}),
	}
}

// journalRestored is an entry of a claim that is gone. It ends in a volume with the policy Retain, which a user deletes:
// after a restore, the entry alone names the disk. The provisioner has no leader election.
func (l *Lab) journalRestored() Config {
	from := scene("an entry of a deleted claim", nil, []creation{newClass(keep), claimOf("data", class, namesDriver)}, deleteClaim("data")).with("an interruption", interrupted)
	c := l.startAt(from, restart{name: "requested, disk, claim gone, Retain", disks: 1}).alone()
	other := claimOf("other", class, namesDriver)
	c.Users = []UserAction{deleteVolume("pvc-"), {Says: "a user creates the claim other", Request: func(server.Cluster) (server.Request, bool) { return other.request(), true }}}
	c.OldVersions = true // higher ones need the restart that docs/operations.md wants
	return c.with("a restore without leader election", restoreUnled("provisioner"))
}
