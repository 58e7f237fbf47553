package journalstore_test

import (
	"context"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"

	"github.com/exeunt-io/exeunt/pkg/journal"
	. "github.com/exeunt-io/exeunt/pkg/provisioner/journalstore"
)

// stored returns a copy of the Lease.
func (s *server) stored(name string) *coordinationv1.Lease {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.leases[name].DeepCopy()
}

// restore brings the Lease of a backup back. The API server goes on from the version.
func (s *server) restore(backup *coordinationv1.Lease, version int) {
	s.mu.Lock()
	s.version = version
	s.mu.Unlock()
	s.edit(backup.Name, func(now *coordinationv1.Lease) { *now = *backup })
}

// dropWrites answers reads only.
func dropWrites(verb string, _ *coordinationv1.Lease) error {
	if verb == "list" || verb == "get" {
		return nil
	}
	return context.DeadlineExceeded
}

// restores are restores of etcd while a process leads.
var restores = map[string]struct {
	watches bool
	version int  // of the API server after the restore
	entry   bool // the Lease of the backup has the entry
	lost    bool // a write of the time of the restore has no answer
}{
	"with a watch":                      {true, 500, true, false},
	"without a watch":                   {false, 500, true, false},
	"raised revision":                   {false, 5000, true, false},
	"raised revision, with a watch":     {true, 5000, true, false},
	"older, without entries":            {false, 500, false, false},
	"during a write without an answer":  {false, 500, true, true},
	"raised, a write without an answer": {false, 5000, true, true},
}

// etcd is restored from a backup of the time when a call for a claim that is gone had no answer. Since then the volume was
// recorded with the policy Retain, and its PersistentVolume is gone again. The entry alone knows the disk, and the process has
// lived on.
func TestJournalThatWentBackEndsTheTerm(t *testing.T) {
	for name, tc := range restores {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				api := newServer()
				api.version = 1000
				settings := config(api, pod, 5)
				var ended atomic.Bool
				settings.Lost = func(error) { ended.Store(true) }
				store := New(settings)
				run(t, store)
				if tc.watches {
					startWatch(t, store)
				}
				ctx := contextWithTimeout(t, time.Hour)
				must(t, store.Write(ctx, newEntry(1)))
				if !tc.entry {
					must(t, store.RemoveNow(ctx, newEntry(1).UID))
				}
				backup := api.stored(leaseName)
				must(t, store.RemoveNow(ctx, newEntry(1).UID))
				must(t, store.Write(ctx, newEntry(3)))
				<-time.After(time.Minute)
				if tc.lost {
					api.setHooks(dropWrites, nil)
					store.Remove(newEntry(3).UID)
					<-time.After(10 * time.Second)
					api.setHooks(nil, nil)
				}
				api.restore(backup, tc.version)
				<-time.After(time.Minute)
				_ = store.Write(ctx, newEntry(2))
				synctest.Wait() // the term ends after the write
				_, stored := api.entries(journal.KindActive)[newEntry(1).UID]
				if !ended.Load() || stored != tc.entry {
					t.Errorf("the term has ended: %t, the entry of the backup is stored: %t", ended.Load(), stored)
				}
			})
		})
	}
}

// The next leader would misjudge an entry whose holder or term a webhook has changed.
func TestLeaseChangedOnAdmissionIsNotDurable(t *testing.T) {
	for what, change := range map[string]func(*coordinationv1.Lease){
		"holder": func(l *coordinationv1.Lease) { *l.Spec.HolderIdentity = otherPod },
		"term":   func(l *coordinationv1.Lease) { l.Annotations[journal.CustodyAnnotation] = custodyAt(9).String() },
		"owner":  func(l *coordinationv1.Lease) { l.Annotations[journal.OwnerAnnotation] = "another" },
	} {
		t.Run(what, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				api := newServer()
				store := New(config(api, pod, 1))
				run(t, store)
				api.setHooks(func(verb string, lease *coordinationv1.Lease) error {
					if verb == "create" || verb == "update" {
						change(lease)
					}
					return nil
				}, nil)
				if err := store.Write(contextWithTimeout(t, time.Minute), newEntry(1)); err == nil {
					t.Error("the write counts as durable")
				}
			})
		})
	}
}
