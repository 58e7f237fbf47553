package model

import (
	"slices"
	"strings"

	v1 "k8s.io/api/core/v1"

	"github.com/exeunt-io/exeunt/pkg/finalizer"
	"github.com/exeunt-io/exeunt/pkg/journal"
	"github.com/exeunt-io/exeunt/pkg/storage"
	"github.com/exeunt-io/exeunt/test/model/check"
	"github.com/exeunt-io/exeunt/test/model/process"
	"github.com/exeunt-io/exeunt/test/model/server"
)

// call lets the storage system create or delete a volume. It reports whether anything changed.
func (w *world) call(s *State, call process.Call) (*State, string, bool) {
	after := s.clone()
	if call.Create != "" {
		for _, id := range s.disks {
			if w.disks[id].name == call.Create {
				return s, w.disks[id].handle, false
			}
		}
		d := disk{name: call.Create, handle: w.newHandle(s, call.Create)}
		after.disks = union(s.disks, w.internDisk(d))
		return after, d.handle, true
	}
	for _, id := range s.disks {
		if w.disks[id].handle == call.Delete {
			after.disks = slices.DeleteFunc(slices.Clone(s.disks), func(other diskID) bool { return other == id })
			after.deleted = union(s.deleted, id)
			return after, "", true
		}
	}
	return s, "", false
}

// newHandle returns the handle of a new disk. Where a late call may delete a disk by its handle, a handle is
// not used again.
func (w *world) newHandle(s *State, name string) string {
	handle := diskPrefix + name
	if !w.config.FormerLeaders {
		return handle
	}
	for slices.ContainsFunc(s.deleted, func(id diskID) bool { return w.disks[id].handle == handle }) {
		handle += "-again"
	}
	return handle
}

// diskWith returns the disk with the handle.
func (w *world) diskWith(s *State, handle string) diskID {
	for _, id := range s.disks {
		if w.disks[id].handle == handle {
			return id
		}
	}
	return 0
}

// volumeGone records disks that users keep, now that their volume is gone: its policy was not
// Delete, or it was never Bound, and static or without a claim. A disk that its claim has never used
// is given up instead: the claim gets it again, if it still waits.
func (w *world) volumeGone(before, after *State, volume objectID) {
	now := w.snapshot(after)
	last := cached(
		&w.facts.volumes, volume, func() *v1.PersistentVolume { return decodeAs[v1.PersistentVolume](w.Lab, volume) },
	)
	unused := !storage.PhaseOf(last.Status.Phase).Released() && last.Status.Phase != v1.VolumeBound
	unclaimed := last.Spec.ClaimRef == nil || last.Spec.ClaimRef.UID == ""
	waits := !unclaimed && slices.ContainsFunc(now.Claims, func(claim *v1.PersistentVolumeClaim) bool {
		return claim.UID == last.Spec.ClaimRef.UID && storage.NeverBound(claim)
	})
	for _, handle := range check.Kept(w.snapshot(before), now) {
		if id := w.diskWith(before, handle); waits {
			after.givenUp = union(after.givenUp, id)
		} else {
			after.kept = union(after.kept, id)
		}
	}
	if unused && (unclaimed || !storage.IsDynamic(last)) {
		after.givenUp = union(after.givenUp, w.diskWith(before, check.HandleOf(last)))
	}
}

// giveUpDeleted gives up the disks of volumes that are deleted while a switched gate is off, or
// before the provisioner has added its finalizer again: they leak, as they did before KEP-2644.
// What users do makes after of before.
func (w *world) giveUpDeleted(before, after *State) {
	if int(after.switches) == w.config.Switches {
		return
	}
	off := false
	for i := range after.instances {
		off = off || after.instances[i].switched && !w.honors(after, i)
	}
	left := w.snapshot(after).Volumes
	for _, volume := range w.snapshot(before).Volumes {
		exists := slices.ContainsFunc(
			left, func(v *v1.PersistentVolume) bool { return v.UID == volume.UID && v.DeletionTimestamp == nil },
		)
		if exists || volume.Spec.CSI == nil || !off && finalizer.Has(volume.Finalizers, finalizer.External) {
			continue
		}
		if id := w.diskWith(after, volume.Spec.CSI.VolumeHandle); id != 0 {
			after.givenUp = union(after.givenUp, id)
		}
	}
}

// givenUp returns the disks that are given up once a user has changed a volume by the request,
// besides those that were given up before. The disk may have been deleted a moment ago.
func (w *world) givenUp(s *State, before []diskID, request server.Request) []diskID {
	name := strings.TrimPrefix(request.Path, volumesPath+"/")
	for _, volume := range w.snapshot(s).Volumes {
		if volume.Name == name && volume.Spec.CSI != nil {
			for _, id := range slices.Concat(s.disks, s.deleted) {
				if w.disks[id].handle == volume.Spec.CSI.VolumeHandle {
					before = union(before, id)
				}
			}
		}
	}
	return before
}

// givingUp returns the state in which the disk with the handle is given up.
func (w *world) givingUp(s *State, handle string) *State {
	return w.givingUpDisk(s, w.disks[w.diskWith(s, handle)])
}

func (w *world) givingUpDisk(s *State, d disk) *State {
	after := s.clone()
	after.givenUp = union(s.givenUp, w.internDisk(d))
	return after
}

// givingUpAll returns the state in which the disks of the name are given up: the claim is bound to one that
// was deleted, and another one may exist or be created at this moment.
func (w *world) givingUpAll(s *State, name string) *State {
	after := w.givingUpDisk(s, disk{name: name, handle: w.newHandle(s, name)})
	for _, id := range slices.Concat(s.disks, s.deleted) {
		if w.disks[id].name == name {
			after.givenUp = union(after.givenUp, id)
		}
	}
	return after
}

// isDeleted reports whether a disk of the name was created and deleted.
func (w *world) isDeleted(s *State, name string) bool {
	return slices.ContainsFunc(s.deleted, func(id diskID) bool { return w.disks[id].name == name })
}

// hasEntry reports whether a journal entry names the volume.
func (w *world) hasEntry(s *State, name string) bool {
	return slices.ContainsFunc(w.snapshot(s).Entries, func(e journal.Entry) bool { return e.VolumeName() == name })
}
