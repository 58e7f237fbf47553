package controller_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/exeunt-io/exeunt/pkg/controller"
)

// looks runs the loop after what before does to it, and returns when which key was
// looked at, by the time since then.
func looks(t *testing.T, exists func(string) bool, before func(*controller.Loop)) map[string]time.Duration {
	t.Helper()
	var mu sync.Mutex
	var begun time.Time
	looked := map[string]time.Duration{}
	loop := controller.NewLoop("test", controller.Backoff{Initial: time.Second, Max: time.Second}, func(_ context.Context, key string) error {
		mu.Lock()
		defer mu.Unlock()
		looked[key] = time.Since(begun)
		return nil
	})
	if exists != nil {
		loop.Only(exists)
	}
	before(loop)
	begun = time.Now()
	run(t, loop, 1)
	<-time.After(2 * time.Hour)
	mu.Lock()
	defer mu.Unlock()
	return looked
}

// A standby sees every object come and go: it must not keep a key for each of them.
func TestALoopThatDoesNotRunYetKeepsTheKeysOfWhatExistsAndFewOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		exists := func(key string) bool { return strings.HasPrefix(key, "alive") }
		looked := looks(t, exists, func(loop *controller.Loop) {
			for i := range 100_000 {
				loop.Enqueue(fmt.Sprintf("gone-%d", i))
				if i%100 == 0 {
					loop.Enqueue(fmt.Sprintf("alive-%d", i))
				}
			}
		})
		var alive, gone int
		for key := range looked {
			if exists(key) {
				alive++
			} else {
				gone++
			}
		}
		if alive != 1000 {
			t.Errorf("%d objects that exist were looked at, want all 1000", alive)
		}
		if gone > 3000 {
			t.Errorf("%d keys of objects that are gone were kept", gone)
		}
	})
}

// What no cache tells, such as whether a snapshot exists, is looked at if it came late.
func TestALoopThatBeginsLooksAtTheLatestKeysWhetherTheyExistOrNot(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		looked := looks(t, func(string) bool { return false }, func(loop *controller.Loop) {
			for i := range 12_345 {
				loop.Enqueue(fmt.Sprint(i))
			}
		})
		for i := 12_345 - 1000; i < 12_345; i++ {
			if _, done := looked[fmt.Sprint(i)]; !done {
				t.Fatalf("key %d was not looked at, one of the last 1000 of 12345", i)
			}
		}
	})
}

func TestAKeyIsDueWhenItWasThoughTheLoopRunsLater(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		looked := looks(t, nil, func(loop *controller.Loop) {
			loop.EnqueueAfter("later", time.Hour)
			loop.EnqueueAfter("sooner", time.Hour)
			loop.EnqueueAfter("sooner", time.Minute)
			loop.EnqueueAfter("sooner", 2*time.Hour)
			loop.EnqueueAfter("past", time.Second)
			loop.Enqueue("now")
			loop.EnqueueAfter("now", time.Hour)
			<-time.After(10 * time.Second)
		})
		for key, want := range map[string]time.Duration{"later": time.Hour - 10*time.Second, "sooner": 50 * time.Second, "past": 0, "now": 0} {
			if got, done := looked[key]; !done || got != want {
				t.Errorf("key %q was looked at after %s (%t), want after %s", key, got, done, want)
			}
		}
	})
}

func TestNoKeyIsLostWhileALoopBegins(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const keys = 5000
		looked := looks(t, nil, func(loop *controller.Loop) {
			go func() {
				for i := range keys {
					loop.Enqueue(fmt.Sprint(i))
				}
			}()
		})
		if len(looked) != keys {
			t.Errorf("%d keys were looked at, want %d", len(looked), keys)
		}
	})
}
