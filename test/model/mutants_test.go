package model

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"github.com/exeunt-io/exeunt/test/model/explore"
	"github.com/exeunt-io/exeunt/test/model/mutant"
	"github.com/exeunt-io/exeunt/test/model/process"
)

// groupsForMutants returns the worlds of mutants, made in a bubble of their own.
func groupsForMutants(t *testing.T) []Group {
	t.Helper()
	var groups []Group
	synctest.Test(t, func(*testing.T) {
		lab := NewLab()
		defer lab.Close()
		groups = lab.mutantGroups()
	})
	return groups
}

// TestWorldsOfMutantsAreSafe: where nothing is changed, nothing is wrong.
func TestWorldsOfMutantsAreSafe(t *testing.T) {
	names := map[string]bool{}
	for _, group := range groupsForMutants(t) {
		for _, config := range group.Configs {
			if names[config.Name] {
				t.Errorf("two worlds are called %q", config.Name)
			}
			names[config.Name] = true
			exploreAll(t, explore.Limits{Violations: 1, States: 20_000}, []Config{config}, func(r Result) { report(t, r) })
		}
	}
}

// judgingWorld is a world in which mutants are judged.
type judgingWorld struct {
	Config
	group string
	// states is the number of its states; reached are the IDs of the mutants that it reaches.
	states  int
	reached []atomic.Bool
	// kills counts the mutants of each function that the world has killed.
	kills map[string]int
}

// open explores the world without a mutant.
func (w *judgingWorld) open(t *testing.T) {
	t.Helper()
	if w.reached != nil {
		return
	}
	w.reached, w.kills = make([]atomic.Bool, len(mutant.All())+1), map[string]int{}
	mutant.Record(func(id int, differs bool) {
		if differs {
			w.reached[id].Store(true)
		}
	})
	defer mutant.Record(nil)
	exploreAll(t, explore.Limits{}, []Config{w.Config}, func(r Result) {
		w.states = r.States
		report(t, r)
	})
}

// kill reports whether the world shows that the mutant is wrong, and how.
func (w *judgingWorld) kill(t *testing.T, m mutant.Mutant) (by string) {
	t.Helper()
	mutant.Select(m.ID)
	defer mutant.Select(0)
	exploreTolerant(t, explore.Limits{States: 2*w.states + 1000, Violations: 1}, []Config{w.Config}, func(r Result) {
		switch {
		case errors.Is(r.Err, process.ErrNotRepeated): // the unit tests judge it
		case len(r.Violations) > 0:
			by = fmt.Sprintf("%s after %d states: %s", r.Violations[0].Rule, r.States, r.Violations[0].Sentence)
		case !r.Complete:
			by = fmt.Sprintf("more than %d states, and no end", r.States)
		}
	})
	if by != "" {
		w.kills[m.File+m.Func]++
	}
	return by
}

// largest is the number of states of the largest world for mutants without a name.
const largest = 1000

// judge returns which of the worlds shows that the mutant is wrong, and how; "" for none.
// reached: a world evaluates its place. The worlds that killed others of its function come first.
func judge(t *testing.T, m mutant.Mutant, worlds []*judgingWorld) (by string, reached bool) {
	t.Helper()
	worlds = slices.Clone(worlds)
	first := groupsOf(m.File)
	slices.SortStableFunc(worlds, func(a, b *judgingWorld) int {
		if m.Name == "" {
			return cmp.Compare(b.kills[m.File+m.Func], a.kills[m.File+m.Func])
		}
		return cmp.Compare(slices.Index(first, b.group), slices.Index(first, a.group))
	})
	for _, w := range worlds {
		w.open(t)
		if !w.reached[m.ID].Load() || m.Name == "" && w.states > largest {
			continue
		}
		reached = true
		if by := w.kill(t, m); by != "" {
			return w.Name + ": " + by, true
		}
	}
	return "", reached
}

// groupsOf returns the groups of worlds that aim at the decisions of the file, the best one last.
func groupsOf(file string) []string {
	for _, known := range []struct {
		folder string
		groups []string
	}{
		{"pkg/reclaim/plugin", []string{"in-tree"}}, {"pkg/pvcontroller/pvwriter", []string{"in-tree"}},
		{"pkg/reclaim", []string{"finalizers", "reclaim"}}, {"pkg/provisioner/deletion", []string{"restart", "reclaim"}},
		{"pkg/binding", []string{"restore", "release", "binding"}}, {"pkg/protection", []string{"protection"}},
		{"pkg/provision", []string{"restore", "provisioning", "restart"}}, {"pkg/controller", []string{"webhook"}},
	} {
		if strings.HasPrefix(file, known.folder) {
			return known.groups
		}
	}
	return nil
}

// worldsForMutants returns the worlds. All mutants take the smallest world first; a single one
// takes the worlds that aim at its decision first, and not all of them are opened.
func worldsForMutants(t *testing.T) []*judgingWorld {
	t.Helper()
	var worlds []*judgingWorld
	for _, group := range groupsForMutants(t) {
		for _, config := range group.Configs {
			worlds = append(worlds, &judgingWorld{Config: config, group: group.Name})
		}
	}
	if *mutants == "" {
		for _, w := range worlds {
			w.open(t)
		}
		slices.SortStableFunc(worlds, func(a, b *judgingWorld) int { return cmp.Compare(a.states, b.states) })
	}
	return worlds
}
