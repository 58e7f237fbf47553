package journal

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/record"

	"github.com/exeunt-io/exeunt/pkg/journal"
)

// ErrLost: another process writes the journal, so this one must not call the driver.
var ErrLost = errors.New("another process has taken over the provisioning journal")

// Limits of the journal's Leases.
const (
	// budget is the greatest size of the entries of one active Lease, in bytes. A Lease
	// is written whole, so small Leases are cheap to change.
	budget = 48 << 10
	// unresolvedBudget is the same for unresolved entries, which seldom change. The API
	// server allows 256 KiB of annotations.
	unresolvedBudget = 200 << 10
	// commitTimeout bounds one write of a Lease.
	commitTimeout = 10 * time.Second
)

// Config is what the journal is written with.
type Config struct {
	Client  kubernetes.Interface
	Journal journal.Journal
	// Holder names this process. It ends in "_exeunt", so that no other program's
	// name equals it.
	Holder string
	// Custody is the current term.
	Custody journal.Custody
	// Interval is the least time between two writes; RemovalDelay is how long a removal
	// waits for other changes.
	Interval, RemovalDelay time.Duration
	// ForbiddenFor is how long the right to write Leases must be missing until claims are
	// served without the journal.
	ForbiddenFor time.Duration
	// Off: no entry is going to be written, so that no Lease is created. Those that exist
	// are taken over.
	Off bool
	// Recorder emits the events about the journal itself; it may be nil.
	Recorder record.EventRecorder
	Metrics  *Metrics
	// Lost is called once if another process takes over the journal.
	Lost func(error)
}

// Store is the journal of one driver, or of one driver on one node.
type Store struct {
	Config
	wake chan struct{}
	// writer is full while an active Lease is written, unresolvedWriter while an unresolved
	// one is.
	writer, unresolvedWriter chan struct{}

	mu     sync.Mutex
	leases []*lease
	// numbers of the active Leases that exist.
	numbers map[int]bool
	// where has the Lease of each entry; removed are those of removals that are not
	// durable; inherited the entries that TakeOver has not returned yet.
	where      map[types.UID]*lease
	removed    map[types.UID]removal
	inherited  []journal.Entry
	unresolved map[string]unresolvedLease
	approved   func(journal.Entry)
	lost       error
	reported   bool
	lastCommit time.Time
	// forbiddenSince is since when the right to write Leases is missing, zero if it is not.
	forbiddenSince time.Time
}

// lease is one active Lease.
type lease struct {
	number int
	// version is its resourceVersion, "" if it does not exist.
	version string
	// entries are the wanted entries, durable those that were written last.
	entries, durable map[types.UID]string
	size             int
	// wanted counts changes, committed is how many of them are durable.
	wanted, committed int
	// due is when the next write shall begin, zero if nothing changed.
	due      time.Time
	failures int
	// inherited: the Lease is being taken over.
	inherited bool
	// writing: a write is under way; seen is the latest version that was watched
	// meanwhile, unsure is set if its order is unknown.
	writing, unsure bool
	seen            string
	// repairs counts writes that undo changes of other writers, since repaired.
	repairs  int
	repaired time.Time
	waiters  []waiter
}

// removal is an entry whose removal is durable with the change.
type removal struct {
	lease  *lease
	change int
}

// waiter waits for a change of the claim's entry to be durable.
type waiter struct {
	claim  types.UID
	put    bool
	result chan error
}

// New returns a journal that is not read yet.
func New(config Config) *Store {
	if config.Metrics == nil {
		config.Metrics = NewMetrics()
	}
	return &Store{
		Config: config, wake: make(chan struct{}, 1), writer: make(chan struct{}, 1), unresolvedWriter: make(chan struct{}, 1),
		where: map[types.UID]*lease{}, removed: map[types.UID]removal{}, unresolved: map[string]unresolvedLease{}, numbers: map[int]bool{},
	}
}

// Write makes the entry durable. Its errors are [ErrLost], [journal.ErrTooLarge] or
// those of the API server. If the outcome is unknown, the journal goes on trying:
// call Write with the same entry again, or Remove.
func (s *Store) Write(ctx context.Context, entry journal.Entry) error {
	text, err := journal.Encode(entry)
	if err != nil {
		return err
	}
	s.mu.Lock()
	if err := s.lost; err != nil {
		s.mu.Unlock()
		return err
	}
	l := s.leaseFor(entry.UID, len(text))
	s.set(l, entry.UID, text)
	result := s.await(l, entry.UID, true)
	s.mu.Unlock()
	return s.outcome(ctx, result, "write the journal entry of claim %s/%s", entry.Namespace, entry.Name)
}

// leaseFor returns the Lease that the entry is in, or one with enough space for it.
func (s *Store) leaseFor(claim types.UID, size int) *lease {
	if l := s.where[claim]; l != nil {
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
	l := &lease{number: number, entries: map[types.UID]string{}}
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
	s.where[claim] = l
	delete(s.removed, claim)
	l.wanted++
}

func (s *Store) remove(l *lease, claim types.UID) {
	l.size -= len(l.entries[claim])
	delete(l.entries, claim)
	delete(s.where, claim)
	l.wanted++
	s.removed[claim] = removal{lease: l, change: l.wanted}
}

// await has the Lease written as soon as the interval allows.
func (s *Store) await(l *lease, claim types.UID, put bool) <-chan error {
	result := make(chan error, 1)
	l.waiters = append(l.waiters, waiter{claim: claim, put: put, result: result})
	due := time.Now()
	if earliest := s.lastCommit.Add(s.Interval); earliest.After(due) {
		due = earliest
	}
	s.plan(l, due)
	return result
}

// plan has the Lease written at the time, or earlier.
func (s *Store) plan(l *lease, due time.Time) {
	if l.due.IsZero() || due.Before(l.due) {
		l.due = due
	}
	select {
	case s.wake <- struct{}{}:
	default:
	}
}

func (s *Store) outcome(ctx context.Context, result <-chan error, format string, values ...any) error {
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

// Remove removes the entry of the claim soon, if there is one.
func (s *Store) Remove(claim types.UID) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if l := s.where[claim]; l != nil {
		s.remove(l, claim)
		s.plan(l, time.Now().Add(s.RemovalDelay))
	}
}

// RemoveNow removes the entry of the claim before it returns, if there is one or its
// removal is not durable yet.
func (s *Store) RemoveNow(ctx context.Context, claim types.UID) error {
	s.mu.Lock()
	l := s.where[claim]
	if l != nil {
		s.remove(l, claim)
	} else if l = s.removed[claim].lease; l == nil {
		s.mu.Unlock()
		return nil
	}
	if err := s.lost; err != nil {
		s.mu.Unlock()
		return err
	}
	result := s.await(l, claim, false)
	s.mu.Unlock()
	return s.outcome(ctx, result, "remove the journal entry of claim UID %s", claim)
}

// Has reports whether the journal has an entry of the claim, or one whose removal is
// not durable yet.
func (s *Store) Has(claim types.UID) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.where[claim] != nil || s.removed[claim].lease != nil
}

// eventObject is what events about the journal are attached to.
func (s *Store) eventObject() *v1.ObjectReference {
	return &v1.ObjectReference{
		APIVersion: "coordination.k8s.io/v1", Kind: "Lease",
		Namespace: s.Journal.Namespace, Name: s.Journal.LeaseName(journal.KindActive, 0),
	}
}
