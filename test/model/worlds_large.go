package model

import (
	"maps"
	"slices"

	v1 "k8s.io/api/core/v1"
)

// LargeWorlds returns the large worlds of random walks.
func LargeWorlds() []Config {
	return []Config{
		dynamicLarge(), staticLarge(), mixedLarge(), formerLarge(), lateLarge(), largeWithWrongAnswers(), switchedLarge(),
		oldLarge(),
	}
}

// keepingClass is a class whose volumes have the policy Retain.
const keepingClass = "kept"

// largeWorld has many claims and volumes, faults of all kinds, and users who do everything as often as
// they like.
func largeWorld(name string, creations []creation, disks []string, users ...UserAction) Config {
	c := base(name, creations...)
	c.Disks, c.Users, c.Classes = disks, users, []string{class, keepingClass}
	c.Crashes, c.Losses, c.Errors, c.Hours, c.Stalls, c.Interruptions = 30, 30, 30, 10, 30, 120
	c.Denials, c.Undos, c.Restores, c.Backups = 30, 30, 10, 10
	return c
}

// dynamicLarge has claims of two classes.
func dynamicLarge() Config {
	return largeWorld("large dynamic", []creation{
		newClass(v1.PersistentVolumeReclaimDelete), newClassNamed(keepingClass, v1.PersistentVolumeReclaimRetain),
		newClaim("a", class), newClaim("b", class), newClaim("c", keepingClass),
	}, nil, append(claimUsers(map[string]string{"a": class, "b": class, "c": keepingClass}), volumeUsers(3)...)...)
}

// staticLarge has volumes of an administrator.
func staticLarge() Config {
	return largeWorld("large static", []creation{
		newVolume("disk-0", v1.PersistentVolumeReclaimDelete), newVolume("disk-1", v1.PersistentVolumeReclaimRetain),
		newVolume("disk-2", v1.PersistentVolumeReclaimDelete, provisioned),
		newClaim("a", ""), newClaim("b", ""),
	}, []string{"disk-of-disk-0", "disk-of-disk-1", "disk-of-disk-2"},
		append(claimUsers(map[string]string{"a": "", "b": ""}), volumeUsers(3)...)...)
}

// mixedLarge has volumes of both kinds.
func mixedLarge() Config {
	return largeWorld("large mixed", []creation{
		newClass(v1.PersistentVolumeReclaimDelete), newVolume("disk-0", v1.PersistentVolumeReclaimRetain),
		newVolume("disk-1", v1.PersistentVolumeReclaimDelete, provisioned),
		newClaim("a", class), newClaim("b", class), newClaim("c", ""), newClaim("d", ""),
	}, []string{"disk-of-disk-0", "disk-of-disk-1"},
		append(claimUsers(map[string]string{"a": class, "b": class, "c": "", "d": ""}), volumeUsers(4)...)...)
}

// formerLarge has leaders that end their last pass beside the new one.
func formerLarge() Config {
	c := dynamicLarge()
	c.Name, c.FormerLeaders = "large with former leaders", true
	return c
}

// lateLarge has caches that see every version of an object, or skip some, also within a pass.
func lateLarge() Config {
	c := mixedLarge()
	c.Name, c.EveryVersion, c.SkipVersions, c.SeeWithinPass = "large with late caches", true, true, true
	return c
}

// oldLarge has programs that start with old lists, whose watches then show one version after the other.
func oldLarge() Config {
	c := mixedLarge()
	c.Name, c.EveryVersion, c.Slow, c.OldLists = "large with old lists", true, true, 10
	return c
}

// largeWithWrongAnswers has a driver that does not always answer what it did.
func largeWithWrongAnswers() Config {
	c := dynamicLarge()
	c.Name, c.WrongAnswers = "large with wrong answers of the driver", 10
	return c
}

// switchedLarge has programs whose gate is switched.
func switchedLarge() Config {
	c := mixedLarge()
	c.Name, c.Switches, c.Excused = "large with switched gates", 10, []Excuse{volumeUnreleased}
	return c
}

// claimUsers delete claims, create them again, and use them.
func claimUsers(classes map[string]string) []UserAction {
	var all []UserAction
	for _, name := range slices.Sorted(maps.Keys(classes)) {
		all = append(all, deleteClaim(name), createClaim(name, classes[name]), createPod(name), deletePod(name))
	}
	return all
}

// volumeUsers delete and change the first so many volumes.
func volumeUsers(count int) []UserAction {
	var all []UserAction
	for n := range count {
		all = append(
			all, deleteNth(n), setNthPolicy(n, v1.PersistentVolumeReclaimRetain),
			setNthPolicy(n, v1.PersistentVolumeReclaimDelete).unless(n, isNew),
		)
	}
	return append(
		all, attachNth(0), attachNth(1), detach(), detach(), setNthLate(0), setNthEarly(1), stripNth(0),
		clearNthClaimRef(1),
	)
}
