package journalstore

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/record"

	"github.com/exeunt-io/exeunt/pkg/journal"
)

// ErrLost: another process writes the journal, or it went back to an earlier state; this process must not call the
// driver.
var ErrLost = errors.New("another process has taken over the provisioning journal, or it was restored from a backup")

// Limits of the journal's Leases.
const (
	// budget is the greatest size of the entries in one active Lease, in bytes. Every change
	// writes the whole Lease, so Leases are small.
	budget = 48 << 10
	// unresolvedBudget is the limit for Leases with unresolved entries, which seldom change.
	// The API server allows 256 KiB of annotations.
	unresolvedBudget = 200 << 10
	// commitTimeout bounds one write of a Lease.
	commitTimeout = 10 * time.Second
)

// Config configures the journal.
type Config struct {
	Client  kubernetes.Interface
	Journal journal.Journal
	// Holder names this process. The suffix "_exeunt" keeps the name different from the names
	// of other programs.
	Holder string
	// Custody is the current term.
	Custody journal.Custody
	// Interval is the shortest time between two writes. RemovalDelay is the time that a
	// removal waits for other changes.
	Interval, RemovalDelay time.Duration
	// ForbiddenFor is the time without permission to write Leases, until volumes are created
	// without the journal.
	ForbiddenFor time.Duration
	// Off: the process writes no new entries and creates no Lease. It takes over existing
	// Leases.
	Off bool
	// Recorder emits the events about the journal itself; it may be nil.
	Recorder record.EventRecorder
	Metrics  *Metrics
	// Lost is called once if another process takes over the journal.
	Lost func(error)
	// Now is the clock for the times in Leases; nil for [time.Now].
	Now func() time.Time
}

// Store is the journal of one driver, or of one driver on one node.
type Store struct {
	Config
	wake chan struct{}
	// writer is full during the write of an active Lease, unresolvedWriter during the write of
	// a Lease with unresolved entries.
	writer, unresolvedWriter chan struct{}

	mu     sync.Mutex
	leases []*lease
	// numbers has the numbers of the existing active Leases.
	numbers map[int]bool
	// leaseOf has the Lease of each entry; removed has the Leases of removals that are not
	// durable yet; inherited has the entries that TakeOver has not returned yet.
	leaseOf    map[types.UID]*lease
	removed    map[types.UID]*lease
	inherited  []journal.Entry
	unresolved map[string]unresolvedLease
	approved   func(journal.Entry)
	lostErr    error
	reported   bool
	lastCommit time.Time
	// forbiddenSince is the time since which the permission to write Leases is missing, or zero.
	forbiddenSince time.Time
}

// lease is one active Lease.
type lease struct {
	number int
	// version is the resourceVersion of the Lease, "" before the Lease exists.
	version string
	// entries are the wanted entries; durable are the entries of the last successful write.
	entries, durable map[types.UID]string
	size             int
	// changed: another writer changed the Lease; the next write undoes the change.
	changed bool
	// unknown is the time of the last write if its outcome is unknown, else zero. tried are the entries of the writes
	// since the last one with an answer.
	unknown time.Time
	tried   map[types.UID]bool
	// unanswered counts the writes without an answer. Each later write records the count, so it changes the
	// Lease, and the API server refuses an unanswered write from then on.
	unanswered int
	// due is the time of the next write, zero without changes.
	due      time.Time
	failures int
	// inherited: the Lease is being taken over.
	inherited bool
	// writing: a write has begun. Seen is the latest version in an event during the write;
	// unsure: an event came without a comparable version.
	writing, unsure bool
	seen            string
	// repairs counts recent repairs, that is, writes that undo changes of other writers;
	// repaired is the time of the last repair.
	repairs  int
	repaired time.Time
	waiters  []waiter
}

// waiter waits until a change of the claim's entry is durable.
type waiter struct {
	claim  types.UID
	put    bool
	result chan error
}

// New returns a journal; Start must read the Leases first.
func New(config Config) *Store {
	if config.Metrics == nil {
		config.Metrics = NewMetrics()
	}
	if config.Now == nil {
		config.Now = time.Now
	}
	return &Store{
		Config: config, wake: make(chan struct{}, 1), writer: make(chan struct{}, 1),
		unresolvedWriter: make(chan struct{}, 1),
		leaseOf:          map[types.UID]*lease{}, removed: map[types.UID]*lease{}, unresolved: map[string]unresolvedLease{},
		numbers: map[int]bool{},
	}
}

