package journalstore

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/klog/v2"

	"github.com/exeunt-io/exeunt/internal/answer"
	"github.com/exeunt-io/exeunt/pkg/journal"
)

// Backoff between two writes of a Lease.
const (
	firstRetry = 100 * time.Millisecond
	lastRetry  = 5 * time.Second
)

// Run writes changes until the context ends.
func (s *Store) Run(ctx context.Context) {
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-s.wake:
		case <-timer.C:
		}
		for {
			l, wait := s.next()
			if l == nil {
				timer.Reset(wait)
				break
			}
			s.commit(ctx, l)
			if ctx.Err() != nil {
				return
			}
		}
	}
}

// Flush writes all pending changes.
func (s *Store) Flush(ctx context.Context) {
	for _, l := range s.changed() {
		s.commit(ctx, l)
	}
}

// Pending reports whether changes wait for the next write.
func (s *Store) Pending() bool { return len(s.changed()) > 0 }

// changed returns the Leases with changes that wait for the next write.
func (s *Store) changed() []*lease {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.DeleteFunc(slices.Clone(s.leases),
		func(l *lease) bool { return l.inherited || !l.isPending() && len(l.waiters) == 0 })
}

// never is the sleep of a writer without changes; a change wakes the writer.
const never = time.Hour

// next returns the Lease with the earliest due time if the write is due, or nil and the time
// until then.
func (s *Store) next() (*lease, time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	var first *lease
	for _, l := range s.leases {
		if !l.due.IsZero() && (first == nil || l.due.Before(first.due)) {
			first = l
		}
	}
	if first == nil || s.lostErr != nil {
		return nil, never
	}
	due := first.due
	if earliest := s.lastCommit.Add(s.Interval); due.Before(earliest) {
		due = earliest
	}
	if wait := time.Until(due); wait > 0 {
		return nil, wait
	}
	return first, 0
}

// commit writes the wanted entries of the Lease, and sends the result to the waiters.
func (s *Store) commit(ctx context.Context, l *lease) {
	s.writer <- struct{}{}
	s.mu.Lock()
	waiters, entries, err := l.waiters, maps.Clone(l.entries), s.lostErr
	l.waiters, l.due, l.writing = nil, time.Time{}, true
	s.lastCommit = time.Now()
	s.mu.Unlock()
	var refusals map[types.UID]error
	if err == nil {
		refusals, err = s.writeAccepted(ctx, l, entries)
	}
	s.mu.Lock()
	s.revert(l, entries, refusals)
	s.recordCommit(ctx, l, cmp.Or(err, refusedRemoval(entries, refusals)))
	for _, w := range waiters {
		w.result <- l.resultFor(w, refusals, err)
	}
	s.updateGauges()
	s.mu.Unlock()
	<-s.writer
	s.reportLost()
}

// resultFor returns the result of a write for a waiter. A removal is durable if the Lease
// never had the entry, even if the write was refused.
func (l *lease) resultFor(w waiter, refusals map[types.UID]error, err error) error {
	_, stored := l.durable[w.claim]
	refusal := refusals[w.claim]
	switch {
	case !w.put && !stored && l.unknown.IsZero() && answer.IsRefused(err):
		return nil
	case refusal != nil:
		return refusal
	}
	return err
}

// recordCommit records the end of a write, and schedules another write after an error. If an
// event during the write was unclear or newer than the write, it schedules a repair.
func (s *Store) recordCommit(ctx context.Context, l *lease, err error) {
	if l.unknown.IsZero() {
		maps.DeleteFunc(s.removed, func(claim types.UID, of *lease) bool {
			_, stored := l.durable[claim]
			return of == l && !stored
		})
	}
	edited := l.unsure || isOlder(l.version, l.seen)
	l.writing, l.unsure, l.seen = false, false, ""
	l.changed = l.changed || edited
	switch {
	case err != nil && l.isPending():
		s.scheduleRetry(ctx, l, err)
		return
	case edited:
		s.scheduleRepair(l)
	}
	l.failures = 0
}

// isPending reports whether the stored Lease may differ from the wanted entries.
func (l *lease) isPending() bool {
	return l.changed || !l.unknown.IsZero() || !maps.Equal(l.entries, l.durable)
}

// scheduleRetry schedules another write with backoff.
func (s *Store) scheduleRetry(ctx context.Context, l *lease, err error) {
	l.failures++
	wait := min(firstRetry<<min(l.failures, 10), lastRetry)
	s.schedule(l, time.Now().Add(wait))
	klog.FromContext(ctx).Error(err, "Writing the provisioning journal failed, and is retried", "lease",
		s.Journal.LeaseName(journal.KindActive, l.number), "wait", wait)
}

// maxTries is the number of tries of one write after conflicts.
const maxTries = 5

// write creates or updates the Lease. It overwrites changes by users, but not a Lease that
// another process has taken over.
func (s *Store) write(ctx context.Context, l *lease, entries map[types.UID]string) error {
	ctx, stop := context.WithTimeout(ctx, commitTimeout)
	defer stop()
	var err error
	for range maxTries {
		if err = s.put(ctx, l, entries); err == nil {
			return nil
		}
		if !apierrors.IsConflict(err) && !apierrors.IsNotFound(err) && !apierrors.IsAlreadyExists(err) {
			return err
		}
		s.mu.Lock()
		l.changed = true
		s.mu.Unlock()
		if _, err := s.reread(ctx, l); err != nil {
			return err
		}
	}
	return err
}

