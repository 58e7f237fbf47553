package controller

import (
	"sync"
	"testing"
)

func TestKeyIsLockedByOneWorkerAtATime(t *testing.T) {
	var locks KeyLocks
	var running sync.WaitGroup
	counts := map[string]*int{"a": new(int), "b": new(int)}
	for key, count := range counts {
		for range 100 {
			running.Go(func() {
				defer locks.Lock(key)()
				*count++ // the race detector reports two workers here
			})
		}
	}
	running.Wait()
	for key, count := range counts {
		if *count != 100 {
			t.Errorf("%s was locked %d times, want 100", key, *count)
		}
	}
	if len(locks.locks) != 0 {
		t.Errorf("unused locks remain: %v", locks.locks)
	}
}

func TestLockOfAnotherKeyDoesNotWait(_ *testing.T) {
	var locks KeyLocks
	defer locks.Lock("a")()
	locks.Lock("b")()
}
