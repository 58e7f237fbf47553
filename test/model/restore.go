package model

import (
	"slices"

	v1 "k8s.io/api/core/v1"

	"github.com/exeunt-io/exeunt/test/model/check"
	"github.com/exeunt-io/exeunt/test/model/process"
	"github.com/exeunt-io/exeunt/test/model/server"
)

// backedUp returns the state with a backup of the present objects, if etcd may be restored.
func (w *world) backedUp(s *State) *State {
	if s.restores == 0 {
		return s
	}
	after := s.clone()
	after.backup = slices.Clone(s.objects)
	return after
}

// restores returns the backups that may be taken, and the restores of etcd from the last one: objects come back in
// their old versions, or in higher ones. What is written then has a version beyond those that were lost, and what is
// created another UID.
func (w *world) restores(s *State) []Step {
	if s.restores == 0 || w.isUnledBusy(s) {
		return nil
	}
	all := []Step{{After: w.restored(s, false), Says: "etcd is restored from a backup"}}
	if !w.config.OldVersions {
		all = append(all, Step{After: w.restored(s, true), Says: "etcd is restored from a backup, with higher versions"})
	}
	if s.backups > 0 {
		after := w.backedUp(s)
		after.backups--
		all = append(all, Step{After: after, Says: "a backup of etcd is taken"})
	}
	return all
}

// isUnledBusy reports whether a pass without leader election has not ended: while the API servers are down, its next
// request fails.
func (w *world) isUnledBusy(s *State) bool {
	for i, program := range w.config.Programs {
		if slices.Contains(w.config.Unled, program.Name) && s.isBusy(w, i) {
			return true
		}
	}
	return false
}

// restored returns the state after a restore of etcd. The leader Leases are those of the backup, so that each
// leader ends before its next write (decision 24). No watch survives: the caches of the others follow a list.
func (w *world) restored(s *State, raised bool) *State {
	after := s.clone()
	for slot, now := range s.objects {
		if old := at(s.backup, slot); old != now {
			after.objects[slot] = w.intern(restoredObject(w.slots[slot], w.objects[old], w.objects[now], raised))
		}
	}
	after.older, after.stalled, after.delayed = make([][]objectID, len(s.older)), stalledWatch{}, delayedWrite{}
	for i, program := range w.config.Programs {
		if slices.Contains(w.config.Unled, program.Name) {
			continue
		}
		after = w.stopped(after, i)
		after.instances[i].former, after.instances[i].past = process.Off, basis{}
		if int(after.current) == i+1 {
			after.current = 0
		}
	}
	if after.restores--; after.restores == 0 {
		after.backup, after.backups = nil, 0
	}
	w.judgeDisks(after)
	return after
}

// restoredObject returns the object as a restore brings it back; old is its version in the backup, of no name for none.
func restoredObject(key server.Key, old, now server.Object, raised bool) server.Object {
	restored := old
	restored.Key = key
	restored.LostVersion, restored.LostCount = max(now.Version, now.LostVersion), max(now.Count, now.LostCount)
	if raised {
		restored.Version = restored.LostVersion + 1
		restored.LostVersion = restored.Version
	}
	return restored
}

// isRestored reports whether the version was not written since a restore brought it back.
func (l *Lab) isRestored(id objectID) bool { return l.objects[id].LostVersion > 0 }

// judgeDisks notes what a restore made of the disks, which no backup has. Those that neither a volume nor an entry
// names any more are given up, and so are those that restored volumes name and
// that are gone. A disk that a user kept is the concern of an entry again that names it.
func (w *world) judgeDisks(s *State) {
	now := w.snapshot(s)
	s.filled = slices.Clone(s.disks)
	s.kept = slices.DeleteFunc(slices.Clone(s.kept), func(id diskID) bool { return isRecorded(now, w.disks[id]) })
	for _, id := range s.disks {
		if !isRecorded(now, w.disks[id]) {
			s.givenUp = union(s.givenUp, id)
		}
	}
	for _, volume := range now.Volumes {
		handle := check.HandleOf(volume)
		if handle != "" && w.diskWith(s, handle) == 0 {
			s.givenUp = union(s.givenUp, w.internDisk(disk{handle: handle, name: volume.Name}))
		}
	}
}

// isRecorded reports whether a volume or an entry names the disk.
func isRecorded(s *check.Snapshot, d disk) bool {
	for i := range s.Entries {
		if s.Entries[i].VolumeName() == d.name || s.Entries[i].Handle == d.handle {
			return true
		}
	}
	return slices.ContainsFunc(
		s.Volumes, func(volume *v1.PersistentVolume) bool { return check.HandleOf(volume) == d.handle },
	)
}
