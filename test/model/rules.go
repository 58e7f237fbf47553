package model

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/exeunt-io/exeunt/test/model/check"
	"github.com/exeunt-io/exeunt/test/model/explore"
	"github.com/exeunt-io/exeunt/test/model/process"
)

// unexcusedStep returns what is wrong with a step and has no excuse, and whether an excuse ends the
// exploration there.
func (w *world) unexcusedStep(before *State, step Step, needed map[int]bool) (found []explore.Finding, ends bool) {
	for _, f := range w.broken(before, step) {
		if excuse, excused := w.excuse(w.config.Programs[step.Program].Actor, f, needed); excused {
			ends = ends || !excuse.Harmless
			continue
		}
		found = append(found, f)
	}
	return found, ends
}

// broken returns what is wrong with a step.
func (w *world) broken(before *State, step Step) []explore.Finding {
	var found []explore.Finding
	if step.Stuck != "" {
		found = append(found, explore.Finding{Rule: "Stuck", Sentence: step.Stuck})
	}
	if step.Effect == nil {
		return found
	}
	for _, f := range w.brokenBy(before, step) {
		if !isAccepted(f.Rule, step) {
			found = append(found, f)
		}
	}
	return found
}

// brokenBy returns the rules that the effect of a step broke, at whatever moment that it rests on.
func (w *world) brokenBy(before *State, step Step) []explore.Finding {
	effect := *step.Effect
	effect.Faultless, effect.Unchanged = w.isFaultless(step.After), effect.Unchanged && !w.raced(before, step)
	was, is := w.snapshot(before), w.snapshot(cmp.Or(step.Plain, step.After))
	wrong := findings(check.Broken(was, is, effect))
	for _, objects := range w.restsOn(before, step, effect.Kind) {
		then := *before
		then.objects = objects
		effect.Since = w.snapshot(&then)
		earlier := findings(check.Broken(was, is, effect))
		wrong = slices.DeleteFunc(wrong, func(f explore.Finding) bool {
			return !slices.ContainsFunc(
				earlier, func(other explore.Finding) bool { return other.Rule == f.Rule && other.Object == f.Object },
			)
		})
	}
	return wrong
}

func findings(broken []check.Violation) []explore.Finding {
	found := make([]explore.Finding, 0, len(broken))
	for _, v := range broken {
		found = append(found, explore.Finding{Rule: v.Rule.String(), Object: v.Object, Sentence: v.Sentence})
	}
	return found
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
	return len(here.read) > 0 && !slices.Equal(here.read, s.objects) || w.config.Interruptions != int(s.interruptions) ||
		s.stalled.program != 0
}

// isFaultless reports whether nothing has failed until the state.
func (w *world) isFaultless(s *State) bool {
	return !w.config.Restarted && int(s.crashes) == w.config.Crashes && int(s.losses) == w.config.Losses &&
		int(s.errors) == w.config.Errors &&
		int(s.denials) == w.config.Denials && int(s.undos) == w.config.Undos &&
		int(s.wrongAnswers) == w.config.WrongAnswers && int(s.switches) == w.config.Switches &&
		int(s.delays) == w.config.Delays && int(s.restores) == w.config.Restores
}

// resting returns what is wrong with a state in which the world comes to rest.
func (w *world) resting(s *State) []explore.Finding {
	wanted := check.Wanted{
		Driver: process.DriverName, Unresolved: w.config.Upstream || w.config.Switches > 0 || w.config.Restores > 0,
		Classes: w.config.Classes, Exempt: w.config.Exempt,
	}
	for i, program := range w.config.Programs {
		if program.Actor == check.Provisioner || program.Actor == check.UpstreamProvisioner {
			wanted.Honor = w.honors(s, i)
		}
	}
	return findings(check.AtRest(w.snapshot(s), wanted))
}

// Excuse is a violation that a program of upstream causes in a configuration. The exploration does
// not continue after an excused step, so whatever else it reports has another cause.
type Excuse struct {
	Rule check.Rule
	// Actor took the step that broke the rule; "" for a rule at rest.
	Actor check.Actor
	// Sentence is a part of the sentence of the violation, "" for any sentence.
	Sentence string
	// Also are rules at rest that the same state may break as well.
	Also []check.Rule
	// Harmless: nothing follows from the step, and the exploration continues after it.
	Harmless bool
	// Beside: the violation needs one of our programs beside upstream's.
	Beside bool
	// Why says what upstream does.
	Why string
}

// String names the excuse in one line.
func (x Excuse) String() string {
	return strings.TrimSpace(fmt.Sprintf("%s %s: %s", x.Actor, x.Rule, x.Why))
}

// excuse returns the excuse of the configuration for what the actor broke, "" for one at rest, and adds
// its number to the needed ones.
func (w *world) excuse(actor check.Actor, f explore.Finding, needed map[int]bool) (Excuse, bool) {
	for i, excuse := range w.config.Excused {
		if excuse.Rule.String() == f.Rule && excuse.Actor == actor && strings.Contains(f.Sentence, excuse.Sentence) {
			needed[i] = true
			return excuse, true
		}
	}
	return Excuse{}, false
}

// unexcused returns what is wrong with a state at rest and has no excuse.
func (w *world) unexcused(found []explore.Finding, needed map[int]bool) []explore.Finding {
	var excused []string
	for _, f := range found {
		if excuse, ok := w.excuse("", f, needed); ok {
			excused = append(excused, f.Rule)
			for _, rule := range excuse.Also {
				excused = append(excused, rule.String())
			}
		}
	}
	return slices.DeleteFunc(found, func(f explore.Finding) bool { return slices.Contains(excused, f.Rule) })
}

// unneeded returns the excuses that no violation needed.
func (c Config) unneeded(needed map[int]bool) []Excuse {
	var all []Excuse
	for i, excuse := range c.Excused {
		if !needed[i] {
			all = append(all, excuse)
		}
	}
	return all
}
