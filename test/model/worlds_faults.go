package model

import (
	"slices"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/exeunt-io/exeunt/pkg/controller"
	"github.com/exeunt-io/exeunt/pkg/journal"
	"github.com/exeunt-io/exeunt/test/model/check"
	"github.com/exeunt-io/exeunt/test/model/process"
	"github.com/exeunt-io/exeunt/test/model/server"
)

// wrongAnswerWorlds returns the worlds in which an answer of the driver is not what it did.
func wrongAnswerWorlds() []Config {
	var all []Config
	for _, c := range []Config{
		dynamic(v1.PersistentVolumeReclaimDelete), dynamic(v1.PersistentVolumeReclaimRetain),
		static(v1.PersistentVolumeReclaimDelete), recreated(),
	} {
		all = append(all, c.with("a wrong answer", wrongAnswer))
	}
	return all
}

func wrongAnswer(c *Config) { c.WrongAnswers++ }

// volumeUnreleased is what pv-controller leaves to do with its gate off.
var volumeUnreleased = Excuse{
	Rule: check.StuckVolume, Sentence: "claim Unbound", Also: []check.Rule{check.NotBound},
	Why: "with its gate off, pv-controller releases no volume that was deleted before its claim was bound, as kube-controller-manager does not; provisioner, with its gate on, keeps it",
}

// switched is a claim while the gate of one program is switched.
func switched(policy v1.PersistentVolumeReclaimPolicy) Config {
	c := dynamic(policy)
	c.Name, c.Switches = "gate switched, "+string(policy), 1
	if policy == v1.PersistentVolumeReclaimDelete {
		c.Excused = []Excuse{volumeUnreleased}
	}
	return c
}

// switchedTwice is the same for the gates of both programs, or for one gate that is switched back. A
// user deletes the claim.
func switchedTwice() Config {
	c := dynamic(v1.PersistentVolumeReclaimDelete)
	c.Name, c.Switches, c.Users, c.States = "gate switched twice, Delete", 2, []UserAction{deleteClaim("data")}, 300_000
	return c
}

// switchedStatic is a volume of an administrator while the gates are switched twice.
func switchedStatic() Config {
	c := static(v1.PersistentVolumeReclaimDelete)
	c.Name, c.Switches = "gate switched twice, static Delete", 2
	return c
}

// lateWatchWorlds are worlds in which the watch of claims is late, and claims come by the watch.
func lateWatchWorlds() []Config {
	c := base("disk kept behind a late watch", newClass(v1.PersistentVolumeReclaimDelete))
	c.Users = []UserAction{
		createClaim("data", class), setPolicy("pvc-", v1.PersistentVolumeReclaimRetain), deleteVolume("pvc-"),
		deleteClaim("data"),
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
	c := smallWorld("claim gone, disk kept, a start with an old list", nil,
		[]creation{newClass(remove), claimOf("data", class, namesDriver)}, deleteClaim("data"))
	c.Kept = []string{diskPrefix + pvcName()}
	c.Disks = c.Kept
	c.OldLists, c.Unsteady, c.Stalling, c.EveryVersion, c.Slow = 1, []string{"provisioner"},
		[]string{"persistentvolumeclaims"}, true, true
	return c
}

// formerWorlds are worlds in which a leader that loses its lease ends what it has in flight beside
// the new leader.
func formerWorlds() []Config {
	var all []Config
	for _, c := range []Config{
		static(v1.PersistentVolumeReclaimDelete), dynamic(v1.PersistentVolumeReclaimDelete),
		dynamic(v1.PersistentVolumeReclaimRetain), led(),
	} {
		all = append(all, c.with("a former leader", formerLeader))
	}
	return all
}

// formerLeader has a leader crash, or lose its lease while it works.
func formerLeader(c *Config) { c.Crashes, c.FormerLeaders = c.Crashes+1, true }

// led is a claim of a class, and the journal of an earlier leader. A user deletes the claim.
func led() Config {
	c := base("dynamic Delete after an earlier leader", newClass(v1.PersistentVolumeReclaimDelete),
		newClaim("data", class), newJournal(1))
	c.Users, c.Terms = []UserAction{deleteClaim("data")}, 1
	return c
}

// newJournal is a Lease of the journal without entries, of the leader with the number.
func newJournal(term int32) creation {
	lease := journal.Journal{Namespace: process.JournalNamespace, Driver: process.DriverName}.Lease(
		journal.KindActive, 0, "pod-of-a-leader"+controller.IdentitySuffix,
		journal.Custody{LeaderLease: process.LeaderLease, Transitions: term}, nil)
	lease.TypeMeta = metav1.TypeMeta{APIVersion: "coordination.k8s.io/v1", Kind: "Lease"}
	return creation{leasesPath, lease}
}

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
		static(v1.PersistentVolumeReclaimDelete), static(v1.PersistentVolumeReclaimRetain),
		dynamic(v1.PersistentVolumeReclaimDelete), dynamic(v1.PersistentVolumeReclaimRetain),
	} {
		all = append(all, c.with("a restore", restore), c.with("a restore without leader election",
			restoreUnled("pv-controller")))
	}
	return slices.Concat(all, smallRestoreWorlds())
}

