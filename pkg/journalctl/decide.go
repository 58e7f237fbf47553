package journalctl

import (
	v1 "k8s.io/api/core/v1"

	"github.com/exeunt-io/exeunt/internal/enum"
	"github.com/exeunt-io/exeunt/pkg/journal"
	"github.com/exeunt-io/exeunt/pkg/storage"
)

// command is the command that the administrator runs on an unresolved entry.
type command int

const (
	// finish repeats the request and records the volume.
	finish command = iota
	// drop removes the entry.
	drop
)

// String returns the name of the command.
func (c command) String() string { return enum.Name(c, "finish", "drop") }

// verdict is the result of the check of a command.
type verdict int

const (
	// refuse: the command is useless or does harm.
	refuse verdict = iota
	// confirm: a volume may be left behind in the storage system (drop), or deleted with its data
	// (finish); the administrator must agree.
	confirm
	// proceed: the command is safe.
	proceed
)

// String returns the name of the verdict.
func (v verdict) String() string { return enum.Name(v, "refuse", "confirm", "proceed") }

// decide checks a command on an unresolved entry. Bound: the claim of the entry is, or was,
// bound to the volume of the entry. MayDelete: finish may end with DeleteVolume.
func decide(c command, bound, mayDelete bool, volume storage.Record) verdict {
	switch {
	case c == drop && volume == storage.RecordPresent:
		return proceed
	case c == drop:
		return confirm
	case volume != storage.RecordAbsent || bound:
		return refuse
	case mayDelete:
		return confirm
	}
	return proceed
}

// isUnused reports whether no claim will use the volume. The provisioner records such a volume for
// its claim all the same, and then reclaims the volume by its policy.
func (l liveObjects) isUnused() bool {
	return l.claim == storage.ClaimGone || l.claim == storage.ClaimElsewhere || l.deleting
}

// mayDelete reports whether the volume of the entry may be deleted after a finish. The driver returns
// the existing disk, also if a user removed its PersistentVolume to keep the disk.
func mayDelete(live liveObjects, entry *journal.Entry) bool {
	return live.isUnused() && (policyOf(entry) != v1.PersistentVolumeReclaimRetain || entry.Announced)
}

// policyOf returns the reclaim policy of the entry's volume, "" if the entry has none.
func policyOf(entry *journal.Entry) v1.PersistentVolumeReclaimPolicy {
	if entry.Volume == nil {
		return ""
	}
	return entry.Volume.Spec.PersistentVolumeReclaimPolicy
}
