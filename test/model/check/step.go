package check

import (
	"fmt"

	v1 "k8s.io/api/core/v1"
)

// Broken returns the rules that one step broke: before and after are the cluster before and
// after the step.
func Broken(before, after *Snapshot, step Step) []Violation {
	found := inWorld(before, after, before, step)
	if len(found) == 0 || step.Since == nil || step.Since == before {
		return found
	}
	return common(found, inWorld(before, after, step.Since, step))
}

// inWorld returns the rules that the step broke if it rests on what world shows.
func inWorld(before, after, world *Snapshot, step Step) []Violation {
	r := report{before: before, after: after, world: world, step: step}
	switch step.Kind {
	case Write:
		r.write()
	case CreateVolume:
		r.createVolume()
	case DeleteVolume:
		r.deleteVolume()
	case Crash:
	}
	if step.Actor.isProgram() {
		r.forgotten()
	}
	return r.found
}

// common returns the violations of the first list whose rule and object the second list has.
func common(found, others []Violation) []Violation {
	var both []Violation
	for _, violation := range found {
		for _, other := range others {
			if violation.Rule == other.Rule && violation.Object == other.Object {
				both = append(both, violation)
				break
			}
		}
	}
	return both
}

// report collects the violations of one step.
type report struct {
	before, after *Snapshot
	// world is the cluster that the step rests on: before, or an earlier one.
	world *Snapshot
	step  Step
	found []Violation
}

func (r *report) add(rule Rule, object, format string, arguments ...any) {
	r.found = append(r.found, Violation{Rule: rule, Object: object,
		Sentence: object + " " + fmt.Sprintf(format, arguments...)})
}

// write checks a write of an API object.
func (r *report) write() {
	if r.step.Actor.isOurs() && r.step.Unchanged {
		r.add(NoopWrite, "a write of "+string(r.step.Actor), "changed nothing")
	}
	if !r.step.Actor.isProgram() {
		return
	}
	changed(r.before.Volumes, r.after.Volumes, func(old, now *v1.PersistentVolume) {
		if old == nil {
			r.createdVolume(now)
			return
		}
		r.changedVolume(old, now)
	})
	gone(r.before.Volumes, r.after.Volumes, r.goneVolume)
	changed(r.before.Claims, r.after.Claims, func(old, now *v1.PersistentVolumeClaim) {
		if old != nil {
			r.changedClaim(old, now)
		}
	})
	gone(r.before.Claims, r.after.Claims, r.goneClaim)
	r.removedEntries()
}

func nameOfVolume(volume *v1.PersistentVolume) string { return "PersistentVolume " + volume.Name }

func nameOfClaim(claim *v1.PersistentVolumeClaim) string {
	return "PersistentVolumeClaim " + claim.Namespace + "/" + claim.Name
}
