package journalstore_test

import (
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	coordinationv1 "k8s.io/api/coordination/v1"

	"github.com/exeunt-io/exeunt/pkg/journal"
	. "github.com/exeunt-io/exeunt/pkg/provisioner/journalstore"
)

// gauges returns the metric values by metric name.
func gauges(t *testing.T, metrics *Metrics) map[string]float64 {
	t.Helper()
	registry := prometheus.NewRegistry()
	registry.MustRegister(metrics.Collectors()...)
	families, err := registry.Gather()
	must(t, err)
	values := map[string]float64{}
	for _, family := range families {
		for _, metric := range family.GetMetric() {
			values[family.GetName()] += metric.GetGauge().GetValue() + metric.GetCounter().GetValue()
		}
	}
	return values
}

func TestUnresolvedEntryIsMovedAndResumed(t *testing.T) {
	bubble(t, func(t *testing.T) {
		api := newServer()
		settings := config(api, pod, 5)
		store := New(settings)
		run(t, store)
		entry := newEntry(1)
		entry.CustodyBroken = true
		must(t, store.Write(t.Context(), entry))
		must(t, store.MoveToUnresolved(t.Context(), entry, "the secret is gone"))
		got := store.Unresolved()
		if len(got) != 1 || got[0].Unresolved.Reason != "the secret is gone" || len(api.entries(journal.KindActive)) != 0 ||
			store.Has(entry.UID) {
			t.Fatalf("unresolved %+v, active %v", got, api.entries(journal.KindActive))
		}
		values := gauges(t, settings.Metrics)
		if values["exeunt_provisioning_journal_unresolved_entries"] != 1 ||
			values["exeunt_provisioning_journal_unresolved_oldest_timestamp_seconds"] != float64(time.Now().Unix()) {
			t.Errorf("metrics: %v", values)
		}
		resumed, err := store.Resume(t.Context(), got[0])
		if err != nil || resumed.CustodyBroken || resumed.Unresolved != nil {
			t.Errorf("resumed %+v, %v", resumed, err)
		}
		if len(store.Unresolved()) != 0 || len(api.entries(journal.KindActive)) != 1 ||
			len(api.entries(journal.KindUnresolved)) != 0 {
			t.Error("the entry is not active again")
		}
		if values := gauges(t, settings.Metrics); values["exeunt_provisioning_journal_unresolved_entries"] != 0 ||
			values["exeunt_provisioning_journal_unresolved_oldest_timestamp_seconds"] != 0 ||
			values["exeunt_provisioning_journal_entries"] != 1 {
			t.Errorf("metrics: %v", values)
		}
	})
}

func TestUnresolvedLeasesMayHaveGaps(t *testing.T) {
	bubble(t, func(t *testing.T) {
		api := newServer()
		storeLease(t, api, journal.KindUnresolved, 2, custodyAt(1), newEntry(1), newEntry(2))
		storeLease(t, api, journal.KindUnresolved, 10, custodyAt(1), newEntry(3), newEntry(2))
		store := New(config(api, pod, 5))
		run(t, store)
		must(t, store.RemoveUnresolved(t.Context(), newEntry(1).UID))
		must(t, store.RemoveUnresolved(t.Context(), newEntry(2).UID)) // twice there
		if left := api.entries(journal.KindUnresolved); len(left) != 1 {
			t.Errorf("remaining entries: %v", left)
		}
		must(t, store.MoveToUnresolved(t.Context(), newEntry(3), "again"))
		must(t, store.MoveToUnresolved(t.Context(), newEntry(4), "new"))
		if got := store.Unresolved(); len(got) != 2 {
			t.Errorf("unresolved: %v", claimNames(got))
		}
		must(t, store.RemoveUnresolved(t.Context(), "unknown"))
	})
}

