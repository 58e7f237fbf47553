package controller_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/exeunt-io/exeunt/pkg/controller"
)

// reconciledAfter runs a loop after what enqueue does to it, and returns for each key
// how long after the start it was reconciled.
func reconciledAfter(t *testing.T, enqueue func(*controller.Loop)) map[string]time.Duration {
	t.Helper()
	var mu sync.Mutex
	var started time.Time
	reconciled := map[string]time.Duration{}
	loop := controller.NewLoop("test", controller.Backoff{Initial: time.Second, Max: time.Second}, func(_ context.Context, key string) error {
		mu.Lock()
		defer mu.Unlock()
		reconciled[key] = time.Since(started)
		return nil
	})
	enqueue(loop)
	started = time.Now()
	run(t, loop, 1)
	<-time.After(2 * time.Hour)
	mu.Lock()
	defer mu.Unlock()
	return reconciled
}

func TestKeysEnqueuedBeforeTheStartKeepTheirTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		reconciled := reconciledAfter(t, func(loop *controller.Loop) {
			loop.EnqueueAfter("later", time.Hour)
			loop.EnqueueAfter("sooner", time.Hour)
			loop.EnqueueAfter("sooner", time.Minute)
			loop.EnqueueAfter("sooner", 2*time.Hour)
			loop.EnqueueAfter("past", time.Second)
			loop.Enqueue("now")
			<-time.After(10 * time.Second)
		})
		for key, want := range map[string]time.Duration{"later": time.Hour - 10*time.Second, "sooner": 50 * time.Second, "past": 0, "now": 0} {
			if got, done := reconciled[key]; !done || got != want {
				t.Errorf("key %q was reconciled after %s (%t), want after %s", key, got, done, want)
			}
		}
	})
}

func TestNoKeyIsLostWhileTheLoopStarts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const keys = 5000
		reconciled := reconciledAfter(t, func(loop *controller.Loop) {
			go func() {
				for i := range keys {
					loop.Enqueue(fmt.Sprint(i))
				}
			}()
		})
		if len(reconciled) != keys {
			t.Errorf("%d keys were reconciled, want %d", len(reconciled), keys)
		}
	})
}