// smallRestoreWorlds are those for mutants.
func smallRestoreWorlds() []Config {
	requested := []creation{newClass(remove), claimOf("data", class, namesDriver)}
	taken := []creation{newVolume("disk", keep, referTo("other"), inPhase(v1.VolumeBound)),
		claimOf("other", "", boundTo("disk")), claimOf("data", "")}
	return []Config{
		smallWorld("provision, and a restore", nil, requested).with("a restore", restore),
		smallWorld("restored claim, its disk is in use", []string{diskPrefix + pvcName()}, requested).
			with("a wrong answer", func(c *Config) {
				c.WrongAnswers, c.Filled, c.Restarted, c.Terms = 1, true, true, 1
			}),
		smallWorld("volume of an earlier claim", oneDisk, taken, deleteClaim("other"), clearClaimRef("disk")).
			with("a restore without leader election", func(c *Config) {
				c.Programs, c.Ordered, c.Stalls, c.Stalling = c.Programs[:1], true, 1, []string{"persistentvolumes"}
				restoreUnled("pv-controller")(c)
			}),
	}
}

// journalRestored is an entry of a claim that is gone. It ends in a volume with the policy Retain, which a user deletes:
// after a restore, the entry alone names the disk. The provisioner has no leader election.
func (l *Lab) journalRestored() Config {
	from := smallWorld("an entry of a deleted claim", nil, []creation{newClass(keep), claimOf("data", class, namesDriver)},
		deleteClaim("data")).with("an interruption", interrupted)
	c := l.startAt(from, restart{name: "requested, disk, claim gone, Retain", disks: 1}).alone()
	other := claimOf("other", class, namesDriver)
	c.Users = []UserAction{deleteVolume("pvc-"), {Says: "a user creates the claim other",
		Request: func(server.Cluster) (server.Request, bool) { return other.request(), true }}}
	c.OldVersions = true // higher ones need the restart that docs/operations.md wants
	return c.with("a restore without leader election", restoreUnled("provisioner"))
}

// deny has an admission webhook deny a write, undo has it take back a change.
func deny(c *Config) { c.Denials++ }

func undo(c *Config) { c.Undos++ }

// webhookWorlds returns the worlds, in which an admission webhook denies a write or takes back its change; only those
// with the names, all for none.
func webhookWorlds(worlds []Config, names ...string) []Config {
	var all []Config
	for _, c := range worlds {
		if len(names) == 0 || slices.Contains(names, c.Name) {
			all = append(all, c.with("a denied write", deny), c.with("an undone write", undo))
		}
	}
	return all
}

// smallWorlds are the worlds for mutants that start anew.
func smallWorlds() []Config {
	return slices.Concat(bindingWorlds(), releaseWorlds(), reclaimWorlds(), finalizerWorlds(), protectionWorlds(),
		provisioningWorlds(), inTreeWorlds())
}

// smallWebhookWorlds are those that take seconds: each kind of write is in one of them.
func smallWebhookWorlds() []Config {
	return webhookWorlds(smallWorlds(),
		"bind a static volume", "binding after write 1", "lost claim, volume is back", "release a dynamic volume",
		"claim elsewhere, dynamic",
		"released, Delete", "released, deleted, marked pending", "released, Retain, with the finalizer",
		"bound, Delete, without finalizer",
		"volume and claim without protection", "deleted claim, no pod", "deleted available volume",
		"provision, selected node is gone",
		"in-tree, released", "in-tree, recycle", "in-tree, bound, no finalizer",
	)
}
