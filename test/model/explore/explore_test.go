package explore

import (
	"errors"
	"slices"
	"strconv"
	"testing"
)

// graph is a world whose states are numbers: a step leads to each number of the list. A negative
// number is a step that is not free.
type graph struct {
	steps map[int][]int
	// broken are the steps that break a rule, last those behind which nothing is explored.
	broken, last []int
	// unwanted are the states in which the graph must not come to rest.
	unwanted []int
	// judged are the states at rest; restless those among them that are one of several.
	judged, restless *[]int
}

func (g graph) Initial() int { return 1 }

func (g graph) Key(state int) string { return strconv.Itoa(state) }

func (g graph) Steps(state int) ([]Step[int], error) {
	var all []Step[int]
	for _, to := range g.steps[state] {
		if to == 0 {
			return nil, errors.New("a program does not work")
		}
		step := Step[int]{After: max(to, -to), Free: to > 0, Ends: slices.Contains(g.last, to)}
		step.Says = "to " + strconv.Itoa(step.After)
		if slices.Contains(g.broken, to) {
			step.Broken = []Finding{{Rule: "Broken"}}
		}
		all = append(all, step)
	}
	return all, nil
}

func (g graph) AtRest(state int, restless bool) []Finding {
	if g.judged != nil {
		*g.judged = append(*g.judged, state)
	}
	if g.restless != nil && restless {
		*g.restless = append(*g.restless, state)
	}
	if slices.Contains(g.unwanted, state) {
		return []Finding{{Rule: "Unwanted"}}
	}
	return nil
}

func run(t *testing.T, g graph, limits Limits) Result {
	t.Helper()
	result, err := Run(g, limits)
	if err != nil {
		t.Fatal(err)
	}
	return result
}

func TestShortestStoryIsTold(t *testing.T) {
	g := graph{steps: map[int][]int{1: {2, 3}, 2: {4}, 3: {5}, 4: {5}, 5: {6}}, broken: []int{6}}
	result := run(t, g, Limits{})
	if len(result.Violations) != 1 || !slices.Equal(result.Violations[0].Story, []string{"to 3", "to 5", "to 6"}) {
		t.Errorf("violations are %v, want one by 3, 5 and 6", result.Violations)
	}
	if result.States != 6 || result.Steps != 6 || result.Depth != 3 || !result.Complete {
		t.Errorf("%+v, want 6 states and steps in a depth of 3", result)
	}
}

func TestStatesAtRestAreJudged(t *testing.T) {
	for name, tc := range map[string]struct {
		g                graph
		judged, restless []int
		sets             int
	}{
		"state without free steps": {graph{steps: map[int][]int{1: {2, 3}, 2: {-1}}}, []int{2, 3}, nil, 2},
		"step to the same state":   {graph{steps: map[int][]int{1: {2}, 2: {2}}}, []int{2}, nil, 1},
		"circle that nothing leaves": {
			graph{steps: map[int][]int{1: {2, 4}, 2: {3}, 3: {2, -1}}}, []int{2, 3, 4}, []int{2, 3}, 2,
		},
		"circle that a free step leaves":  {graph{steps: map[int][]int{1: {2}, 2: {3}, 3: {2, 4}}}, []int{4}, nil, 1},
		"free step that ends exploration": {graph{steps: map[int][]int{1: {2, 3}}, last: []int{3}}, []int{2}, nil, 1},
		"only step ends exploration":      {graph{steps: map[int][]int{1: {2}, 2: {3}}, last: []int{3}}, nil, nil, 0},
		"fault that ends exploration":     {graph{steps: map[int][]int{1: {2}, 2: {-3}}, last: []int{-3}}, []int{2}, nil, 1},
	} {
		t.Run(name, func(t *testing.T) {
			var judged, restless []int
			tc.g.judged, tc.g.restless = &judged, &restless
			result := run(t, tc.g, Limits{})
			if !slices.Equal(judged, tc.judged) || !slices.Equal(restless, tc.restless) || result.Resting != tc.sets {
				t.Errorf("judged %v, restless %v in %d sets; want %v, %v in %d",
					judged, restless, result.Resting, tc.judged, tc.restless, tc.sets)
			}
		})
	}
}

func TestLimitEndsExploration(t *testing.T) {
	chain := graph{broken: []int{3}, unwanted: []int{6}}
	chain.steps = map[int][]int{1: {2}, 2: {3}, 3: {4}, 4: {5}, 5: {6}}
	for name, tc := range map[string]struct {
		limits             Limits
		states, violations int
		complete           bool
	}{
		"no limit":             {Limits{}, 6, 2, true},
		"states":               {Limits{States: 4}, 5, 1, false},
		"violations":           {Limits{Violations: 1}, 3, 1, false},
		"rule that is broken":  {Limits{Until: []string{"Broken"}}, 3, 1, false},
		"rule that holds":      {Limits{Until: []string{"Other"}}, 6, 2, true},
		"enough":               {Limits{Enough: func() bool { return true }}, 1, 0, false},
		"states at rest apart": {Limits{Partial: true}, 6, 1, true},
	} {
		t.Run(name, func(t *testing.T) {
			result := run(t, chain, tc.limits)
			if result.States != tc.states || len(result.Violations) != tc.violations || result.Complete != tc.complete {
				t.Errorf("%+v, want %d states, %d violations, complete: %v", result, tc.states, tc.violations, tc.complete)
			}
		})
	}
}

func TestFirstWantedStateIsFound(t *testing.T) {
	g := graph{steps: map[int][]int{1: {2, 3}, 2: {40}, 3: {30}}}
	if found, err := Find(g, func(state int) bool { return state >= 30 }); found != 40 || err != nil {
		t.Errorf("found %d, error %v; want 40", found, err)
	}
	if _, err := Find(g, func(int) bool { return false }); err == nil {
		t.Error("a state is found that does not exist")
	}
}

func TestErrorTellsStory(t *testing.T) {
	_, err := Run(graph{steps: map[int][]int{1: {2}, 2: {3}, 3: {0}}}, Limits{})
	if want := "after:\n  to 2\n  to 3\na program does not work"; err == nil || err.Error() != want {
		t.Errorf("error is %v, want %s", err, want)
	}
}
