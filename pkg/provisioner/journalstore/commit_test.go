package journalstore_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"

	"github.com/exeunt-io/exeunt/pkg/journal"
	. "github.com/exeunt-io/exeunt/pkg/provisioner/journalstore"
)

func TestEntryIsDurableAfterWrite(t *testing.T) {
	bubble(t, func(t *testing.T) {
		api := newServer()
		store := New(config(api, pod, 1))
		if inherited := run(t, store); len(inherited) != 0 {
			t.Fatalf("inherited %+v", inherited)
		}
		entry := newEntry(1)
		must(t, store.Write(t.Context(), entry))
		if _, durable := api.entries(journal.KindActive)[entry.UID]; !durable || !store.Has(entry.UID) {
			t.Fatal("the entry is not durable")
		}
		store.Remove(entry.UID)
		if !store.Has(entry.UID) {
			t.Error("Has = false before the removal is durable")
		}
		<-time.After(2 * time.Second)
		if left := api.entries(journal.KindActive); len(left) != 0 || store.Has(entry.UID) {
			t.Errorf("remaining entries: %+v", left)
		}
	})
}

func TestRemoveNowIsDurableWhenItReturns(t *testing.T) {
	bubble(t, func(t *testing.T) {
		api := newServer()
		store := New(config(api, pod, 1))
		run(t, store)
		for _, soon := range []bool{false, true} {
			must(t, store.Write(t.Context(), newEntry(1)))
			if soon {
				store.Remove(newEntry(1).UID)
			}
			must(t, store.RemoveNow(t.Context(), newEntry(1).UID))
			if left := api.entries(journal.KindActive); len(left) != 0 || store.Has(newEntry(1).UID) {
				t.Errorf("remaining entries: %+v", left)
			}
		}
		must(t, store.RemoveNow(t.Context(), "unknown"))
		store.Remove("unknown")
	})
}

func TestConcurrentEntriesShareOneWrite(t *testing.T) {
	bubble(t, func(t *testing.T) {
		api := newServer()
		api.latency = 3 * time.Millisecond
		store := New(config(api, pod, 1))
		run(t, store)
		before, _ := api.count()
		var all sync.WaitGroup
		for number := range 100 {
			all.Go(func() {
				if err := store.Write(t.Context(), newEntry(number)); err != nil {
					t.Error(err)
				}
			})
		}
		all.Wait()
		if writes, _ := api.count(); writes-before > 4 {
			t.Errorf("%d writes for 100 entries", writes-before)
		}
	})
}

// refuseLeasesWith returns a hook that refuses Leases with the parameter.
func refuseLeasesWith(mark string) func(string, *coordinationv1.Lease) error {
	return func(_ string, lease *coordinationv1.Lease) error {
		if lease == nil {
			return nil
		}
		entries, _ := journal.Entries(lease)
		if slices.ContainsFunc(entries, func(e journal.Entry) bool { return parameterOf(e) == mark }) {
			return apierrors.NewInvalid(coordinationv1.SchemeGroupVersion.WithKind("Lease").GroupKind(), lease.Name, nil)
		}
		return nil
	}
}

func TestRefusedChangeKeepsDurableEntry(t *testing.T) {
	bubble(t, func(t *testing.T) {
		api := newServer()
		store := New(config(api, pod, 1))
		run(t, store)
		must(t, store.Write(t.Context(), withParameter(newEntry(1), "old")))
		api.before = refuseLeasesWith("refused")
		if err := store.Write(t.Context(), withParameter(newEntry(1), "refused")); !apierrors.IsInvalid(err) {
			t.Errorf("error = %v, want Invalid", err)
		}
		<-time.After(time.Minute)
		if got := api.entries(journal.KindActive)[newEntry(1).UID]; parameterOf(got) != "old" || !store.Has(newEntry(1).UID) {
			t.Errorf("entry = %+v, want the old one", got)
		}
		if err := store.Write(t.Context(), withParameter(newEntry(2), "refused")); !apierrors.IsInvalid(err) {
			t.Errorf("error = %v, want Invalid", err)
		}
		if store.Has(newEntry(2).UID) {
			t.Error("the refused entry is still in the journal")
		}
	})
}

// writeAll writes the entries at the same time and returns their errors.
func writeAll(t *testing.T, store *Store, entries ...journal.Entry) []error {
	errs := make([]error, len(entries))
	var all sync.WaitGroup
	for i, entry := range entries {
		all.Go(func() { errs[i] = store.Write(t.Context(), entry) })
	}
	all.Wait()
	return errs
}

