package journal

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/klog/v2"

	"github.com/exeunt-io/exeunt/pkg/journal"
)

// Waits between two tries to write a Lease.
const (
	firstRetry = 100 * time.Millisecond
	lastRetry  = 5 * time.Second
)

// Run writes what changes until the context ends.
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

// Flush writes every change that is not durable yet.
func (s *Store) Flush(ctx context.Context) {
	s.mu.Lock()
	var changed []*lease
	for _, l := range s.leases {
		if l.wanted > l.committed || len(l.waiters) > 0 {
			changed = append(changed, l)
		}
	}
	s.mu.Unlock()
	for _, l := range changed {
		s.commit(ctx, l)
	}
}

// never is how long the writer sleeps if nothing changed; a change wakes it.
const never = time.Hour

// next returns the Lease with the earliest due time if that has come, or nil and the
// time until then.
func (s *Store) next() (*lease, time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	var first *lease
	for _, l := range s.leases {
		if !l.due.IsZero() && (first == nil || l.due.Before(first.due)) {
			first = l
		}
	}
	if first == nil || s.lost != nil {
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

// commit writes the Lease as it shall be now, and answers those who wait for it.
func (s *Store) commit(ctx context.Context, l *lease) {
	s.writer <- struct{}{}
	s.mu.Lock()
	change, waiters, entries, err := l.wanted, l.waiters, maps.Clone(l.entries), s.lost
	l.waiters, l.due, l.writing = nil, time.Time{}, true
	s.lastCommit = time.Now()
	s.mu.Unlock()
	var refusals map[types.UID]error
	written := entries
	if err == nil {
		written, refusals, err = s.writeAccepted(ctx, l, entries)
	}
	s.mu.Lock()
	s.revert(l, entries, refusals)
	if err == nil {
		s.committed(l, change, written)
	} else {
		s.retry(ctx, l, err)
	}
	for _, w := range waiters {
		w.result <- w.outcome(refusals, err)
	}
	s.count()
	s.mu.Unlock()
	<-s.writer
	s.reportLost()
}

func (w waiter) outcome(refusals map[types.UID]error, err error) error {
	if refusal := refusals[w.claim]; w.put && refusal != nil {
		return refusal
	}
	return err
}

// committed notes a write. Another writer may have changed the Lease since.
func (s *Store) committed(l *lease, change int, written map[types.UID]string) {
	l.writing, l.failures, l.durable, l.committed = false, 0, written, max(l.committed, change)
	maps.DeleteFunc(s.removed, func(_ types.UID, r removal) bool { return r.lease == l && r.change <= l.committed })
	if l.unsure || l.seen != "" && older(l.version, l.seen) {
		s.repair(l)
	}
	l.unsure, l.seen = false, ""
}

// retry plans another try.
func (s *Store) retry(ctx context.Context, l *lease, err error) {
	l.writing, l.unsure, l.seen = false, false, ""
	l.failures++
	wait := min(firstRetry<<min(l.failures, 10), lastRetry)
	s.plan(l, time.Now().Add(wait))
	klog.FromContext(ctx).Error(err, "Writing the provisioning journal failed, trying again", "lease", s.Journal.LeaseName(journal.KindActive, l.number), "wait", wait)
}

// revert drops changes that were refused even in a write of their own: durable entries
// stay. No call was made for the dropped ones.
func (s *Store) revert(l *lease, tried map[types.UID]string, refusals map[types.UID]error) {
	for claim := range refusals {
		if l.entries[claim] != tried[claim] {
			continue // changed again
		}
		text, durable := l.durable[claim]
		l.size += len(text) - len(l.entries[claim])
		if l.entries[claim] = text; !durable {
			delete(l.entries, claim)
			delete(s.where, claim)
		}
	}
}

// writeAccepted writes the entries. If the API server refuses them, it writes those
// changes one by one that it accepts, and returns the entries that are durable then,
// and why others are not. No entry that was durable is missing meanwhile.
func (s *Store) writeAccepted(ctx context.Context, l *lease, entries map[types.UID]string) (map[types.UID]string, map[types.UID]error, error) {
	err := s.write(ctx, l, entries)
	if !refused(err) {
		return entries, nil, err
	}
	accepted, refusals, changed := maps.Clone(entries), map[types.UID]error{}, []types.UID{}
	for claim, text := range entries {
		before, durable := l.durable[claim]
		if text == before {
			continue
		}
		changed = append(changed, claim)
		if accepted[claim] = before; !durable {
			delete(accepted, claim)
		}
	}
	if err := s.write(ctx, l, accepted); err != nil {
		return nil, nil, err
	}
	if len(changed) == 1 {
		return accepted, map[types.UID]error{changed[0]: err}, nil
	}
	for _, claim := range changed {
		candidate := maps.Clone(accepted)
		candidate[claim] = entries[claim]
		err := s.write(ctx, l, candidate)
		switch {
		case err == nil:
			accepted = candidate
		case refused(err):
			refusals[claim] = err
		default: // this change and the rest are retried
			return nil, refusals, err
		}
	}
	return accepted, refusals, nil
}

// refused reports whether the content of a write is the reason why it failed.
func refused(err error) bool {
	return apierrors.IsInvalid(err) || apierrors.IsRequestEntityTooLargeError(err) || apierrors.IsBadRequest(err)
}

// tries is how often one write is repeated after a conflict.
const tries = 5

// write creates or updates the Lease. A user who has edited or deleted the Lease is
// overruled, unless it is another process that has taken over.
func (s *Store) write(ctx context.Context, l *lease, entries map[types.UID]string) error {
	ctx, stop := context.WithTimeout(ctx, commitTimeout)
	defer stop()
	var err error
	for range tries {
		if err = s.put(ctx, l, entries); err == nil {
			return nil
		}
		if !apierrors.IsConflict(err) && !apierrors.IsNotFound(err) && !apierrors.IsAlreadyExists(err) {
			return err
		}
		if err := s.reread(ctx, l); err != nil {
			return err
		}
	}
	return err
}

func (s *Store) put(ctx context.Context, l *lease, entries map[types.UID]string) error {
	object := s.Journal.Lease(journal.KindActive, l.number, s.Holder, s.term(), entries)
	var now *coordinationv1.Lease
	var err error
	if object.ResourceVersion = l.version; l.version == "" {
		now, err = s.Client.CoordinationV1().Leases(object.Namespace).Create(ctx, object, metav1.CreateOptions{})
	} else {
		now, err = s.Client.CoordinationV1().Leases(object.Namespace).Update(ctx, object, metav1.UpdateOptions{})
	}
	if err != nil {
		return err
	}
	s.mu.Lock()
	l.version = now.ResourceVersion
	s.mu.Unlock()
	s.Metrics.committed(entries)
	return stored(now, entries)
}

// stored returns an error if the API server has taken a write, and yet the entries
// are not stored.
func stored(now *coordinationv1.Lease, entries map[types.UID]string) error {
	switch {
	case now.DeletionTimestamp != nil: // the write took its finalizers, so it is gone
		return apierrors.NewConflict(coordinationv1.Resource("leases"), now.Name, errors.New("it is being deleted"))
	case !maps.Equal(journal.Encoded(now), entries):
		return fmt.Errorf("lease %s/%s: its entries were changed on admission", now.Namespace, now.Name)
	}
	return nil
}

// term is the custody that is written now.
func (s *Store) term() journal.Custody {
	custody := s.Custody
	if custody.LeaderLease == "" {
		custody.Written = time.Now().Unix()
	}
	return custody
}

// reread reads the version of a Lease that another writer has written.
func (s *Store) reread(ctx context.Context, l *lease) error {
	name := s.Journal.LeaseName(journal.KindActive, l.number)
	object, err := s.Client.CoordinationV1().Leases(s.Journal.Namespace).Get(ctx, name, metav1.GetOptions{})
	missing := apierrors.IsNotFound(err)
	if err != nil && !missing {
		return fmt.Errorf("read lease %s/%s: %w", s.Journal.Namespace, name, err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case missing:
		l.version = ""
	case l.version == "" && s.unread(object):
		l.number = s.freeNumber()
		s.numbers[l.number] = true
	case journal.HolderOf(object) != s.Holder && journal.HolderOf(object) != "":
		return s.lose(fmt.Errorf("lease %s/%s is held by %s: %w", s.Journal.Namespace, name, journal.HolderOf(object), ErrLost))
	default:
		l.version = object.ResourceVersion
	}
	return nil
}

// unread reports whether a Lease that this process did not create may have entries
// that are not known: it is not of this journal, nobody says who wrote it, or an
// earlier leader did. The next TakeOver reads it.
func (s *Store) unread(object *coordinationv1.Lease) bool {
	_, _, ours := s.Journal.KindOf(object)
	return !ours || journal.HolderOf(object) == "" || journal.HolderOf(object) != s.Holder && custodyOf(object).Precedes(s.term())
}

func custodyOf(object *coordinationv1.Lease) journal.Custody {
	return journal.ParseCustody(object.Annotations[journal.CustodyAnnotation])
}

// lose ends the journal and answers everybody who waits. The caller has the lock.
func (s *Store) lose(err error) error {
	if s.lost == nil {
		s.lost = err
	}
	for _, l := range s.leases {
		for _, w := range l.waiters {
			w.result <- s.lost
		}
		l.waiters = nil
	}
	return err
}

// reportLost calls Lost once. The caller has no lock.
func (s *Store) reportLost() {
	s.mu.Lock()
	lost, first := s.lost, s.lost != nil && !s.reported
	s.reported = s.reported || first
	s.mu.Unlock()
	if first && s.Lost != nil {
		s.Lost(lost)
	}
}
