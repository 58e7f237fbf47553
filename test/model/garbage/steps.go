package garbage

import (
	"fmt"
	"slices"
)

// next returns a copy of the state in which the collector got the input.
func (w *world) next(s *State, input Input) (*State, error) {
	after := s.clone()
	var err error
	after.collector, err = w.machine.Next(s.collector, input)
	if err == nil { // the answer to a call that was given up goes to no other call
		calls := w.machine.states[after.collector].Calls
		after.served = slices.DeleteFunc(after.served, func(served Served) bool {
			return !slices.ContainsFunc(calls, func(call Call) bool { return fmt.Sprint(call) == served.call })
		})
	}
	return after, err
}

// starts returns the starts of the collector.
func (w *world) starts(s *State, _ *Local) ([]Step, error) {
	if s.collector != 0 {
		return nil, nil
	}
	if s.away {
		return nil, nil
	}
	fresh := s.clone()
	for k := range w.config.Kinds {
		w.show(fresh, k)
	}
	started, err := w.start(fresh)
	if err != nil {
		return nil, err
	}
	all := []Step{{Says: "the collector starts", After: started, Free: true}}
	if s.faults.StaleStarts > 0 && s.isBehind() {
		stale, err := w.start(s)
		if err != nil {
			return nil, err
		}
		stale.faults.StaleStarts--
		all = append(all, Step{Says: "the collector starts with lists of the past", After: stale})
	}
	return all, nil
}

func (s *State) isBehind() bool {
	return slices.ContainsFunc(s.views[:], func(v View) bool { return len(v.events) > 0 })
}

// start starts the collector with what the views show.
func (w *world) start(s *State) (*State, error) {
	input := Input{Start: []List{}}
	for k := range w.config.Kinds {
		input.Start = append(input.Start, s.views[k].list(k))
	}
	return w.next(s, input)
}

// crashes returns the crashes of the collector. One of its writes may arrive afterwards.
func (w *world) crashes(s *State, l *Local) []Step {
	if s.collector == 0 || s.faults.Crashes == 0 {
		return nil
	}
	crashed := s.clone()
	crashed.stop()
	crashed.faults.Crashes--
	all := []Step{{Says: "the collector crashes", After: crashed}}
	for i, call := range l.Calls {
		if call.writes() && s.faults.Late > 0 {
			late := crashed.clone()
			late.faults.Late--
			late.late = append(late.late, Write{call, l.Ages[i]})
			all = append(all, Step{Says: "the collector crashes, and a write is under way: " + w.describe(call), After: late})
		}
	}
	return all
}

// cacheStep returns the step in which the watch of the kind shows its next event, or a list follows because the
// watch ended.
func (w *world) cacheStep(s *State, k int) (Step, error) {
	if s.relist[k] {
		return w.relisted(s, k)
	}
	v := &s.views[k]
	e := v.events[0]
	after, err := w.next(s, Input{See: &e})
	if err != nil {
		return Step{}, err
	}
	seen := &after.views[k]
	seen.events, seen.version, seen.shown[e.Object.Slot] = slices.Clone(v.events[1:]), e.Version, e.Object
	if e.Deleted {
		seen.shown[e.Object.Slot] = nil
	}
	return Step{Says: "the watch shows " + w.event(e), After: after, Free: true}, nil
}

// cacheSteps returns what the watches deliver next.
func (w *world) cacheSteps(s *State, _ *Local) ([]Step, error) {
	if s.collector == 0 || s.away {
		return nil, nil
	}
	var all []Step
	for k := range w.config.Kinds {
		v := &s.views[k]
		if s.failing[k] {
			continue
		}
		if s.relist[k] || len(v.events) > 0 {
			step, err := w.cacheStep(s, k)
			if err != nil {
				return nil, err
			}
			all = append(all, step)
		} else if v.version < s.counters[k] && w.machine.states[s.collector].Working[Barrier] {
			step, err := w.bookmark(s, k)
			if err != nil {
				return nil, err
			}
			all = append(all, step)
		}
		if s.faults.Relists > 0 && !s.relist[k] && len(v.events) > 0 {
			step, err := w.relisted(s, k)
			if err != nil {
				return nil, err
			}
			step.After.faults.Relists--
			step.Free = false
			all = append(all, step)
		}
	}
	return all, nil
}

