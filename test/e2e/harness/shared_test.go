package harness

import (
	"sync/atomic"
	"testing"
)

// newCounted returns a shared cluster without processes that counts its starts and stops.
func newCounted() (c *sharedCluster, starts, stops *atomic.Int32) {
	starts, stops = new(atomic.Int32), new(atomic.Int32)
	return &sharedCluster{
		start: func(testing.TB) *Cluster { starts.Add(1); return &Cluster{} },
		stop:  func(*Cluster, testing.TB) { stops.Add(1) },
	}, starts, stops
}

func TestSharedClusterStopsWithLastUser(t *testing.T) {
	c, starts, stops := newCounted()
	expect := func(after string, started, stopped int32) {
		t.Helper()
		if starts.Load() != started || stops.Load() != stopped {
			t.Errorf("after %s: %d starts and %d stops, want %d and %d", after, starts.Load(), stops.Load(), started, stopped)
		}
	}
	c.addUser()
	c.addUser()
	if first, second := c.get(t), c.get(t); first != second {
		t.Error("two users got different clusters")
	}
	expect("two users have joined", 1, 0)
	c.removeUser(t)
	expect("one of two users has ended", 1, 0)
	c.removeUser(t)
	expect("both users have ended", 1, 1)
	c.addUser()
	c.get(t)
	c.removeUser(t)
	expect("a later user", 2, 2)
}

func TestUnusedClusterIsNotStarted(t *testing.T) {
	c, starts, stops := newCounted()
	c.addUser()
	c.removeUser(t)
	if starts.Load() != 0 || stops.Load() != 0 {
		t.Errorf("%d starts and %d stops, want none", starts.Load(), stops.Load())
	}
}

func TestParallelTestsShareOneCluster(t *testing.T) {
	setup := Setup{ControllerFlags: t.Name()}
	c, starts, stops := newCounted()
	sharedMu.Lock()
	shared[setup] = c
	sharedMu.Unlock()
	t.Run("group", func(t *testing.T) {
		for _, name := range []string{"first", "second", "third", "fourth"} {
			t.Run(name, func(t *testing.T) {
				Parallel(t, setup)
				c.get(t)
			})
		}
	})
	if starts.Load() != 1 || stops.Load() != 1 {
		t.Errorf("%d starts and %d stops of four parallel tests, want one of each", starts.Load(), stops.Load())
	}
}
