package controller

import (
	"sync"
	"testing"
)

func TestOneWorkerAtATimeHasItsTurn(t *testing.T) {
	var turns Turns
	var running sync.WaitGroup
	counts := map[string]*int{"a": new(int), "b": new(int)}
	for name, count := range counts {
		for range 100 {
			running.Go(func() {
				defer turns.Take(name)()
				*count++ // the race detector tells if two are here
			})
		}
	}
	running.Wait()
	for name, count := range counts {
		if *count != 100 {
			t.Errorf("%s: %d turns, want 100", name, *count)
		}
	}
	if len(turns.taken) != 0 {
		t.Errorf("turns are kept: %v", turns.taken)
	}
}

func TestTheTurnOfAnotherNameIsNotWaitedFor(*testing.T) {
	var turns Turns
	defer turns.Take("a")()
	turns.Take("b")()
}