func TestManyUnresolvedEntriesNeedSeveralLeases(t *testing.T) {
	bubble(t, func(t *testing.T) {
		api := newServer()
		api.edit(theJournal.LeaseName(journal.KindUnresolved, 0),
			func(l *coordinationv1.Lease) { l.Annotations = map[string]string{"its": "own"} })
		store := New(config(api, pod, 5))
		run(t, store)
		const count = 60
		done := make(chan error)
		for number := range count {
			go func() { done <- store.MoveToUnresolved(t.Context(), largeEntry(number), "x") }()
		}
		for range count {
			must(t, <-done)
		}
		if got := len(api.entries(journal.KindUnresolved)); got != count || len(store.Unresolved()) != count {
			t.Errorf("%d entries are stored, %d known, want %d", got, len(store.Unresolved()), count)
		}
		for number := range count {
			must(t, store.RemoveUnresolved(t.Context(), largeEntry(number).UID))
		}
		if got := len(api.entries(journal.KindUnresolved)); got != 0 {
			t.Errorf("%d entries are left", got)
		}
	})
}

// startWatch starts the watch, and returns a function for the approved claims.
func startWatch(t *testing.T, store *Store) func() []string {
	t.Helper()
	approved := make(chan string, 100)
	ended := make(chan error, 1)
	ctx := t.Context()
	go func() { ended <- store.Watch(ctx, func(entry journal.Entry) { approved <- entry.Name }) }()
	t.Cleanup(func() { must(t, <-ended) })
	synctest.Wait()
	return func() []string {
		synctest.Wait()
		var names []string
		for len(approved) > 0 {
			names = append(names, <-approved)
		}
		return names
	}
}

func TestApprovedEntryIsReported(t *testing.T) {
	bubble(t, func(t *testing.T) {
		api := newServer()
		finish := newEntry(1)
		finish.Unresolved = &journal.Unresolved{Reason: "x", Since: 1, Finish: true}
		waits := newEntry(2)
		waits.Unresolved = &journal.Unresolved{Reason: "x", Since: 1}
		storeLease(t, api, journal.KindUnresolved, 1, custodyAt(1), finish, waits)
		store := New(config(api, pod, 5))
		run(t, store)
		names := startWatch(t, store)
		if got := names(); !slices.Equal(got, []string{"claim-1"}) {
			t.Errorf("approved: %v", got)
		}
		waits.Unresolved.Finish = true
		storeLease(t, api, journal.KindUnresolved, 1, custodyAt(1), waits)
		if got := names(); !slices.Equal(got, []string{"claim-2"}) {
			t.Errorf("approved: %v", got)
		}
		api.remove(theJournal.LeaseName(journal.KindUnresolved, 1))
		if got := names(); len(got) != 0 || len(store.Unresolved()) != 0 {
			t.Errorf("approved %v, unresolved %v", got, store.Unresolved())
		}
	})
}

var leaseName = theJournal.LeaseName(journal.KindActive, 0)

func editLease(change func(*coordinationv1.Lease)) func(*server) {
	return func(api *server) { api.edit(leaseName, change) }
}

func TestChangedLeaseIsWrittenAgain(t *testing.T) {
	for what, change := range map[string]func(*server){
		"deleted":              func(api *server) { api.remove(leaseName) },
		"entry removed":        editLease(func(l *coordinationv1.Lease) { delete(l.Annotations, journal.EntryPrefix+string(newEntry(1).UID)) }),
		"label removed":        editLease(func(l *coordinationv1.Lease) { l.Labels = nil }),
		"owner changed":        editLease(func(l *coordinationv1.Lease) { l.Annotations[journal.OwnerAnnotation] = "another" }),
		"custody changed":      editLease(func(l *coordinationv1.Lease) { l.Annotations[journal.CustodyAnnotation] = custodyAt(9).String() }),
		"all metadata removed": editLease(func(l *coordinationv1.Lease) { l.Labels, l.Annotations, l.Spec.HolderIdentity = nil, nil, nil }),
	} {
		t.Run(what+", during a write: false", func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				api, _ := oneEntry(t)
				change(api)
				expectLease(t, api, 1)
			})
		})
		t.Run(what+", during a write: true", func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				api, store := oneEntry(t)
				once := true
				api.after = func(string, *coordinationv1.Lease) error {
					if once { // stored, but not answered yet
						once = false
						change(api)
						<-time.After(time.Second)
					}
					return nil
				}
				must(t, store.Write(t.Context(), newEntry(2)))
				expectLease(t, api, 2)
			})
		})
	}
}

