package model

import (
	"cmp"
	"slices"

	"github.com/exeunt-io/exeunt/test/model/check"
	"github.com/exeunt-io/exeunt/test/model/process"
)

// finding is a broken rule.
type finding struct{ rule, object, sentence string }

func findings(broken []check.Violation) []finding {
	found := make([]finding, 0, len(broken))
	for _, v := range broken {
		found = append(found, finding{v.Rule.String(), v.Object, v.Sentence})
	}
	return found
}

// checkStep checks a step, and reports whether an excuse ends the exploration there.
func (e *explorer) checkStep(id int32, before *State, step Step) (ends bool) {
	for _, f := range e.broken(before, step) {
		if excuse, found := e.excuse(e.config.Programs[step.Program].Actor, f, e.excused); found {
			ends = ends || !excuse.Harmless
			continue
		}
		e.violate(id, f.rule, f.object, f.sentence, step.Says)
	}
	return ends
}

// broken returns what is wrong with a step.
func (w *world) broken(before *State, step Step) []finding {
	var found []finding
	if step.Stuck != "" {
		found = append(found, finding{"Stuck", "", step.Stuck})
	}
	if step.Effect == nil {
		return found
	}
	for _, f := range w.brokenBy(before, step) {
		if !isAccepted(f.rule, step) {
			found = append(found, f)
		}
	}
	return found
}

// brokenBy returns the rules that the effect of a step broke, at whatever moment that it rests on.
func (w *world) brokenBy(before *State, step Step) []finding {
	effect := *step.Effect
	effect.Faultless, effect.Unchanged = w.isFaultless(step.After), effect.Unchanged && !w.raced(before, step)
	was, is := w.snapshot(before), w.snapshot(cmp.Or(step.Plain, step.After))
	wrong := findings(check.Broken(was, is, effect))
	for _, objects := range w.restsOn(before, step, effect.Kind) {
		then := *before
		then.objects = objects
		effect.Since = w.snapshot(&then)
		earlier := findings(check.Broken(was, is, effect))
		wrong = slices.DeleteFunc(wrong, func(f finding) bool {
			return !slices.ContainsFunc(earlier, func(other finding) bool { return other.rule == f.rule && other.object == f.object })
		})
	}
	return wrong
}

// restsOn returns the objects that a step rests on: those of the live reads of the pass, and those at the
// moment when a call was sent, which takes effect later. No program reads attachments live.
func (w *world) restsOn(s *State, step Step, kind check.Kind) [][]objectID {
	_, here := s.instances[step.Program].process(step.Former)
	all := [][]objectID{here.read, here.sent}
	switch {
	case kind == check.Write:
		all = all[:1]
	case len(here.read) == 0 && len(here.sent) == 0:
		all[0] = s.objects
	}
	all = slices.DeleteFunc(all, func(objects []objectID) bool { return len(objects) == 0 })
	for i := range all {
		if kind != check.Write {
			all[i] = w.withAttachments(all[i], s.instances[step.Program].seen)
		}
	}
	return all
}

// withAttachments returns the objects with the attachments that a cache shows.
func (w *world) withAttachments(objects, seen []objectID) []objectID {
	objects = slices.Clone(objects)
	for slot := range objects {
		if w.slots[slot].Resource == "volumeattachments" {
			objects[slot] = at(seen, slot)
		}
	}
	return objects
}

// isAccepted reports whether the rule may be broken: a former leader may write late ("Known and accepted"
// in docs/architecture/provisioning.md).
func isAccepted(rule string, step Step) bool {
	return rule == check.KeptRecorded.String() && step.Former
}

// raced reports whether anything changed since the last live read of the pass.
func (w *world) raced(s *State, step Step) bool {
	_, here := s.instances[step.Program].process(step.Former)
	return len(here.read) > 0 && !slices.Equal(here.read, s.objects) || w.config.Interruptions != int(s.interruptions) || s.stalled.program != 0
}