// bookmark returns the step in which the watch of the kind delivers a bookmark.
func (w *world) bookmark(s *State, k int) (Step, error) {
	marked := List{Kind: k, Version: s.counters[k]}
	after, err := w.next(s, Input{Bookmark: &marked})
	if err != nil {
		return Step{}, err
	}
	after.views[k].version = marked.Version
	return Step{Says: "a bookmark of " + w.config.Kinds[k].Resource, After: after}, nil
}

// relisted returns the step in which a list replaces the watch of the kind.
func (w *world) relisted(s *State, k int) (Step, error) {
	shown := s.clone()
	w.show(shown, k)
	shown.relist[k] = false
	list := shown.views[k].list(k)
	after, err := w.next(shown, Input{Relist: &list})
	return Step{Says: "a list replaces the watch of " + w.config.Kinds[k].Resource, After: after, Free: true}, err
}

func (w *world) event(e Event) string {
	if e.Deleted {
		return "the end of " + w.name(e.Object)
	}
	return w.name(e.Object)
}

// begins returns the passes that may begin.
func (w *world) begins(s *State, l *Local) ([]Step, error) {
	if s.collector == 0 {
		return nil, nil
	}
	var inputs []Input
	if !l.Working[Work] {
		for _, uid := range l.Due {
			inputs = append(inputs, Input{Judge: uid})
		}
	}
	if l.AwaitsBarrier {
		inputs = append(inputs, Input{Begin: Barrier})
	}
	if l.AwaitsCycles {
		inputs = append(inputs, Input{Begin: Cycles})
	}
	var all []Step
	for _, input := range inputs {
		after, err := w.next(s, input)
		if err != nil {
			return nil, err
		}
		says := fmt.Sprintf("a %s begins", input.Begin)
		if input.Judge != "" {
			says = fmt.Sprintf("a worker judges %s", input.Judge)
		}
		all = append(all, Step{Says: says, After: after, Free: true})
	}
	return all, nil
}

// seconds lets a second pass while the collector works.
func (w *world) seconds(s *State, _ *Local) ([]Step, error) {
	if s.faults.Seconds == 0 || s.collector == 0 {
		return nil, nil
	}
	after, err := w.pass(s)
	if err != nil {
		return nil, err
	}
	after.faults.Seconds--
	return []Step{{Says: "a second passes at once", After: after}}, nil
}

// pass lets a second pass.
func (w *world) pass(s *State) (*State, error) {
	after, err := w.next(s, Input{Seconds: 1})
	if err != nil {
		return nil, err
	}
	for i := range after.sinceOrphan {
		after.sinceOrphan[i] = min(longAgo, after.sinceOrphan[i]+1)
		after.sinceForeground[i] = min(longAgo, after.sinceForeground[i]+1)
		after.sinceLive[i] = min(longAgo, after.sinceLive[i]+1)
	}
	for i := range after.late {
		after.late[i].Age = min(longAgo, after.late[i].Age+1)
	}
	return after, nil
}

// users returns what users may do.
func (w *world) users(s *State) []Step {
	var all []Step
	for i, action := range w.config.Users {
		if s.used&(1<<i) != 0 {
			continue
		}
		after := s.clone()
		after.used |= 1 << i
		if action.Do(w, after) {
			all = append(all, Step{Says: "a user " + action.Says, After: after})
		}
	}
	return all
}

// unlisted returns the kinds that cannot be listed from now on, or can be again.
func (w *world) unlisted(s *State) []Step {
	var all []Step
	for k, kind := range w.config.Kinds {
		after := s.clone()
		switch {
		case s.failing[k]:
			after.failing[k] = false
			all = append(all, Step{Says: kind.Resource + " can be listed again", After: after, Free: true})
		case s.faults.Unlisted > 0 && s.collector != 0:
			after.faults.Unlisted--
			after.failing[k], after.unread[k] = true, true
			all = append(all, Step{Says: kind.Resource + " cannot be listed", After: after})
		}
	}
	return all
}

// name returns a name of the object for stories.
func (w *world) name(o *Object) string {
	if o == nil {
		return "nothing"
	}
	text := fmt.Sprintf("%s@%d", w.uidAt(o.Slot, o.Incarnation), o.Version)
	for _, r := range o.Refs {
		text += fmt.Sprintf(" -> %s", r.Owner)
		if !r.Blocks {
			text += " (not blocking)"
		}
	}
	if o.Deleting {
		text += fmt.Sprintf(", deleted, %v", o.finalizers())
	} else if all := o.finalizers(); len(all) > 0 {
		text += fmt.Sprintf(", %v", all)
	}
	return text
}
