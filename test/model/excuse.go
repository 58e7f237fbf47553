package model

import (
	"fmt"
	"slices"
	"strings"

	"github.com/exeunt-io/exeunt/test/model/check"
	"github.com/exeunt-io/exeunt/test/model/explore"
)

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
