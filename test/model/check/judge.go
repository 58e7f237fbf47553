package check

import (
	"slices"
	"time"
)

// isByPrograms reports whether certainly a known program wrote the version.
func (h *History) isByPrograms(v *version) bool {
	writers := h.index.writers(v)
	return len(writers) > 0 && !slices.ContainsFunc(writers, func(r Request) bool { return !r.Actor.isProgram() })
}

// judgeWrite returns the rules that the write of the version broke, whoever wrote it and
// whenever its writer read the objects.
func (h *History) judgeWrite(g *group, moments []moment, i int) []Violation {
	v, before, after := &g.versions[i], moments[i].Snapshot, moments[i+1].Snapshot
	if !h.isJudged(g, i) {
		return nil
	}
	if h.Admission {
		after = withoutAdmission(before, after)
	}
	deleted := g.deletedUntil(v.before)
	verdict := certain{}
	for _, writer := range h.index.writers(v) {
		start := h.readAfter(writer.Began)
		step := Step{Actor: writer.Actor, Kind: Write, Honor: h.Honor, Journaled: h.Journaled}
		for q := i; q >= 0 && !moments[q].until.Before(start); q-- {
			for _, open := range [][]Call{g.openCalls(v.after, v.before, true), g.openCalls(v.after, v.before, false)} {
				disks := g.disksDuring(v.after, v.before)
				from := before.storing(disks, open)
				from.Deleted = deleted
				verdict.add(inWorld(from, after.storing(disks, open), moments[q].storing(disks, open), step))
			}
			if verdict.isEmpty() {
				return nil
			}
		}
	}
	return verdict.at(v.observed)
}

// isJudged reports whether certainly a program wrote the version, and the version before it is known.
func (h *History) isJudged(g *group, i int) bool {
	v := &g.versions[i]
	restored := i > 0 && g.versions[i-1].epoch != v.epoch
	return !restored && !g.isFirstSeen(i) && h.isByPrograms(v) && !h.isUnobserved(v.observed, v.observed)
}

// isFirstSeen reports whether versions of the object may be missing before this one.
func (g *group) isFirstSeen(i int) bool {
	for j := i - 1; j >= 0; j-- {
		if g.versions[j].key == g.versions[i].key {
			return g.versions[j].sight != g.versions[i].sight
		}
	}
	return g.versions[i].sight > 0
}

// judgeCall returns the rules that the call broke, whenever it took effect and whenever its
// caller read the objects.
func (h *History) judgeCall(g *group, moments []moment, i int) []Violation {
	call := &g.calls[i]
	if !call.Actor.isProgram() || call.Handle == "" || g.isRepeated(i) || h.isUnobserved(call.Began, call.Ended) {
		return nil
	}
	start, verdict := h.readAfter(call.Began), certain{}
	step := Step{Actor: call.Actor, Kind: call.Kind, Handle: call.Handle, Name: call.Name, Honor: h.Honor,
		Journaled: h.Journaled}
	for q := range moments {
		if moments[q].until.Before(start) || moments[q].from.After(call.Ended) {
			continue
		}
		open := []Call{{Kind: call.Kind, Handle: call.Handle, Name: call.Name, Awaited: true}}
		this, others := Disk{Handle: call.Handle, Name: g.nameOf(call.Handle)}, g.disksDuring(call.Began, call.Ended)
		others = slices.DeleteFunc(others, func(d Disk) bool { return d.Handle == call.Handle })
		without, with := moments[q].storing(others, open), moments[q].storing(append(slices.Clip(others), this), open)
		if call.Kind == DeleteVolume {
			without, with = with, without
		}
		verdict.add(inWorld(without, with, without, step))
		if verdict.isEmpty() {
			return nil
		}
	}
	return verdict.at(call.Ended)
}

// isRepeated reports whether an earlier call may have had the effect of the call.
func (g *group) isRepeated(i int) bool {
	if g.calls[i].Kind == CreateVolume {
		return g.isCreatedBefore(i)
	}
	return g.isDeletedBefore(i)
}

// isCreatedBefore reports whether the disk existed before the call.
func (g *group) isCreatedBefore(i int) bool {
	return slices.ContainsFunc(g.calls, func(other Record) bool {
		return other.Handle == g.calls[i].Handle && other.Ended.Before(g.calls[i].Ended)
	})
}

// isDeletedBefore reports whether the disk may be gone before the call.
func (g *group) isDeletedBefore(i int) bool {
	return slices.ContainsFunc(g.calls, func(other Record) bool {
		return other.Kind == DeleteVolume && other.OK && other.Handle == g.calls[i].Handle &&
			other.Ended.Before(g.calls[i].Ended)
	})
}

// deletedUntil returns the handles for which a successful DeleteVolume began until the time.
func (g *group) deletedUntil(end time.Time) []string {
	var handles []string
	for i := range g.calls {
		if call := &g.calls[i]; call.Kind == DeleteVolume && call.OK && !call.Began.After(end) {
			handles = append(handles, call.Handle)
		}
	}
	return handles
}

// nameOf returns the name that the disk was requested with, "" if it is unknown.
func (g *group) nameOf(handle string) string {
	for i := range g.calls {
		if call := &g.calls[i]; call.Kind == CreateVolume && call.Handle == handle {
			return call.Name
		}
	}
	return ""
}

// disksDuring returns the disks that certainly exist from the one time to the other.
func (g *group) disksDuring(from, to time.Time) []Disk {
	var disks []Disk
	for i := range g.calls {
		created := &g.calls[i]
		if created.Kind != CreateVolume || created.Handle == "" || created.Ended.After(from) || g.isCreatedBefore(i) {
			continue
		}
		mayBeGone := slices.ContainsFunc(g.calls, func(other Record) bool {
			return other.Kind == DeleteVolume && other.Handle == created.Handle && !other.Began.After(to)
		})
		if !mayBeGone {
			disks = append(disks, Disk{Handle: created.Handle, Name: created.Name})
		}
	}
	return disks
}

// openCalls returns the CreateVolume calls that are open in all that time, or with maybe at
// some moment of it.
func (g *group) openCalls(from, to time.Time, maybe bool) []Call {
	var calls []Call
	for i := range g.calls {
		call := &g.calls[i]
		throughout := !call.Began.After(from) && !call.Ended.Before(to)
		overlaps := !call.Began.After(to) && !call.Ended.Before(from)
		if call.Kind == CreateVolume && (throughout || maybe && overlaps) {
			calls = append(calls, Call{Kind: CreateVolume, Name: call.Name, Awaited: true})
		}
	}
	return calls
}

// storing returns the cluster with the disks and open calls.
func (s *Snapshot) storing(disks []Disk, calls []Call) *Snapshot {
	next := *s
	next.Disks, next.Calls = disks, calls
	return &next
}

// certain are the violations that all lists have that were added.
type certain struct {
	found []Violation
	began bool
}

func (c *certain) add(found []Violation) {
	if !c.began {
		c.found, c.began = found, true
		return
	}
	c.found = common(c.found, found)
}

// isEmpty reports whether no violation is left.
func (c *certain) isEmpty() bool { return c.began && len(c.found) == 0 }

// at returns the violations with the time of the record in their sentences.
func (c *certain) at(when time.Time) []Violation {
	for i := range c.found {
		c.found[i].Sentence += " (recorded at " + when.UTC().Format("15:04:05.000") + ")"
	}
	return c.found
}
