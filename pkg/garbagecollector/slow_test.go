package garbagecollector

import (
	"errors"
	"testing"
	"time"

	clocktesting "k8s.io/utils/clock/testing"
)

func TestSlowKindKeepsOneWorker(t *testing.T) {
	clock := clocktesting.NewFakeClock(time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC))
	c := New(Config{Clock: clock})
	taking := func(took time.Duration, during func()) func() (time.Time, error) {
		return func() (time.Time, error) {
			began := clock.Now()
			during()
			clock.Step(took)
			return began, nil
		}
	}
	nothing := func() {}
	quick := func() {
		if err := c.limitSlow(configMaps, taking(0, nothing)); err != nil {
			t.Errorf("a kind that is not slow: %v", err)
		}
	}
	refused := func() {
		if err := c.limitSlow(configMaps, taking(0, nothing)); !errors.Is(err, errSlow) {
			t.Errorf("while a slow kind is read: %v", err)
		}
	}
	for _, read := range []func() (time.Time, error){taking(slowRead, quick), taking(slowRead, refused), taking(0, refused), taking(0, quick)} {
		if err := c.limitSlow(configMaps, read); err != nil {
			t.Error(err)
		}
	}
}
