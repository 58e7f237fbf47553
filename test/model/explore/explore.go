// Package explore explores a world breadth-first: every state that its steps lead to, and what is
// wrong with the steps and with the states in which the world can come to rest.
//
//	part                          file
//	the world, and the exploration explore.go
//	states at rest                rest.go
package explore

import (
	"errors"
	"fmt"
	"slices"
	"strings"
)

// World has states of type S. Two states are equal if their keys are.
type World[S any, K comparable] interface {
	Initial() S
	Key(state S) K
	// Steps returns every step that can follow the state, in the same order each time.
	Steps(state S) ([]Step[S], error)
	// AtRest returns what is wrong with a state in which the world can come to rest. Restless: the world
	// does not stop there, but goes round in several such states.
	AtRest(state S, restless bool) []Finding
}

// Step leads to a state.
type Step[S any] struct {
	After S
	// Says is what happens, in a line.
	Says string
	// Free: the step needs no fault and no user, so it happens sooner or later.
	Free bool
	// Broken are the rules that the step breaks. Ends: nothing is explored behind it.
	Broken []Finding
	Ends   bool
}

// Finding is a broken rule.
type Finding struct {
	Rule, Sentence string
	// Object is what the rule is broken for, "" for the whole world.
	Object string
}

// Violation is a broken rule and a shortest way to it.
type Violation struct {
	Finding
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
	// Enough reports whether the exploration is to end, nil for never.
	Enough func() bool
	// Partial: the states at rest are not judged.
	Partial bool
}

// Result is what an exploration found.
type Result struct {
	States, Steps, Depth int
	// Resting are the states, or sets of them, in which the world can come to rest.
	Resting int
	// Complete: every reachable state was explored.
	Complete   bool
	Violations []Violation
}

// node is an explored state.
type node[S any] struct {
	state  S
	parent int32
	// step is the number of the step of the parent that led here.
	step  int16
	depth int16
	// free are the states after steps without faults and users.
	free []int32
	// cut: nothing is explored behind a free step from here, so the world need not rest here.
	cut bool
}

// explorer is an exploration of a world.
type explorer[S any, K comparable] struct {
	World[S, K]
	limits Limits
	nodes  []node[S]
	ids    map[K]int32
	result Result
	// broken are the rules with a violation, by rule and object.
	broken map[[2]string]bool
}

// begin returns an exploration that knows the initial state.
func begin[S any, K comparable](w World[S, K], limits Limits) *explorer[S, K] {
	e := &explorer[S, K]{World: w, limits: limits, ids: map[K]int32{}, broken: map[[2]string]bool{}}
	e.add(w.Initial(), -1, 0)
	return e
}

// Run explores the world.
func Run[S any, K comparable](w World[S, K], limits Limits) (Result, error) {
	e := begin(w, limits)
	for id := int32(0); int(id) < len(e.nodes) && !e.enough(); id++ {
		if err := e.expand(id); err != nil {
			return e.result, fmt.Errorf("after:\n  %s\n%w", strings.Join(e.story(id), "\n  "), err)
		}
	}
	e.result.States, e.result.Complete = len(e.nodes), !e.enough()
	if e.result.Complete && !limits.Partial {
		e.checkRest()
	}
	return e.result, nil
}

// Find returns the first state that is as wanted.
func Find[S any, K comparable](w World[S, K], wanted func(S) bool) (S, error) {
	e := begin(w, Limits{})
	for id := int32(0); int(id) < len(e.nodes); id++ {
		if wanted(e.nodes[id].state) {
			return e.nodes[id].state, nil
		}
		if err := e.expand(id); err != nil {
			return e.nodes[id].state, err
		}
	}
	var none S
	return none, errors.New("there is no such state")
}

// enough reports whether the exploration has reached its limits.
func (e *explorer[S, K]) enough() bool {
	found := e.result.Violations
	switch {
	case e.limits.States > 0 && len(e.nodes) > e.limits.States:
		return true
	case e.limits.Violations > 0 && len(found) >= e.limits.Violations:
		return true
	case slices.ContainsFunc(found, func(v Violation) bool { return slices.Contains(e.limits.Until, v.Rule) }):
		return true
	}
	return e.limits.Enough != nil && e.limits.Enough()
}

// add returns the number of a state.
func (e *explorer[S, K]) add(state S, parent int32, step int) int32 {
	key := e.Key(state)
	if id, known := e.ids[key]; known {
		return id
	}
	id, depth := int32(len(e.nodes)), int16(0)
	if parent >= 0 {
		depth = e.nodes[parent].depth + 1
	}
	e.nodes = append(e.nodes, node[S]{state: state, parent: parent, step: int16(step), depth: depth})
	e.ids[key] = id
	e.result.Depth = max(e.result.Depth, int(depth))
	return id
}

// expand adds the states after a state, and notes what is wrong with the steps to them.
func (e *explorer[S, K]) expand(id int32) error {
	steps, err := e.Steps(e.nodes[id].state)
	if err != nil {
		return err
	}
	e.result.Steps += len(steps)
	var free []int32
	for i, step := range steps {
		for _, f := range step.Broken {
			e.violate(id, f, step.Says)
		}
		if step.Ends {
			e.nodes[id].cut = e.nodes[id].cut || step.Free
			continue
		}
		if next := e.add(step.After, id, i); step.Free && next != id {
			free = append(free, next)
		}
	}
	e.nodes[id].free = slices.Clone(free)
	return nil
}

// story returns how a state was reached.
func (e *explorer[S, K]) story(id int32) []string {
	var lines []string
	for ; e.nodes[id].parent >= 0; id = e.nodes[id].parent {
		steps, err := e.Steps(e.nodes[e.nodes[id].parent].state)
		if err != nil || int(e.nodes[id].step) >= len(steps) {
			lines = append(lines, "a step that cannot be repeated")
			continue
		}
		lines = append(lines, steps[e.nodes[id].step].Says)
	}
	slices.Reverse(lines)
	return lines
}

// violate notes a violation, the first of each rule and object.
func (e *explorer[S, K]) violate(id int32, f Finding, last ...string) {
	if e.broken[[2]string{f.Rule, f.Object}] {
		return
	}
	e.broken[[2]string{f.Rule, f.Object}] = true
	e.result.Violations = append(e.result.Violations, Violation{f, append(e.story(id), last...)})
}
