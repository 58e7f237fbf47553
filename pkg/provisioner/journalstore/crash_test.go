package journalstore_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/exeunt-io/exeunt/pkg/journal"
	. "github.com/exeunt-io/exeunt/pkg/provisioner/journalstore"
)

var errCrashed = errors.New("the process has crashed")

// crashAtRequest makes all requests fail from the given request on. Applied: the server still
// executes that request, and only the response is lost.
func crashAtRequest(api *server, step int, applied bool) {
	var mu sync.Mutex
	count := 0
	next := func(after bool) error {
		mu.Lock()
		defer mu.Unlock()
		if !after {
			count++
		}
		if count > step || count == step && after == applied {
			return errCrashed
		}
		return nil
	}
	api.before = func(string, *coordinationv1.Lease) error { return next(false) }
	api.after = func(string, *coordinationv1.Lease) error { return next(true) }
}

// acknowledged has the operations that returned success before the crash.
type acknowledged struct {
	written, removed, unresolved map[types.UID]bool
}

// runOperations calls every operation of the store and returns the successful ones.
func runOperations(ctx context.Context, store *Store) acknowledged {
	known := acknowledged{map[types.UID]bool{}, map[types.UID]bool{}, map[types.UID]bool{}}
	inherited, err := store.TakeOver(ctx)
	if err != nil {
		return known
	}
	go store.Run(ctx)
	for _, entry := range inherited {
		known.written[entry.UID] = true
	}
	for number := range 6 {
		entry := largeEntry(number)
		if store.Write(ctx, entry) == nil {
			known.written[entry.UID] = true
		}
	}
	remove := func(number int) {
		delete(known.written, newEntry(number).UID) // the outcome may be unknown
		known.removed[newEntry(number).UID] = store.RemoveNow(ctx, newEntry(number).UID) == nil
	}
	remove(0)
	remove(5)
	if known.written[newEntry(1).UID] && store.MoveToUnresolved(ctx, largeEntry(1), "x") == nil {
		known.unresolved[newEntry(1).UID] = true
	}
	if known.written[newEntry(2).UID] && store.MoveToUnresolved(ctx, largeEntry(2), "x") == nil {
		_, _ = store.Resume(ctx, largeEntry(2))
	}
	return known
}

func TestCrashAtAnyRequestLosesNoEntry(t *testing.T) {
	crashes := 0
	for step := 1; step < 60; step++ {
		for _, applied := range []bool{false, true} {
			bubble(t, func(t *testing.T) {
				api := newServer()
				storeLease(t, api, journal.KindActive, 0, custodyAt(3), newEntry(7))
				storeLease(t, api, journal.KindActive, 1, custodyAt(3), newEntry(8))
				crashAtRequest(api, step, applied)
				ctx, stop := context.WithTimeout(t.Context(), time.Hour)
				known := runOperations(ctx, New(config(api, otherPod, 4)))
				stop()
				api.before, api.after = nil, nil
				known.written[newEntry(7).UID], known.written[newEntry(8).UID] = true, true
				crashes++
				store := New(config(api, pod, 5))
				inherited := map[types.UID]journal.Entry{}
				for _, entry := range run(t, store) {
					inherited[entry.UID] = entry
				}
				unresolved := map[types.UID]bool{}
				for _, entry := range store.Unresolved() {
					unresolved[entry.UID] = true
				}
				what := fmt.Sprintf("crash with request %d, applied %v", step, applied)
				for claim := range known.written {
					if _, is := inherited[claim]; !is && !unresolved[claim] {
						t.Errorf("%s: the entry of claim %s is lost", what, claim)
					}
				}
				for claim, removed := range known.removed {
					if _, is := inherited[claim]; is && removed {
						t.Errorf("%s: the removed entry of claim %s is inherited", what, claim)
					}
				}
				for claim := range known.unresolved {
					if _, is := inherited[claim]; is || !unresolved[claim] {
						t.Errorf("%s: the unresolved entry of claim %s is active %v, unresolved %v", what, claim, is, unresolved[claim])
					}
				}
			})
		}
	}
	t.Logf("%d crashes", crashes)
}

// BenchmarkStore writes and removes entries with the provisioner's number of workers and an
// API server latency of 3 ms.
func BenchmarkStore(b *testing.B) {
	for _, workers := range []int{1, 10, 100} {
		b.Run(fmt.Sprint(workers), func(b *testing.B) {
			api := newServer()
			api.latency = 3 * time.Millisecond
			store := New(config(api, pod, 1))
			ctx, stop := context.WithCancel(b.Context())
			defer stop()
			if _, err := store.Start(ctx); err != nil {
				b.Fatal(err)
			}
			go store.Run(ctx)
			before, beforeBytes := api.count()
			numbers := make(chan int)
			var all sync.WaitGroup
			for range workers {
				all.Go(func() {
					for number := range numbers {
						if err := store.Write(ctx, newEntry(number)); err != nil {
							b.Error(err)
						}
						store.Remove(newEntry(number).UID)
					}
				})
			}
			started := time.Now()
			for number := range b.N {
				numbers <- number
			}
			close(numbers)
			all.Wait()
			store.Flush(ctx)
			writes, bytes := api.count()
			b.ReportMetric(float64(b.N)/time.Since(started).Seconds(), "entries/s")
			b.ReportMetric(float64(writes-before)/float64(b.N), "commits/volume")
			b.ReportMetric(float64(bytes-beforeBytes)/float64(b.N), "bytes/volume")
		})
	}
}