// Write makes the entry durable. The errors are [ErrLost], [journal.ErrTooLarge] or errors of
// the API server. After an unknown outcome the journal retries the write: the caller must
// call Write with the same entry again, or Remove. A refused entry is given up: the journal
// keeps the claim's earlier entry, if any.
func (s *Store) Write(ctx context.Context, entry journal.Entry) error {
	text, err := journal.Encode(entry)
	if err != nil {
		return err
	}
	s.mu.Lock()
	if err := s.lostErr; err != nil {
		s.mu.Unlock()
		return err
	}
	l := s.leaseFor(entry.UID, len(text))
	s.set(l, entry.UID, text)
	result := s.addWaiter(l, entry.UID, true)
	s.mu.Unlock()
	return s.waitForResult(ctx, result, "write the journal entry of claim %s/%s", entry.Namespace, entry.Name)
}

// leaseFor returns the Lease that has, or may still have, an entry of the claim, else a Lease with enough space.
func (s *Store) leaseFor(claim types.UID, size int) *lease {
	if l := cmp.Or(s.leaseOf[claim], s.removed[claim]); l != nil {
		return l
	}
	for _, l := range s.leases {
		if !l.inherited && (l.size+size <= budget || len(l.entries) == 0) {
			return l
		}
	}
	return s.addLease(s.freeNumber())
}

func (s *Store) addLease(number int) *lease {
	l := &lease{number: number, entries: map[types.UID]string{}, durable: map[types.UID]string{}}
	s.numbers[number] = true
	s.leases = append(s.leases, l)
	return l
}

func (s *Store) freeNumber() int {
	number := 0
	for s.numbers[number] {
		number++
	}
	return number
}

func (s *Store) set(l *lease, claim types.UID, text string) {
	l.size += len(text) - len(l.entries[claim])
	l.entries[claim] = text
	s.leaseOf[claim] = l
	delete(s.removed, claim)
}

func (s *Store) remove(l *lease, claim types.UID) {
	l.size -= len(l.entries[claim])
	delete(l.entries, claim)
	delete(s.leaseOf, claim)
	s.removed[claim] = l
}

// addWaiter schedules a write as soon as the interval allows, and returns its result.
func (s *Store) addWaiter(l *lease, claim types.UID, put bool) <-chan error {
	result := make(chan error, 1)
	l.waiters = append(l.waiters, waiter{claim: claim, put: put, result: result})
	due := time.Now()
	if earliest := s.lastCommit.Add(s.Interval); earliest.After(due) {
		due = earliest
	}
	s.schedule(l, due)
	return result
}

// schedule schedules a write of the Lease at the time or earlier.
func (s *Store) schedule(l *lease, due time.Time) {
	if l.due.IsZero() || due.Before(l.due) {
		l.due = due
	}
	select {
	case s.wake <- struct{}{}:
	default:
	}
}

func (s *Store) waitForResult(ctx context.Context, result <-chan error, format string, values ...any) error {
	var err error
	select {
	case err = <-result:
	case <-ctx.Done():
		err = ctx.Err()
	}
	if err != nil {
		return fmt.Errorf(format+": %w", append(values, err)...)
	}
	return nil
}

// Remove removes the entry of the claim, if any, with the next write. A refused removal is
// retried.
func (s *Store) Remove(claim types.UID) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if l := s.leaseOf[claim]; l != nil {
		s.remove(l, claim)
		s.schedule(l, time.Now().Add(s.RemovalDelay))
	}
}

// RemoveNow removes the entry of the claim, if any, and returns after the removal is durable.
// After an error the removal is retried, and the journal still has the entry.
func (s *Store) RemoveNow(ctx context.Context, claim types.UID) error {
	s.mu.Lock()
	leases := slices.DeleteFunc(slices.Clone(s.leases), func(l *lease) bool { return !s.mayHave(l, claim) })
	if l := s.leaseOf[claim]; l != nil {
		s.remove(l, claim)
	}
	if err := s.lostErr; err != nil && len(leases) > 0 {
		s.mu.Unlock()
		return err
	}
	var results []<-chan error
	for _, l := range leases {
		results = append(results, s.addWaiter(l, claim, false))
	}
	s.mu.Unlock()
	for _, result := range results {
		if err := s.waitForResult(ctx, result, "remove the journal entry of claim UID %s", claim); err != nil {
			return err
		}
	}
	return nil
}

// mayHave reports whether the stored Lease may have an entry of the claim. After a crash two
// Leases can have one.
func (s *Store) mayHave(l *lease, claim types.UID) bool {
	_, stored := l.durable[claim]
	return stored && !l.inherited || s.leaseOf[claim] == l || s.removed[claim] == l
}

// Has reports whether the Leases may have an entry of the claim: a removed entry counts until
// the removal is durable.
func (s *Store) Has(claim types.UID) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.ContainsFunc(s.leases, func(l *lease) bool { return s.mayHave(l, claim) })
}

// eventObject returns the object of events about the journal: the first active Lease.
func (s *Store) eventObject() *v1.ObjectReference {
	return &v1.ObjectReference{
		APIVersion: "coordination.k8s.io/v1", Kind: "Lease",
		Namespace: s.Journal.Namespace, Name: s.Journal.LeaseName(journal.KindActive, 0),
	}
}