func TestRefusedBatchIsSplit(t *testing.T) {
	bubble(t, func(t *testing.T) {
		api := newServer()
		store := New(config(api, pod, 1))
		run(t, store)
		for number := range 4 {
			must(t, store.Write(t.Context(), withParameter(newEntry(number), "old")))
		}
		must(t, store.Write(t.Context(), newEntry(9)))
		api.before = refuseLeasesWith("refused")
		missing := 0
		api.written = func(lease *coordinationv1.Lease) {
			for number := range 4 {
				if journal.Encoded(lease)[newEntry(number).UID] == "" {
					missing++
				}
			}
		}
		store.Remove(newEntry(9).UID)
		errs := writeAll(t, store, withParameter(newEntry(0), "new"), withParameter(newEntry(1), "refused"),
			withParameter(newEntry(2), "new"), withParameter(newEntry(5), "refused"), withParameter(newEntry(6), "new"))
		for i, wrong := range []bool{false, true, false, true, false} {
			if apierrors.IsInvalid(errs[i]) != wrong || (errs[i] != nil) != wrong {
				t.Errorf("entry %d: %v", i, errs[i])
			}
		}
		want := map[types.UID]string{
			newEntry(0).UID: "new", newEntry(1).UID: "old", newEntry(2).UID: "new", newEntry(3).UID: "old",
			newEntry(6).UID: "new",
		}
		got := map[types.UID]string{}
		for uid, entry := range api.entries(journal.KindActive) {
			got[uid] = parameterOf(entry)
		}
		if !maps.Equal(got, want) || missing > 0 {
			t.Errorf("entries = %v, want %v; missing meanwhile: %d", got, want, missing)
		}
	})
}

func TestRemovalDuringSplitIsFinal(t *testing.T) {
	bubble(t, func(t *testing.T) {
		api := newServer()
		api.latency = 100 * time.Millisecond
		store := New(config(api, pod, 1))
		run(t, store)
		api.before = refuseLeasesWith("refused")
		done := make(chan []error)
		go func() {
			done <- writeAll(t, store, newEntry(1), newEntry(2), newEntry(3), withParameter(newEntry(4), "refused"))
		}()
		<-time.After(250 * time.Millisecond) // the batch was refused, the split is under way
		for number := range 4 {
			store.Remove(newEntry(number).UID)
		}
		<-done
		<-time.After(time.Minute)
		if left := api.entries(journal.KindActive); len(left) != 0 {
			t.Errorf("removed entries are stored again: %v", slices.Collect(maps.Keys(left)))
		}
	})
}

func TestWriteWithUnknownOutcomeIsRepeatedOrUndone(t *testing.T) {
	for _, applied := range []bool{false, true} {
		for _, remove := range []bool{false, true} {
			t.Run(fmt.Sprintf("applied %v, remove %v", applied, remove), func(t *testing.T) {
				bubble(t, func(t *testing.T) {
					api := newServer()
					store := New(config(api, pod, 1))
					run(t, store)
					timeout := func(string, *coordinationv1.Lease) error { return context.DeadlineExceeded }
					if applied {
						api.after = timeout
					} else {
						api.before = timeout
					}
					if err := store.Write(t.Context(), newEntry(1)); !errors.Is(err, context.DeadlineExceeded) {
						t.Errorf("error = %v, want the timeout", err)
					}
					api.before, api.after = nil, nil
					if remove {
						must(t, store.RemoveNow(contextWithTimeout(t, time.Minute), newEntry(1).UID))
					} else {
						must(t, store.Write(contextWithTimeout(t, time.Minute), newEntry(1)))
					}
					if _, has := api.entries(journal.KindActive)[newEntry(1).UID]; has == remove {
						t.Errorf("Has = %v", has)
					}
				})
			})
		}
	}
}

func TestCanceledCallerDoesNotStopWrite(t *testing.T) {
	bubble(t, func(t *testing.T) {
		api := newServer()
		api.latency = time.Second
		store := New(config(api, pod, 1))
		run(t, store)
		if err := store.Write(contextWithTimeout(t, 100*time.Millisecond), newEntry(1)); !errors.Is(err,
			context.DeadlineExceeded) {
			t.Errorf("error = %v", err)
		}
		if !store.Has(newEntry(1).UID) {
			t.Error("Has = false for an entry that may be durable")
		}
		<-time.After(5 * time.Second)
		if len(api.entries(journal.KindActive)) != 1 {
			t.Error("the entry is not durable")
		}
	})
}

func startWrite(t *testing.T, store *Store, number int) <-chan error {
	t.Helper()
	ended := make(chan error)
	go func() { ended <- store.Write(t.Context(), newEntry(number)) }()
	synctest.Wait()
	return ended
}

