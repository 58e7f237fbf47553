package journal

import (
	"context"
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
		if l.wanted > l.committed {
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

// next returns a Lease to write now, or nil and how long there is none.
func (s *Store) next() (*lease, time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	wait, now := never, time.Now()
	if s.lost != nil {
		return nil, never
	}
	for _, l := range s.leases {
		if l.due.IsZero() {
			continue
		}
		left := l.due.Sub(now)
		if left <= 0 {
			l.due = time.Time{}
			return l, 0
		}
		wait = min(wait, left)
	}
	return nil, wait
}

// commit writes the Lease as it shall be now, and tells those who wait for it.
func (s *Store) commit(ctx context.Context, l *lease) {
	s.mu.Lock()
	change, waiters, entries := l.wanted, l.waiters, maps.Clone(l.entries)
	l.waiters, l.writing = nil, true
	s.lastCommit = time.Now()
	s.mu.Unlock()
	err := s.write(ctx, l, entries)
	if refused(err) && len(waiters) > 1 {
		s.split(ctx, l, waiters)
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	l.writing = false
	if err == nil {
		l.failures, l.committed = 0, change
		s.forgetRemoved(l, change)
	} else {
		s.retry(ctx, l, waiters, err)
	}
	for _, w := range waiters {
		w.result <- err
	}
	s.count()
}

// forgetRemoved drops the notes of removals that are durable.
func (s *Store) forgetRemoved(l *lease, change int) {
	if change != l.wanted {
		return // some are newer than the write
	}
	maps.DeleteFunc(s.removed, func(_ types.UID, where *lease) bool { return where == l })
}

// retry plans another try. An entry that was refused by itself is given up: no call
// was made for it.
func (s *Store) retry(ctx context.Context, l *lease, waiters []waiter, err error) {
	if refused(err) {
		for _, w := range waiters {
			if w.put && s.where[w.claim] == l {
				s.remove(l, w.claim)
			}
		}
	}
	l.failures++
	wait := min(firstRetry<<min(l.failures, 10), lastRetry)
	s.plan(l, time.Now().Add(wait))
	klog.FromContext(ctx).Error(err, "Writing the provisioning journal failed, trying again", "lease", s.Journal.LeaseName(journal.Active, l.number), "wait", wait)
}

// split writes the entries that are waited for one by one, after the API server has
// refused all of them together.
func (s *Store) split(ctx context.Context, l *lease, waiters []waiter) {
	s.mu.Lock()
	later := map[types.UID]string{}
	for _, w := range waiters {
		if text, has := l.entries[w.claim]; w.put && has {
			later[w.claim] = text
			s.remove(l, w.claim)
		}
	}
	s.mu.Unlock()
	for _, w := range waiters {
		s.mu.Lock()
		if text, has := later[w.claim]; has {
			s.set(l, w.claim, text)
		}
		w.change = l.wanted
		l.waiters = append(l.waiters, w)
		s.mu.Unlock()
		s.commit(ctx, l)
	}
}

// refused reports whether the content of a write is the reason why it failed.
func refused(err error) bool {
	return apierrors.IsInvalid(err) || apierrors.IsRequestEntityTooLargeError(err) || apierrors.IsBadRequest(err)
}

// tries is how often one write is repeated after a conflict.
const tries = 5

// write creates or updates the Lease. Whoever else has edited or deleted it is
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
	object := s.Journal.Lease(journal.Active, l.number, s.Holder, s.term(), entries)
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

// reread learns the version of a Lease that somebody else has written.
func (s *Store) reread(ctx context.Context, l *lease) error {
	name := s.Journal.LeaseName(journal.Active, l.number)
	object, err := s.Client.CoordinationV1().Leases(s.Journal.Namespace).Get(ctx, name, metav1.GetOptions{})
	version := ""
	switch {
	case apierrors.IsNotFound(err):
	case err != nil:
		return fmt.Errorf("read lease %s/%s: %w", s.Journal.Namespace, name, err)
	case journal.HolderOf(object) != s.Holder && journal.HolderOf(object) != "":
		return s.lose(fmt.Errorf("lease %s/%s is held by %s: %w", s.Journal.Namespace, name, journal.HolderOf(object), ErrLost))
	default:
		version = object.ResourceVersion
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	l.version = version
	return nil
}

// lose ends the journal.
func (s *Store) lose(err error) error {
	s.mu.Lock()
	first := s.lost == nil
	s.lost = err
	s.mu.Unlock()
	if first && s.Lost != nil {
		s.Lost(err)
	}
	return err
}
