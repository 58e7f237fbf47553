package garbage

import (
	"fmt"
	"slices"
	"strings"
)

// Violation is a broken rule, and a shortest way to it.
type Violation struct {
	Finding
	Story []string
}

// String returns the story as text.
func (v Violation) String() string {
	return fmt.Sprintf("%s: %s\n  %s", v.Rule, v.Sentence, strings.Join(v.Story, "\n  "))
}

// Result is what an exploration found.
type Result struct {
	Config string
	// States, Steps and Depth measure the explored world, Locals and Replays the work of the collector.
	States, Steps, Depth, Locals, Replays int
	// Resting are the states in which nothing more happens without faults and users.
	Resting int
	// Complete: every reachable state was explored.
	Complete bool

	Violations []Violation
}

// Limits bound an exploration.
type Limits struct {
	// States is the greatest number of states, 0 for no limit.
	States int
	// Violations is after how many broken rules the exploration ends.
	Violations int
}

// node is an explored state.
type node struct {
	state  *State
	parent int
	says   string
	depth  int
	// free are the states after steps without faults and users.
	free []int
}

type explorer struct {
	*world
	limits Limits
	nodes  []node
	ids    map[[2]uint64]int
	result Result
}

// Explore explores a configuration breadth-first. It is called within a bubble of testing/synctest.
func Explore(config *Config, limits Limits) (Result, error) {
	machine, err := newMachine(config)
	if err != nil {
		return Result{}, err
	}
	defer machine.Close()
	e := &explorer{world: &world{config, machine}, limits: limits, ids: map[[2]uint64]int{}, result: Result{Config: config.Name}}
	e.add(e.initial(), -1, "")
	complete := true
	for i := 0; i < len(e.nodes) && complete; i++ {
		if err := e.expand(i); err != nil {
			return e.result, fmt.Errorf("%s, after:\n  %s\n%w", config.Name, strings.Join(e.story(i), "\n  "), err)
		}
		complete = !isReached(limits.States, len(e.nodes)) && !isReached(config.States, len(e.nodes)) && (limits.Violations == 0 || len(e.result.Violations) < limits.Violations)
	}
	if complete {
		e.checkRest()
	}
	e.result.Complete = complete
	e.result.States, e.result.Locals, e.result.Replays = len(e.nodes), len(machine.states), machine.Replays
	return e.result, nil
}

func isReached(limit, number int) bool { return limit > 0 && number >= limit }

func (e *explorer) add(s *State, parent int, says string) int {
	key := digest(s.key())
	if id, known := e.ids[key]; known {
		return id
	}
	depth := 0
	if parent >= 0 {
		depth = e.nodes[parent].depth + 1
	}
	id := len(e.nodes)
	e.nodes = append(e.nodes, node{state: s, parent: parent, says: says, depth: depth})
	e.ids[key] = id
	e.result.Depth = max(e.result.Depth, depth)
	return id
}

func (e *explorer) expand(id int) error {
	steps, err := e.steps(e.nodes[id].state)
	if err != nil {
		return err
	}
	e.result.Steps += len(steps)
	for _, step := range steps {
		if len(step.After.broken) > 0 {
			for _, f := range step.After.broken {
				e.violate(f, append(e.story(id), step.Says))
			}
			continue
		}
		next := e.add(step.After, id, step.Says)
		if step.Free && next != id {
			e.nodes[id].free = append(e.nodes[id].free, next)
		}
	}
	return nil
}

func (e *explorer) story(id int) []string {
	var lines []string
	for ; e.nodes[id].parent >= 0; id = e.nodes[id].parent {
		lines = append(lines, e.nodes[id].says)
	}
	slices.Reverse(lines)
	return lines
}

// violate records the first violation of each rule.
func (e *explorer) violate(f Finding, story []string) {
	if slices.ContainsFunc(e.result.Violations, func(v Violation) bool { return v.Rule == f.Rule }) {
		return
	}
	e.result.Violations = append(e.result.Violations, Violation{f, story})
}

// Restless: from a state the cluster never comes to rest.
const Restless = "Restless"

// checkRest judges the states at rest, and that one of them can be reached from every state.
func (e *explorer) checkRest() {
	before := make([][]int, len(e.nodes))
	var resting []int
	rests := make([]bool, len(e.nodes))
	for id := range e.nodes {
		for _, next := range e.nodes[id].free {
			before[next] = append(before[next], id)
		}
		if len(e.nodes[id].free) == 0 {
			resting = append(resting, id)
			rests[id] = true
			for _, f := range e.atRest(e.nodes[id].state) {
				e.violate(f, e.story(id))
			}
		}
	}
	e.result.Resting = len(resting)
	for len(resting) > 0 {
		id := resting[len(resting)-1]
		resting = resting[:len(resting)-1]
		for _, earlier := range before[id] {
			if !rests[earlier] {
				rests[earlier] = true
				resting = append(resting, earlier)
			}
		}
	}
	if id := slices.Index(rests, false); id >= 0 {
		e.violate(Finding{Restless, "the cluster never comes to rest"}, e.story(id))
	}
}
