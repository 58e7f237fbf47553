package model

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/exeunt-io/exeunt/test/model/mutant"
)

// Result is what an exploration found.
type Result struct {
	Config string
	// States, Steps and Depth measure the explored world; Locals are the states of the single
	// programs, Replays how often their controllers were run.
	States, Steps, Depth   int
	Locals, Replays, Ended int
	Took                   time.Duration
	// Complete: every reachable state was explored.
	Complete bool
	// Bounded: the exploration ended at the number of states of the configuration.
	Bounded    bool
	Violations []Violation
	// Err is what ended a tolerant exploration, nil for nothing.
	Err error
	// Unneeded are the excuses of the configuration that no violation needed.
	Unneeded []Excuse
}

// Violation is a broken rule and the shortest way to it.
type Violation struct {
	Rule, Sentence string
	// Story is what happened, a line per step.
	Story []string
}

// String returns the story as text.
func (v Violation) String() string {
	return fmt.Sprintf("%s: %s\n  %s", v.Rule, v.Sentence, strings.Join(v.Story, "\n  "))
}

// Limits bound an exploration.
type Limits struct {
	// States is the greatest number of states, 0 for no limit.
	States int
	// Violations is after how many violations the exploration ends, 0 for all.
	Violations int
	// Until are the rules of which one must be broken to end the exploration, nil for none.
	Until []string
	// Needed: the exploration ends once every excuse was needed.
	Needed bool
	// Tolerant: what a program cannot do is a violation, not an error.
	Tolerant bool
}

// edge is a step in the graph of states.
type edge struct {
	to   int32
	free bool
}

// node is an explored state.
type node struct {
	key    string
	parent int32
	// step is the number of the step of the parent that led here.
	step  int16
	depth int16
	edges []edge
	// excused: a step of upstream's programs from here is excused, so the world need not rest here.
	excused bool
}

// explorer is an exploration of one configuration.
type explorer struct {
	*world
	limits Limits
	nodes  []node
	ids    map[string]int32
	result Result
	rules  map[string]bool
	// excused are the numbers of the excuses that were needed.
	excused map[int]bool
}

// Explore explores a configuration breadth-first, so that every story is a shortest one. It
// is called within a bubble of testing/synctest.
func (l *Lab) Explore(config Config, limits Limits) (Result, error) {
	defer mutant.Suspend()()
	w, err := newWorld(l, config)
	if err != nil {
		return Result{}, err
	}
	e := &explorer{world: w, limits: limits, ids: map[string]int32{}, rules: map[string]bool{}, excused: map[int]bool{}, result: Result{Config: config.Name, Complete: true}}
	e.add(w.initial(), -1, 0)
	for i := 0; i < len(e.nodes) && !e.enough(); i++ {
		if err := e.expand(int32(i)); err != nil {
			return e.result, fmt.Errorf("%s, after:\n  %s\n%w", config.Name, strings.Join(e.story(int32(i)), "\n  "), err)
		}
	}
	if e.result.Complete = e.result.Complete && !e.enough(); e.result.Complete && !config.Partial {
		e.checkRest()
	}
	if e.result.Complete && !config.Partial || limits.Needed {
		e.result.Unneeded = e.unneeded()
	}
	e.result.States = len(e.nodes)
	for _, program := range config.Programs {
		machine := l.machines[program.machine()]
		e.result.Locals += machine.Size()
		e.result.Replays += machine.Replays
	}
	return e.result, nil
}

// enough reports whether the exploration has reached its limits.
func (e *explorer) enough() bool {
	if e.limits.States > 0 && len(e.nodes) > e.limits.States {
		e.result.Complete = false
		return true
	}
	if e.config.States > 0 && len(e.nodes) > e.config.States {
		e.result.Complete, e.result.Bounded = false, true
		return true
	}
	if slices.ContainsFunc(e.result.Violations, func(v Violation) bool { return slices.Contains(e.limits.Until, v.Rule) }) {
		return true
	}
	if e.limits.Needed && len(e.excused) == len(e.config.Excused) {
		return true
	}
	return e.limits.Violations > 0 && len(e.result.Violations) >= e.limits.Violations
}

// add returns the number of a state.
func (e *explorer) add(s *State, parent int32, step int) int32 {
	key := s.key()
	if id, known := e.ids[key]; known {
		return id
	}
	id := int32(len(e.nodes))
	depth := int16(0)
	if parent >= 0 {
		depth = e.nodes[parent].depth + 1
	}
	e.nodes = append(e.nodes, node{key: key, parent: parent, step: int16(step), depth: depth})
	e.ids[key] = id
	e.result.Depth = max(e.result.Depth, int(depth))
	return id
}

// expand adds the states after a state, and checks the steps to them.
func (e *explorer) expand(id int32) error {
	s := parse(e.nodes[id].key, len(e.config.Programs))
	steps, err := e.steps(s)
	if err != nil {
		return err
	}
	edges := make([]edge, 0, len(steps))
	for i, step := range steps {
		if ends := e.checkStep(id, s, step); ends {
			e.nodes[id].excused = e.nodes[id].excused || step.Free
			continue
		}
		edges = append(edges, edge{to: e.add(step.After, id, i), free: step.Free})
	}
	e.nodes[id].edges = edges
	e.result.Steps += len(steps)
	return nil
}

// story returns how a state was reached.
func (e *explorer) story(id int32) []string {
	var lines []string
	for ; e.nodes[id].parent >= 0; id = e.nodes[id].parent {
		steps, err := e.steps(parse(e.nodes[e.nodes[id].parent].key, len(e.config.Programs)))
		if err != nil || int(e.nodes[id].step) >= len(steps) {
			lines = append(lines, "a step that cannot be repeated")
			continue
		}
		lines = append(lines, steps[e.nodes[id].step].Says)
	}
	slices.Reverse(lines)
	return lines
}

// violate records a violation, the first of each rule and object.
func (e *explorer) violate(id int32, rule, object, sentence string, last ...string) {
	if e.rules[rule+object] {
		return
	}
	e.rules[rule+object] = true
	e.result.Violations = append(e.result.Violations, Violation{Rule: rule, Sentence: sentence, Story: append(e.story(id), last...)})
}