// oneEntry returns a server with a Lease of one entry, and the store that watches the Lease.
func oneEntry(t *testing.T) (*server, *Store) {
	t.Helper()
	api := newServer()
	store := New(config(api, pod, 5))
	run(t, store)
	startWatch(t, store)
	must(t, store.Write(t.Context(), newEntry(1)))
	return api, store
}

// expectLease checks that the Lease has all its metadata and the number of entries after
// two seconds.
func expectLease(t *testing.T, api *server, entries int) {
	t.Helper()
	<-time.After(2 * time.Second)
	api.mu.Lock()
	stored := api.leases[leaseName]
	api.mu.Unlock()
	if stored == nil || len(journal.Encoded(stored)) != entries || stored.Labels[journal.KindLabel] == "" ||
		stored.Annotations[journal.OwnerAnnotation] != theJournal.Owner() ||
		stored.Annotations[journal.CustodyAnnotation] != custodyAt(5).String() || journal.HolderOf(stored) != pod {
		t.Errorf("the Lease is %+v", stored)
	}
}

func TestRepeatedChangesAreOverwrittenWithBackoff(t *testing.T) {
	bubble(t, func(t *testing.T) {
		api := newServer()
		store := New(config(api, pod, 5))
		run(t, store)
		startWatch(t, store)
		must(t, store.Write(t.Context(), newEntry(1)))
		name := theJournal.LeaseName(journal.KindActive, 0)
		api.after = func(string, *coordinationv1.Lease) error {
			go api.edit(name, func(l *coordinationv1.Lease) { l.Labels = nil })
			return nil
		}
		api.remove(name)
		before, _ := api.count()
		<-time.After(10 * time.Minute)
		if after, _ := api.count(); after-before > 150 {
			t.Errorf("%d writes in ten minutes", after-before)
		}
	})
}

func TestTakeOverByOtherProcessEndsJournal(t *testing.T) {
	bubble(t, func(t *testing.T) {
		api := newServer()
		settings := config(api, pod, 5)
		lost := make(chan bool)
		settings.Lost = func(error) { close(lost) }
		store := New(settings)
		run(t, store)
		startWatch(t, store)
		must(t, store.Write(t.Context(), newEntry(1)))
		takeOverLease(api, theJournal.LeaseName(journal.KindActive, 0))
		select {
		case <-lost:
		case <-time.After(time.Minute):
			t.Error("the journal continues after another process has taken over")
		}
	})
}

func TestTimesInLeasesAreThoseOfTheClock(t *testing.T) {
	bubble(t, func(t *testing.T) {
		api, then := newServer(), time.Now().Add(-time.Hour)
		settings := config(api, pod, 5)
		settings.Custody, settings.Now = journal.Custody{}, func() time.Time { return then }
		store := New(settings)
		run(t, store)
		must(t, store.MoveToUnresolved(t.Context(), newEntry(1), "the secret is gone"))
		if got := store.Unresolved()[0].Unresolved.Since; got != then.Unix() {
			t.Errorf("unresolved since %d, want %d", got, then.Unix())
		}
		settings.Now = nil
		storeLease(t, api, journal.KindActive, 0, journal.Custody{Written: then.Unix()}, newEntry(2))
		if got := run(t, New(settings)); len(got) != 1 || !got[0].CustodyBroken {
			t.Errorf("inherited %+v, want broken custody after an hour by the time of the machine", got)
		}
	})
}

// After etcd was restored, the versions of the Leases begin anew.
func TestRestoredLeaseIsHeard(t *testing.T) {
	bubble(t, func(t *testing.T) {
		api := newServer()
		entry := newEntry(1)
		entry.Unresolved = &journal.Unresolved{Reason: "x", Since: 1}
		api.version = 1000
		storeLease(t, api, journal.KindUnresolved, 1, custodyAt(1), entry)
		store := New(config(api, pod, 5))
		run(t, store)
		names := startWatch(t, store)
		if got := names(); len(got) > 0 {
			t.Errorf("approved: %v", got)
		}
		api.mu.Lock()
		api.version = 500
		api.mu.Unlock()
		entry.Unresolved.Finish = true
		storeLease(t, api, journal.KindUnresolved, 1, custodyAt(1), entry)
		if got := names(); !slices.Equal(got, []string{"claim-1"}) {
			t.Errorf("approved after a restore: %v", got)
		}
	})
}
