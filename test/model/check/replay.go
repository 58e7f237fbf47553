package check

import (
	"slices"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Violations returns the rules that the recorded steps broke in every order that fits the
// record.
func (h *History) Violations() []Violation {
	var found []Violation
	for _, g := range h.groups() {
		moments := h.moments(g)
		for i := range g.versions {
			found = append(found, h.judgeWrite(g, moments, i)...)
		}
		for i := range g.calls {
			found = append(found, h.judgeCall(g, moments, i)...)
		}
	}
	return found
}

// AtRest returns what must not remain, for the last observed versions. disks are the
// volumes that the storage system has.
func (h *History) AtRest(disks []Disk, w Wanted) []Violation {
	s := &Snapshot{Disks: disks, GivenUp: h.givenUp}
	var kept []string
	for _, g := range h.groups() {
		if last := len(g.versions) - 1; last < 0 || g.versions[last].epoch != h.epoch {
			continue
		}
		moments := h.moments(g)
		end := moments[len(moments)-1]
		s.Volumes, s.Claims, s.Pods = append(s.Volumes, end.Volumes...), append(s.Claims, end.Claims...),
			append(s.Pods, end.Pods...)
		s.Entries, kept = append(s.Entries, end.Entries...), append(kept, end.Kept...)
	}
	for _, handle := range kept {
		if s.disk(handle) != nil && s.volumeWith(handle) == nil {
			s.Kept = append(s.Kept, handle)
		}
	}
	return AtRest(s, w)
}

// moment is a group between two writes.
type moment struct {
	*Snapshot
	// from is the earliest start, until the latest end of the moment.
	from, until time.Time
}

// moments returns what existed before the first version, and after each version.
func (h *History) moments(g *group) []moment {
	moments := []moment{{Snapshot: &Snapshot{GivenUp: h.givenUp}, until: forever}}
	for i := range g.versions {
		version, last := &g.versions[i], &moments[len(moments)-1]
		previous := last.Snapshot
		if i > 0 && g.versions[i-1].epoch != version.epoch {
			previous = &Snapshot{Kept: previous.Kept, GivenUp: previous.GivenUp}
		}
		last.until = version.before
		next := version.applyTo(previous)
		next.Kept = append(slices.Clip(next.Kept), leftTo(previous, next)...)
		if !h.isByPrograms(version) {
			next.GivenUp = append(slices.Clip(next.GivenUp), abandoned(previous, next)...)
		}
		moments = append(moments, moment{Snapshot: next, from: version.after, until: forever})
	}
	return moments
}

// leftTo returns the handles of volumes that are gone and whose policy was not Delete.
func leftTo(before, after *Snapshot) []string {
	var handles []string
	gone(before.Volumes, after.Volumes, func(volume *v1.PersistentVolume) {
		if handle := HandleOf(volume); !isDelete(volume) && after.volumeWith(handle) == nil {
			handles = append(handles, handle)
		}
	})
	return handles
}

// abandoned returns the handles of volumes whose record a user may have made worthless: the
// volume is gone, or has lost a finalizer of ours, or its claim.
func abandoned(before, after *Snapshot) []string {
	var handles []string
	gone(before.Volumes, after.Volumes, func(volume *v1.PersistentVolume) { handles = append(handles, HandleOf(volume)) })
	changed(before.Volumes, after.Volumes, func(old, now *v1.PersistentVolume) {
		if old != nil && (isReclaimed(old) && !isReclaimed(now) || refOf(old) != refOf(now)) {
			handles = append(handles, HandleOf(now))
		}
	})
	changed(before.Claims, after.Claims, func(old, now *v1.PersistentVolumeClaim) {
		if old == nil || old.Spec.VolumeName == "" || old.Spec.VolumeName == now.Spec.VolumeName {
			return
		}
		for _, volume := range after.Volumes {
			if refOf(volume) == now.UID {
				handles = append(handles, HandleOf(volume))
			}
		}
	})
	return handles
}

// applyTo returns the cluster after the version was written. Entries are applied by Lease:
// an entry that moves between Leases is in both for a moment.
func (v *version) applyTo(s *Snapshot) *Snapshot {
	next := *s
	switch object := v.object.(type) {
	case *v1.PersistentVolume:
		next.Volumes = replaced(s.Volumes, object, v.gone)
	case *v1.PersistentVolumeClaim:
		next.Claims = replaced(s.Claims, object, v.gone)
	case *v1.Pod:
		next.Pods = replaced(s.Pods, object, v.gone)
	default:
		next.Entries = slices.Clone(s.Entries)
		next.places = slices.Clone(s.places)
		place := slices.Index(s.places, v.key)
		switch {
		case place < 0 && !v.gone:
			next.Entries, next.places = append(next.Entries, v.entry), append(next.places, v.key)
		case place >= 0 && v.gone:
			next.Entries, next.places = slices.Delete(next.Entries, place, place+1), slices.Delete(next.places, place, place+1)
		case place >= 0:
			next.Entries[place] = v.entry
		}
	}
	return &next
}

// replaced returns the list with the object in the place of an object of its name, or
// without it.
func replaced[P interface {
	*T
	metav1.Object
}, T any](list []P, object P, gone bool) []P {
	place := slices.IndexFunc(list, func(other P) bool { return keyOf(other) == keyOf(object) })
	list = slices.Clone(list)
	switch {
	case place < 0 && gone:
		return list
	case place < 0:
		return append(list, object)
	case gone:
		return slices.Delete(list, place, place+1)
	}
	list[place] = object
	return list
}