// isFaultless reports whether nothing has failed until the state.
func (w *world) isFaultless(s *State) bool {
	return !w.config.Restarted && int(s.crashes) == w.config.Crashes && int(s.losses) == w.config.Losses && int(s.errors) == w.config.Errors &&
		int(s.denials) == w.config.Denials && int(s.undos) == w.config.Undos && int(s.wrongAnswers) == w.config.WrongAnswers && int(s.switches) == w.config.Switches && int(s.delays) == w.config.Delays && int(s.restores) == w.config.Restores
}

// checkRest finds the sets of states that free steps cannot leave: there, every state must be
// as it should be, for each of them is where the world can come to rest.
func (e *explorer) checkRest() {
	for _, set := range e.restSets() {
		e.result.Ended++
		for _, id := range set {
			e.checkResting(id)
		}
	}
}

// checkResting checks a state in which the world comes to rest.
func (e *explorer) checkResting(id int32) {
	for _, f := range e.unexcused(e.resting(parse(e.nodes[id].key, len(e.config.Programs))), e.excused) {
		e.violate(id, f.rule, f.object, f.sentence)
	}
}

// resting returns what is wrong with a state in which the world comes to rest.
func (w *world) resting(s *State) []finding {
	wanted := check.Wanted{Driver: process.DriverName, Unresolved: w.config.Upstream || w.config.Switches > 0 || w.config.Restores > 0, Classes: w.config.Classes, Exempt: w.config.Exempt}
	for i, program := range w.config.Programs {
		if program.Actor == check.Provisioner || program.Actor == check.UpstreamProvisioner {
			wanted.Honor = w.honors(s, i)
		}
	}
	return findings(check.AtRest(w.snapshot(s), wanted))
}

// restSets returns the strongly connected sets of states that no free step leaves (Tarjan).
func (e *explorer) restSets() [][]int32 {
	t := &tarjan{explorer: e, index: make([]int32, len(e.nodes)), low: make([]int32, len(e.nodes)), onStack: make([]bool, len(e.nodes))}
	for id := range e.nodes {
		if t.index[id] == 0 {
			t.visit(int32(id))
		}
	}
	return t.sets
}

// tarjan finds strongly connected components without recursion.
type tarjan struct {
	*explorer
	index, low []int32
	onStack    []bool
	stack      []int32
	count      int32
	sets       [][]int32
}

// frame is a node whose edges are being followed.
type frame struct {
	id   int32
	edge int
}

func (t *tarjan) open(id int32) frame {
	t.count++
	t.index[id], t.low[id] = t.count, t.count
	t.stack, t.onStack[id] = append(t.stack, id), true
	return frame{id: id}
}

func (t *tarjan) visit(root int32) {
	frames := []frame{t.open(root)}
	for len(frames) > 0 {
		f := &frames[len(frames)-1]
		if f.edge == len(t.nodes[f.id].edges) {
			frames = frames[:len(frames)-1]
			if len(frames) > 0 {
				above := frames[len(frames)-1].id
				t.low[above] = min(t.low[above], t.low[f.id])
			}
			t.close(f.id)
			continue
		}
		next := t.nodes[f.id].edges[f.edge]
		f.edge++
		switch {
		case !next.free:
		case t.index[next.to] == 0:
			frames = append(frames, t.open(next.to))
		case t.onStack[next.to]:
			t.low[f.id] = min(t.low[f.id], t.index[next.to])
		}
	}
}

// close ends a component, and keeps it if nothing leaves it.
func (t *tarjan) close(id int32) {
	if t.low[id] != t.index[id] {
		return
	}
	var set []int32
	for {
		last := t.stack[len(t.stack)-1]
		t.stack, t.onStack[last] = t.stack[:len(t.stack)-1], false
		t.low[last] = -id - 1 // its component
		set = append(set, last)
		if last == id {
			break
		}
	}
	for _, member := range set {
		if t.nodes[member].excused {
			return
		}
		for _, next := range t.nodes[member].edges {
			if next.free && t.low[next.to] != -id-1 {
				return
			}
		}
	}
	t.sets = append(t.sets, set)
}
