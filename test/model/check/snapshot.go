package check

import (
	"slices"
	"strings"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/exeunt-io/exeunt/pkg/journal"
	"github.com/exeunt-io/exeunt/pkg/storage"
)

// HandleOf returns the handle of the volume's disk, "" for an unknown one.
func HandleOf(volume *v1.PersistentVolume) string {
	switch {
	case volume.Spec.CSI != nil:
		return volume.Spec.CSI.VolumeHandle
	case volume.Spec.HostPath != nil:
		return volume.Spec.HostPath.Path
	}
	return ""
}

// refOf returns the UID of the claim that the volume refers to, "" for none.
func refOf(volume *v1.PersistentVolume) types.UID {
	if ref := volume.Spec.ClaimRef; ref != nil {
		return ref.UID
	}
	return ""
}

// claim returns the claim with the UID, nil for none.
func (s *Snapshot) claim(uid types.UID) *v1.PersistentVolumeClaim {
	for _, claim := range s.Claims {
		if claim.UID == uid {
			return claim
		}
	}
	return nil
}

// relation returns the relation of the volume to its claim, and the claim, nil for none.
func (s *Snapshot) relation(volume *v1.PersistentVolume) (storage.ClaimRelation, *v1.PersistentVolumeClaim) {
	claim := s.claim(refOf(volume))
	return storage.ClaimOf(volume, claim), claim
}

// isBound reports whether the claim is Bound to the volume that refers to it.
func (s *Snapshot) isBound(volume *v1.PersistentVolume) bool {
	relation, claim := s.relation(volume)
	return relation == storage.ClaimBound && claim.Status.Phase == v1.ClaimBound
}

// isCompleted reports whether the claim that the volume refers to is bound to it, even if its status
// does not say so yet.
func (s *Snapshot) isCompleted(volume *v1.PersistentVolume) bool {
	relation, claim := s.relation(volume)
	return relation == storage.ClaimBound && claim.Annotations[storage.AnnBindCompleted] != ""
}

// disk returns the disk with the handle, nil for none.
func (s *Snapshot) disk(handle string) *Disk {
	for i := range s.Disks {
		if s.Disks[i].Handle == handle {
			return &s.Disks[i]
		}
	}
	return nil
}

// named returns the number of disks with the name.
func (s *Snapshot) named(name string) int {
	count := 0
	for i := range s.Disks {
		if s.Disks[i].Name == name {
			count++
		}
	}
	return count
}

// entryOf returns the entry of the claim with the UID, nil for none.
func (s *Snapshot) entryOf(uid types.UID) *journal.Entry {
	for i := range s.Entries {
		if s.Entries[i].UID == uid {
			return &s.Entries[i]
		}
	}
	return nil
}

// entryNaming returns an entry that names the disk, nil for none.
func (s *Snapshot) entryNaming(disk Disk) *journal.Entry {
	for i := range s.Entries {
		entry := &s.Entries[i]
		if entry.Handle != "" && entry.Handle == disk.Handle || disk.Name != "" && entry.VolumeName() == disk.Name {
			return entry
		}
	}
	return nil
}

// claimFor returns the claim that a volume was requested for, nil for none: the name of
// the volume ends in the UID of the claim, or its entry, nil for none, has the UID.
func (s *Snapshot) claimFor(name string, entry *journal.Entry) *v1.PersistentVolumeClaim {
	if entry != nil {
		return s.claim(entry.UID)
	}
	for _, claim := range s.Claims {
		if claim.UID != "" && strings.HasSuffix(name, string(claim.UID)) {
			return claim
		}
	}
	return nil
}

// volumeWith returns a volume with the handle, nil for none.
func (s *Snapshot) volumeWith(handle string) *v1.PersistentVolume {
	for _, volume := range s.Volumes {
		if HandleOf(volume) == handle {
			return volume
		}
	}
	return nil
}

// isShared reports whether several volumes have the handle.
func (s *Snapshot) isShared(handle string) bool {
	count := 0
	for _, volume := range s.Volumes {
		if handle != "" && HandleOf(volume) == handle {
			count++
		}
	}
	return count > 1
}

// mayCreate reports whether a CreateVolume call may still create a disk of the name.
func (s *Snapshot) mayCreate(name string, awaited bool) bool {
	for i := range s.Calls {
		if call := &s.Calls[i]; call.Kind == CreateVolume && call.Name == name && (call.Awaited || !awaited) {
			return true
		}
	}
	return false
}

// isKnown reports whether somebody knows of the disk.
func (s *Snapshot) isKnown(disk Disk) bool {
	return s.volumeWith(disk.Handle) != nil || s.entryNaming(disk) != nil || s.mayCreate(disk.Name, true) ||
		s.isUsers(disk.Handle)
}

// isUsers reports whether the disk is a user's own concern.
func (s *Snapshot) isUsers(handle string) bool {
	return slices.Contains(s.Kept, handle) || slices.Contains(s.GivenUp, handle)
}

// leads reports whether the name leads to a disk that is no user's own concern.
func (s *Snapshot) leads(name string) bool {
	return slices.ContainsFunc(s.Disks, func(disk Disk) bool { return disk.Name == name && !s.isUsers(disk.Handle) })
}

// keeps reports whether a disk of the name is a user's own concern: its volume was deleted before
// its claim was bound, and a claim that still waits gets the disk again.
func (s *Snapshot) keeps(name string) bool {
	return slices.ContainsFunc(s.Disks, func(disk Disk) bool { return disk.Name == name && s.isUsers(disk.Handle) })
}

// Kept returns the disks that a user keeps since the step: they exist, and their
// PersistentVolume is gone, whose policy was not Delete.
func Kept(before, after *Snapshot) []string {
	var kept []string
	gone(before.Volumes, after.Volumes, func(volume *v1.PersistentVolume) {
		handle := HandleOf(volume)
		if !isDelete(volume) && after.disk(handle) != nil && after.volumeWith(handle) == nil {
			kept = append(kept, handle)
		}
	})
	return kept
}

func isDelete(volume *v1.PersistentVolume) bool {
	return volume.Spec.PersistentVolumeReclaimPolicy == v1.PersistentVolumeReclaimDelete
}