func TestConcurrentFlushAndRunLoseNoEntry(t *testing.T) {
	bubble(t, func(t *testing.T) {
		api := newServer()
		store := New(config(api, pod, 1))
		run(t, store)
		slow := atomic.Bool{}
		api.before = func(string, *coordinationv1.Lease) error {
			if slow.CompareAndSwap(true, false) {
				<-time.After(time.Second) // the first write lands after the second
			}
			return nil
		}
		acknowledged, missing := []types.UID{}, 0
		api.written = func(lease *coordinationv1.Lease) {
			for _, claim := range acknowledged {
				if journal.Encoded(lease)[claim] == "" {
					missing++
				}
			}
		}
		for round := range 5 {
			slow.Store(true)
			first := startWrite(t, store, 2*round)
			<-time.After(100 * time.Millisecond)
			second := startWrite(t, store, 2*round+1)
			store.Flush(t.Context())
			must(t, <-second)
			api.mu.Lock()
			acknowledged = append(acknowledged, newEntry(2*round+1).UID)
			api.mu.Unlock()
			if _, has := api.entries(journal.KindActive)[newEntry(2*round+1).UID]; !has {
				t.Fatalf("round %d: a durable entry is missing", round)
			}
			must(t, <-first)
			if got := len(api.entries(journal.KindActive)); got != 2*round+2 {
				t.Fatalf("round %d: %d entries", round, got)
			}
		}
		if missing > 0 {
			t.Errorf("a durable entry was missing in %d writes", missing)
		}
	})
}

func TestFlushWritesRemovalsAfterRunEnded(t *testing.T) {
	bubble(t, func(t *testing.T) {
		api := newServer()
		store := New(config(api, pod, 1))
		ctx, stop := context.WithCancel(t.Context())
		_, err := store.Start(ctx)
		must(t, err)
		ended := make(chan bool)
		go func() { store.Run(ctx); close(ended) }()
		must(t, store.Write(ctx, newEntry(1)))
		must(t, store.Write(ctx, newEntry(2)))
		store.Remove(newEntry(1).UID)
		stop()
		<-ended
		late := make(chan error)
		go func() { late <- store.RemoveNow(t.Context(), newEntry(2).UID) }()
		synctest.Wait()
		store.Flush(t.Context())
		must(t, <-late)
		if left := api.entries(journal.KindActive); len(left) != 0 {
			t.Errorf("remaining entries: %+v", left)
		}
	})
}

func largeEntry(number int) journal.Entry {
	var text strings.Builder
	for i := range 700 {
		fmt.Fprintf(&text, "%x", (uint64(i)+uint64(number)<<32+1)*0x9e3779b97f4a7c15)
	}
	return withParameter(newEntry(number), text.String()[:9<<10])
}

func TestBusyLeaseDoesNotDelayOtherLeases(t *testing.T) {
	bubble(t, func(t *testing.T) {
		api := newServer()
		api.latency = 60 * time.Millisecond // longer than the interval
		store := New(config(api, pod, 1))
		run(t, store)
		for number := range 10 {
			must(t, store.Write(t.Context(), largeEntry(number)))
		}
		ctx, stop := context.WithCancel(t.Context())
		var busy sync.WaitGroup
		for worker := range 2 {
			busy.Go(func() {
				for round := 0; ctx.Err() == nil; round++ {
					_ = store.Write(ctx, withParameter(newEntry(worker), fmt.Sprint(round)))
				}
			})
		}
		<-time.After(time.Second)
		if err := store.Write(contextWithTimeout(t, 2*time.Second), withParameter(newEntry(9), "new")); err != nil {
			t.Errorf("write to the other Lease: %v", err)
		}
		stop()
		busy.Wait()
	})
}

func TestRemovedEntryIsForgottenUnderLoad(t *testing.T) {
	bubble(t, func(t *testing.T) {
		api := newServer()
		api.latency = 10 * time.Millisecond
		store := New(config(api, pod, 1))
		run(t, store)
		must(t, store.Write(t.Context(), newEntry(0)))
		ctx, stop := context.WithCancel(t.Context())
		var busy sync.WaitGroup
		for worker := range 2 {
			busy.Go(func() {
				for round := 0; ctx.Err() == nil; round++ {
					_ = store.Write(ctx, withParameter(newEntry(worker+1), fmt.Sprint(round)))
					<-time.After(time.Duration(7+worker) * time.Millisecond)
				}
			})
		}
		go func() { // a change comes during every write
			for ctx.Err() == nil {
				<-time.After(time.Millisecond)
				store.Remove(newEntry(99).UID)
				go func() { _ = store.Write(ctx, newEntry(99)) }()
			}
		}()
		store.Remove(newEntry(0).UID)
		<-time.After(10 * time.Second)
		if store.Has(newEntry(0).UID) {
			t.Error("Has = true for an entry that was removed long ago")
		}
		stop()
		busy.Wait()
	})
}
