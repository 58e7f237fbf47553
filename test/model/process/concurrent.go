package process

import (
	"fmt"
	"maps"
	"slices"
)

// past returns the digests of the passes that have not ended. A pass depends on what it found when it
// began, on each answer that it got, and on what it found at that moment.
func (m *Machine) past(a *actor, before State, input Input) map[int][2]uint64 {
	if !m.Concurrent || len(a.working) == 0 && len(a.waiting) == 0 {
		return nil
	}
	from := &m.states[before]
	past := maps.Clone(from.past)
	if past == nil {
		past = map[int][2]uint64{}
	}
	switch {
	case input.Reconcile != nil:
		past[input.Reconcile.Loop] = digest(fmt.Sprint(from.print, *input.Reconcile))
	case input.Answer != nil:
		loop := from.senders[input.Answer.Call]
		for other, sum := range past {
			if loop == Beside || other == loop {
				past[other] = digest(fmt.Sprint(sum, from.print, from.Calls[input.Answer.Call], *input.Answer))
			}
		}
	case input.Start != nil, input.Seconds > 0:
		past[Beside] = digest(fmt.Sprint(from.print, past[Beside], input))
	}
	maps.DeleteFunc(past, func(loop int, _ [2]uint64) bool { return loop != Beside && !slices.Contains(a.working, loop) })
	return past
}

// identity returns what tells the state from others.
func (l *Local) identity() [2]uint64 {
	if !l.Busy && len(l.Calls) == 0 {
		return l.print
	}
	text := fmt.Sprint(l.print, l.Calls, l.Working)
	for _, loop := range slices.Sorted(maps.Keys(l.past)) {
		text += fmt.Sprint(" ", loop, l.past[loop])
	}
	return digest(text)
}
