package model

import (
	"fmt"
	"slices"

	"github.com/exeunt-io/exeunt/test/model/process"
)

// passes returns the passes that a program can begin.
func (w *world) passes(s *State, i int) ([]Step, error) {
	if !w.mayBegin(s, i) {
		return nil, nil
	}
	local, loops := w.local(s, i), w.config.Programs[i].Loops
	var all []Step
	for _, key := range local.Keys {
		if loops != nil && !slices.Contains(loops, key.Loop) || slices.Contains(local.Working, key.Loop) {
			continue
		}
		begun, err := w.begin(s, i, key)
		if err != nil {
			return nil, err
		}
		if len(begun) == 1 && begun[0].Local {
			return begun, nil
		}
		all = append(all, begun...)
	}
	return all, nil
}

// mayBegin reports whether a program runs, has no work in flight that keeps another pass from
// beginning, and has caches that are fresh enough.
func (w *world) mayBegin(s *State, i int) bool {
	local := w.local(s, i)
	idle := !local.Busy && len(local.Calls) == 0
	if s.instances[i].local == process.Off || !idle && !w.config.Programs[i].Concurrent ||
		slices.Contains(local.Working, process.Starting) {
		return false
	}
	return s.stalls < 0 || !w.isStale(s, i)
}

// begin returns the ways in which a pass begins.
func (w *world) begin(s *State, i int, key process.Key) ([]Step, error) {
	after, stuck, err := w.move(
		s, i, false, process.Input{Reconcile: &key}, fmt.Sprintf("reconcile %d %s", key.Loop, key.Key),
	)
	if err != nil {
		return nil, err
	}
	says := fmt.Sprintf("%s reconciles %s in %s", w.config.Programs[i].Name, key.Key, w.machines[i].Loop(key.Loop))
	sent := newCalls(w.local(s, i).Calls, w.local(after, i).Calls)
	if len(sent) == 0 { // no other program notices a pass without calls
		return []Step{{
			After: after, Says: says, Free: true, Local: w.config.Eager && !key.Later, Later: key.Later, Stuck: stuck,
		}}, nil
	}
	all, err := w.answersTo(after, i, sent, false) // nothing can come between the begin and the first answer
	if err != nil {
		return nil, err
	}
	for n := range all {
		all[n].Says = says + ": " + all[n].Says
	}
	if w.config.Programs[i].Concurrent &&
		slices.ContainsFunc(sent, func(call numbered) bool { return call.Create != "" }) {
		all = append(all, Step{
			After: after, Says: says + ", and CreateVolume waits for its answer", Free: true, Stuck: stuck,
		})
	}
	return all, nil
}

// numbered is a call that waits for an answer, with its number.
type numbered struct {
	process.Call
	number int
}

// newCalls returns the calls that did not wait before.
func newCalls(before, now []process.Call) []numbered {
	var sent []numbered
	left := slices.Clone(before)
	for number, call := range now {
		if i := slices.Index(left, call); i >= 0 {
			left = slices.Delete(left, i, i+1)
			continue
		}
		sent = append(sent, numbered{call, number})
	}
	return sent
}
