package controller_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/exeunt-io/exeunt/pkg/controller"
)

// reconciledAfter runs a loop after what enqueue does to it, and returns for each key
// how long after the start it was reconciled.
func reconciledAfter(t *testing.T, enqueue func(*controller.Loop)) map[string]time.Duration {
	t.Helper()
	var mu sync.Mutex
	var started time.Time
	reconciled := map[string]time.Duration{}
	loop := controller.NewLoop("test", controller.Backoff{Initial: time.Second, Max: time.Second},
		func(_ context.Context, key string) error {
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
		for key, want := range map[string]time.Duration{"later": time.Hour - 10*time.Second, "sooner": 50 * time.Second,
			"past": 0, "now": 0} {
			if got, done := reconciled[key]; !done || got != want {
				t.Errorf("key %q was reconciled after %s (%t), want after %s", key, got, done, want)
			}
		}
	})
}

// triedAt returns when a key is reconciled for as long as its reconciles return the errors.
func triedAt(t *testing.T, backoff controller.Backoff, errs ...error) []time.Duration {
	t.Helper()
	var mu sync.Mutex
	var tries []time.Duration
	start := time.Now()
	loop := controller.NewLoop("test", backoff, func(context.Context, string) error {
		mu.Lock()
		defer mu.Unlock()
		tries = append(tries, time.Since(start))
		if len(tries) > len(errs) {
			return nil
		}
		return errs[len(tries)-1]
	})
	run(t, loop, 1)
	loop.Enqueue("key")
	<-time.After(time.Hour)
	mu.Lock()
	defer mu.Unlock()
	return tries
}

func TestStaleKeyIsRetriedSoon(t *testing.T) {
	stale, failed := controller.ErrStaleCache, errors.New("scripted")
	conflict := apierrors.NewConflict(schema.GroupResource{}, "v", failed)
	const ms = time.Millisecond
	for name, tc := range map[string]struct {
		initial time.Duration
		errs    []error
		want    []time.Duration
	}{
		"stale cache":    {time.Second, []error{stale}, []time.Duration{0, 20 * ms}},
		"write conflict": {time.Second, []error{fmt.Errorf("patch: %w", conflict)}, []time.Duration{0, 20 * ms}},
		"failure":        {time.Second, []error{failed}, []time.Duration{0, 1000 * ms}},
		"stale for long, then failing": {time.Second, []error{stale, conflict, stale, stale, stale, stale, stale, stale, failed},
			[]time.Duration{0, 20 * ms, 60 * ms, 140 * ms, 300 * ms, 620 * ms, 1260 * ms, 2260 * ms, 4260 * ms, 8260 * ms}},
		"failure, then stale":                      {time.Second, []error{failed, stale, failed}, []time.Duration{0, 1000 * ms, 1020 * ms, 3020 * ms}},
		"no stale backoff above that of a failure": {10 * ms, []error{stale, stale}, []time.Duration{0, 10 * ms, 30 * ms}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				if got := triedAt(t, controller.Backoff{Initial: tc.initial, Max: 4 * time.Second}, tc.errs...); !slices.Equal(got,
					tc.want) {
					t.Errorf("tried at %v, want at %v", got, tc.want)
				}
			})
		})
	}
}

func TestStaleBackoffBeginsAgainAfterSuccess(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var tries []time.Duration
		var mu sync.Mutex
		start := time.Now()
		loop := controller.NewLoop("test", controller.Backoff{Initial: time.Second, Max: time.Second},
			func(context.Context, string) error {
				mu.Lock()
				defer mu.Unlock()
				if tries = append(tries, time.Since(start)); len(tries)%2 == 1 {
					return controller.ErrStaleCache
				}
				return nil
			})
		run(t, loop, 1)
		for range 3 {
			loop.Enqueue("key")
			<-time.After(time.Second)
		}
		mu.Lock()
		defer mu.Unlock()
		const ms = time.Millisecond
		if want := []time.Duration{0, 20 * ms, 1000 * ms, 1020 * ms, 2000 * ms, 2020 * ms}; !slices.Equal(tries, want) {
			t.Errorf("tried at %v, want at %v", tries, want)
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