func (s *Store) put(ctx context.Context, l *lease, entries map[types.UID]string) error {
	object := s.Journal.Lease(journal.KindActive, l.number, s.Holder, s.currentCustody(), entries)
	if l.unanswered > 0 {
		object.Annotations[journal.UnansweredAnnotation] = strconv.Itoa(l.unanswered)
	}
	if s.Off {
		object.Annotations[journal.OffAnnotation] = "true"
	}
	var now *coordinationv1.Lease
	var err error
	if object.ResourceVersion = l.version; l.version == "" {
		now, err = s.Client.CoordinationV1().Leases(object.Namespace).Create(ctx, object, metav1.CreateOptions{})
	} else {
		now, err = s.Client.CoordinationV1().Leases(object.Namespace).Update(ctx, object, metav1.UpdateOptions{})
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if err != nil {
		if !answer.IsDefinite(err) {
			l.unknown = time.Now()
			l.unanswered++
			l.try(entries)
		}
		return err
	}
	l.version, s.forbiddenSince = now.ResourceVersion, time.Time{}
	s.Metrics.countCommit(entries)
	if err := s.checkStored(now, object); err != nil {
		l.try(entries)
		l.changed, l.unknown = true, time.Now()
		return err
	}
	l.durable, l.changed, l.unknown, l.tried = maps.Clone(entries), false, time.Time{}, nil
	return nil
}

// try notes entries that may be stored.
func (l *lease) try(entries map[types.UID]string) {
	if l.tried == nil {
		l.tried = map[types.UID]bool{}
	}
	for claim := range entries {
		l.tried[claim] = true
	}
}

// checkStored returns an error if the response to a successful write is not what was written, or shows a Lease
// that is being deleted. The next leader relies on holder, term and owner as well.
func (s *Store) checkStored(now, written *coordinationv1.Lease) error {
	_, _, ours := s.Journal.KindOf(now)
	switch {
	case now.DeletionTimestamp != nil: // the write removed the finalizers: the Lease is gone
		return apierrors.NewConflict(coordinationv1.Resource("leases"), now.Name, errors.New("it is being deleted"))
	case !maps.Equal(journal.Encoded(now), journal.Encoded(written)):
		return fmt.Errorf("lease %s/%s: its entries were changed on admission", now.Namespace, now.Name)
	case !ours || journal.HolderOf(now) != journal.HolderOf(written) ||
		now.Annotations[journal.CustodyAnnotation] != written.Annotations[journal.CustodyAnnotation]:
		return fmt.Errorf("lease %s/%s: its holder, term or owner was changed on admission", now.Namespace, now.Name)
	}
	return nil
}

// wentBack reports whether the stored Lease is from before the last write of this process: it has an older version, or an
// entry that this process does not know, as after a restore of etcd with a raised revision, or after an edit. What
// this process remembers is of no use then, and an unknown entry may be all that is known of a disk.
func (l *lease) wentBack(stored *coordinationv1.Lease) bool {
	if isOlder(stored.ResourceVersion, l.version) {
		return true
	}
	for claim := range journal.Encoded(stored) {
		_, wanted := l.entries[claim]
		if _, durable := l.durable[claim]; !wanted && !durable && !l.tried[claim] {
			return true
		}
	}
	return false
}

// currentCustody returns the custody for a write at this time.
func (s *Store) currentCustody() journal.Custody {
	custody := s.Custody
	if custody.LeaderLease == "" {
		custody.Written = s.Now().Unix()
	}
	return custody
}

// reread reads the Lease, and records its version. It returns nil if the Lease does not exist.
func (s *Store) reread(ctx context.Context, l *lease) (*coordinationv1.Lease, error) {
	name := s.Journal.LeaseName(journal.KindActive, l.number)
	object, exists, err := answer.Get(ctx, name, s.Client.CoordinationV1().Leases(s.Journal.Namespace).Get)
	if err != nil {
		return nil, fmt.Errorf("read lease %s/%s: %w", s.Journal.Namespace, name, err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case !exists:
		l.version = ""
	case l.version == "" && s.isUnread(object):
		l.number = s.freeNumber()
		s.numbers[l.number] = true
	case journal.HolderOf(object) != s.Holder && journal.HolderOf(object) != "":
		return nil, s.endJournal(fmt.Errorf("lease %s/%s is held by %s: %w", s.Journal.Namespace, name,
			journal.HolderOf(object), ErrLost))
	case !l.inherited && l.wentBack(object):
		return nil, s.endJournal(fmt.Errorf("lease %s/%s is older than the last write of this process, or has an entry of another writer: %w", s.Journal.Namespace, name, ErrLost))
	default:
		l.version = object.ResourceVersion
		return object, nil
	}
	return nil, nil
}

// isUnread reports whether a Lease may have entries that this process has not read: a Lease
// of another owner, without a holder, or of an earlier term. A restarted pod keeps its holder
// name, so the term counts. The next TakeOver reads the Lease.
func (s *Store) isUnread(object *coordinationv1.Lease) bool {
	_, _, ours := s.Journal.KindOf(object)
	return !ours || journal.HolderOf(object) == "" || custodyOf(object).Precedes(s.currentCustody())
}

func custodyOf(object *coordinationv1.Lease) journal.Custody {
	return journal.ParseCustody(object.Annotations[journal.CustodyAnnotation])
}

// endJournal ends the journal and sends the error to all waiters. The caller holds the lock.
func (s *Store) endJournal(err error) error {
	if s.lostErr == nil {
		s.lostErr = err
	}
	for _, l := range s.leases {
		for _, w := range l.waiters {
			w.result <- s.lostErr
		}
		l.waiters = nil
	}
	return err
}

// reportLost calls Lost once. The caller does not hold the lock.
func (s *Store) reportLost() {
	s.mu.Lock()
	lost, first := s.lostErr, s.lostErr != nil && !s.reported
	s.reported = s.reported || first
	s.mu.Unlock()
	if first && s.Lost != nil {
		s.Lost(lost)
	}
}
