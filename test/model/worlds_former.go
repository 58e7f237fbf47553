package model

import (
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/exeunt-io/exeunt/pkg/controller"
	"github.com/exeunt-io/exeunt/pkg/journal"
	"github.com/exeunt-io/exeunt/test/model/process"
	"github.com/exeunt-io/exeunt/test/model/programs"
)

// formerWorlds are worlds in which a leader that loses its lease ends what it has in flight beside
// the new leader.
func formerWorlds() []Config {
	var all []Config
	for _, c := range []Config{
		static(v1.PersistentVolumeReclaimDelete), dynamic(v1.PersistentVolumeReclaimDelete), dynamic(v1.PersistentVolumeReclaimRetain), led(),
	} {
		all = append(all, c.with("a former leader", formerLeader))
	}
	return all
}

// formerLeader has a leader crash, or lose its lease while it works.
func formerLeader(c *Config) { c.Crashes, c.FormerLeaders = c.Crashes+1, true }

// led is a claim of a class, and the journal of an earlier leader. A user deletes the claim.
func led() Config {
	c := base("dynamic Delete after an earlier leader", newClass(v1.PersistentVolumeReclaimDelete), newClaim("data", class), newJournal(1))
	c.Users, c.Terms = []UserAction{deleteClaim("data")}, 1
	return c
}

// newJournal is a Lease of the journal without entries, of the leader with the number.
func newJournal(term int32) creation {
	lease := journal.Journal{Namespace: programs.Namespace, Driver: process.DriverName}.Lease(
		journal.KindActive, 0, "pod-of-a-leader"+controller.IdentitySuffix, journal.Custody{LeaderLease: programs.LeaderLease, Transitions: term}, nil)
	lease.TypeMeta = metav1.TypeMeta{APIVersion: "coordination.k8s.io/v1", Kind: "Lease"}
	return creation{leasesPath, lease}
}
