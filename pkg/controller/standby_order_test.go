package controller

import (
	"strconv"
	"testing"
	"time"
)

func TestWhatHasWaitedForLongestIsLookedAtFirst(t *testing.T) {
	kept := newStandby()
	start := time.Unix(0, 0)
	for i := range 3 * fewest {
		kept.add(strconv.Itoa(i), start.Add(time.Duration(i)*time.Second))
	}
	next := 0
	kept.hand(func(key string, _ time.Time) {
		if key != strconv.Itoa(next) {
			t.Errorf("%s comes instead of %d", key, next)
		}
		next++
	})
	if next != 3*fewest {
		t.Errorf("%d keys were handed on, want %d", next, 3*fewest)
	}
}
