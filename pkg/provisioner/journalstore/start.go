package journalstore

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	authorizationv1 "k8s.io/api/authorization/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/klog/v2"
	"k8s.io/utils/ptr"

	"github.com/exeunt-io/exeunt/internal/answer"
	"github.com/exeunt-io/exeunt/pkg/journal"
)

// ErrForbidden: this process has no permission to write Leases in its namespace.
var ErrForbidden = errors.New("no right to write Leases for the provisioning journal")

// verbs are the verbs that the journal needs for Leases.
var verbs = []string{"list", "get", "create", "update"}

// Start takes over the journal and returns the entries of earlier processes. It retries until
// the context ends, or returns [ErrForbidden] if the permission is missing for ForbiddenFor.
func (s *Store) Start(ctx context.Context) ([]journal.Entry, error) {
	for wait := firstRetry; ; wait = min(2*wait, lastRetry) {
		entries, err := s.TakeOver(ctx)
		if err == nil && !s.Off {
			if err = s.createFirst(ctx); s.isRefusedLease(ctx, err) {
				klog.FromContext(ctx).Error(err,
					"A first lease of the provisioning journal is refused; the write of each entry is tried")
				return entries, nil
			}
		}
		if err == nil || errors.Is(err, ErrLost) || ctx.Err() != nil {
			return entries, err
		}
		if s.Forbidden(ctx, err) {
			return nil, ErrForbidden
		}
		klog.FromContext(ctx).Error(err, "Reading the provisioning journal failed, and is retried", "wait", wait)
		select {
		case <-time.After(wait):
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

// createFirst creates and updates a first Lease, to find a missing permission before the
// first claim.
func (s *Store) createFirst(ctx context.Context) error {
	s.mu.Lock()
	if len(s.leases) > 0 {
		s.mu.Unlock()
		return nil
	}
	l := s.addLease(s.freeNumber())
	l.inherited = true
	s.mu.Unlock()
	for range 2 { // create and update are separate permissions
		if err := s.write(ctx, l, l.entries); err != nil {
			s.dropLease(l)
			return err
		}
	}
	s.addEntries(l, l.entries, nil)
	return nil
}

// isRefusedLease reports whether the first Lease is refused by a quota or an admission plugin. Then the
// claims whose entries are refused say so, and volumes are deleted. A missing right ends the journal instead.
func (s *Store) isRefusedLease(ctx context.Context, err error) bool {
	return answer.IsRefused(err) && (!apierrors.IsForbidden(err) || !s.isForbidden(ctx))
}

// Forbidden reports whether a request failed because the permission to write Leases has been
// missing for ForbiddenFor, and emits an event then.
func (s *Store) Forbidden(ctx context.Context, err error) bool {
	forbidden := apierrors.IsForbidden(err) && s.isForbidden(ctx)
	s.mu.Lock()
	switch {
	case !forbidden:
		s.forbiddenSince = time.Time{}
	case s.forbiddenSince.IsZero():
		s.forbiddenSince = time.Now()
	}
	lasting := forbidden && time.Since(s.forbiddenSince) >= s.ForbiddenFor
	s.mu.Unlock()
	if lasting {
		s.warn("JournalForbidden", fmt.Sprintf(
			"The provisioner of %s may not write Leases in namespace %s: volumes are created without a journal, and one that is being created when the provisioner ends may be left behind", s.Journal.Driver, s.Journal.Namespace))
	}
	return lasting
}

// isForbidden asks the API server whether a permission is missing. A request can also be
// forbidden by a quota or an admission plugin. Without the right to ask, the permission counts as missing.
func (s *Store) isForbidden(ctx context.Context) bool {
	for _, verb := range verbs {
		review := &authorizationv1.SelfSubjectAccessReview{Spec: authorizationv1.SelfSubjectAccessReviewSpec{
			ResourceAttributes: &authorizationv1.ResourceAttributes{Group: "coordination.k8s.io", Resource: "leases",
				Namespace: s.Journal.Namespace, Verb: verb},
		}}
		answer, err := s.Client.AuthorizationV1().SelfSubjectAccessReviews().Create(ctx, review, metav1.CreateOptions{})
		if apierrors.IsForbidden(err) || err == nil && !answer.Status.Allowed {
			return true
		}
	}
	return false
}

func (s *Store) warn(reason, message string) {
	if s.Recorder != nil {
		s.Recorder.Event(s.eventObject(), v1.EventTypeWarning, reason, message)
	}
}

// TakeOver reads the new Leases of the journal, writes this process's holder and term into
// each, and returns the entries. The same write sets CustodyBroken where another program
// led in between, so that the fact survives a crash. After an error, the next call also
// returns the entries of the failed call. A former leader gets [ErrLost].
func (s *Store) TakeOver(ctx context.Context) ([]journal.Entry, error) {
	list, err := s.listLeases(ctx)
	if err != nil {
		return nil, fmt.Errorf("list leases in namespace %s: %w", s.Journal.Namespace, err)
	}
	for i := range list.Items {
		kind, number, ours := s.Journal.KindOf(&list.Items[i])
		switch {
		case ours && kind == journal.KindUnresolved:
			s.recordUnresolved(&list.Items[i], false)
		case ours:
			if err := s.takeOver(ctx, &list.Items[i], number); err != nil {
				return nil, err
			}
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	inherited := s.inherited
	s.inherited = nil
	return inherited, nil
}

// reserveLease adds a Lease with the number; nil if the number is in use.
func (s *Store) reserveLease(number int) *lease {
	s.mu.Lock()
	defer s.mu.Unlock()
	if slices.ContainsFunc(s.leases, func(l *lease) bool { return l.number == number }) {
		return nil
	}
	l := s.addLease(number)
	l.inherited = true
	return l
}

// takeOver writes this process's holder into a Lease. After a conflict with the earlier
// writer, it reads the Lease again. A deleted Lease is created again.
func (s *Store) takeOver(ctx context.Context, object *coordinationv1.Lease, number int) (err error) {
	l := s.reserveLease(number)
	if l == nil {
		return nil
	}
	defer func() {
		if err != nil {
			s.dropLease(l)
		}
	}()
	for range maxTries {
		if err = s.checkTerm(ctx, object); err != nil {
			return err
		}
		texts, inherited, unreadable := s.inherit(object)
		l.version = object.ResourceVersion
		err = s.put(ctx, l, texts)
		if err == nil {
			s.addEntries(l, texts, inherited)
			s.warnUnreadable(l, unreadable)
			return nil
		}
		if !apierrors.IsConflict(err) && !apierrors.IsAlreadyExists(err) && !apierrors.IsNotFound(err) {
			return fmt.Errorf("take over lease %s/%s: %w", object.Namespace, object.Name, err)
		}
		if object, err = s.readAgain(ctx, object); err != nil {
			return err
		}
	}
	return fmt.Errorf("take over lease %s/%s: another process keeps writing it", object.Namespace, object.Name)
}

// readAgain returns the Lease as it is now. If the Lease is gone, it returns the Lease as it was, without a version: it is
// created again.
func (s *Store) readAgain(ctx context.Context, object *coordinationv1.Lease) (*coordinationv1.Lease, error) {
	again, exists, err := answer.Get(ctx, object.Name, s.Client.CoordinationV1().Leases(object.Namespace).Get)
	switch {
	case err != nil:
		return nil, fmt.Errorf("read a lease of the journal again: %w", err)
	case exists:
		return again, nil
	}
	gone := object.DeepCopy()
	gone.ResourceVersion = ""
	return gone, nil
}

// checkTerm returns [ErrLost] if the Lease was written in a later term: this process is a former
// leader. The leader Lease is read after the Lease. If the leader Lease has the term of this process,
// no later leader exists, and the recorded term is one that an editor or a restored etcd left behind.
func (s *Store) checkTerm(ctx context.Context, object *coordinationv1.Lease) error {
	if !s.Custody.Precedes(custodyOf(object)) {
		return nil
	}
	list, err := s.listLeases(ctx)
	if err != nil {
		return fmt.Errorf("read the leader lease in namespace %s: %w", s.Journal.Namespace, err)
	}
	for _, lease := range list.Items {
		if lease.UID == s.Custody.LeaderLease && ptr.Deref(lease.Spec.LeaseTransitions, 0) == s.Custody.Transitions {
			return nil
		}
	}
	s.mu.Lock()
	err = s.endJournal(fmt.Errorf("lease %s/%s is held by %s: %w", object.Namespace, object.Name, journal.HolderOf(object),
		ErrLost))
	s.mu.Unlock()
	s.reportLost()
	return err
}

// dropLease drops a Lease after a failed take-over.
func (s *Store) dropLease(l *lease) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.leases = slices.DeleteFunc(s.leases, func(other *lease) bool { return other == l })
	delete(s.numbers, l.number)
}

// addEntries adds the entries of a taken-over Lease. Of two entries of one claim it keeps
// the requested one: a repeated request finds a volume that the other entry discards.
func (s *Store) addEntries(l *lease, texts map[types.UID]string, inherited []journal.Entry) {
	s.mu.Lock()
	defer s.mu.Unlock()
	l.durable, l.inherited = maps.Clone(texts), false
	requested := map[types.UID]bool{}
	for _, entry := range inherited {
		requested[entry.UID] = entry.State == journal.Requested
	}
	var duplicates []types.UID
	for claim, text := range texts {
		known := s.leaseOf[claim]
		if known != nil && (!requested[claim] || !isDiscarding(claim, known.entries[claim])) {
			duplicates = append(duplicates, claim)
			s.schedule(l, time.Now().Add(s.RemovalDelay))
			continue
		}
		if known != nil {
			s.remove(known, claim)
			s.schedule(known, time.Now().Add(s.RemovalDelay))
			s.inherited = slices.DeleteFunc(s.inherited, func(e journal.Entry) bool { return e.UID == claim })
		}
		s.set(l, claim, text)
	}
	for _, entry := range inherited {
		if !slices.Contains(duplicates, entry.UID) {
			s.inherited = append(s.inherited, entry)
		}
	}
	s.updateGauges()
}

func isDiscarding(claim types.UID, text string) bool {
	entry, err := journal.Decode(claim, text)
	return err == nil && entry.State == journal.Discarding
}

func (s *Store) warnUnreadable(l *lease, unreadable []types.UID) {
	for _, claim := range unreadable {
		s.warn("JournalEntryUnreadable",
			fmt.Sprintf("The journal entry of claim UID %s in lease %s cannot be read and is left alone", claim,
				s.Journal.LeaseName(journal.KindActive, l.number)))
	}
}

// inherit returns the encoded entries for the take-over, the readable entries, and the claims
// of unreadable entries. Unreadable entries stay unchanged.
func (s *Store) inherit(object *coordinationv1.Lease) (texts map[types.UID]string, readable []journal.Entry, unreadable []types.UID) {
	texts = journal.Encoded(object)
	unbroken := s.isUnbroken(object)
	entries, unreadable := journal.Entries(object)
	for _, entry := range entries {
		if !unbroken && !entry.CustodyBroken {
			entry.CustodyBroken = true
			text, err := journal.Encode(entry)
			if err != nil { // forged: Encode compresses less
				unreadable = append(unreadable, entry.UID)
				continue
			}
			texts[entry.UID] = text
		}
		readable = append(readable, entry)
	}
	return texts, readable, unreadable
}

// isUnbroken reports whether no other program can have led since the Lease was written. A restore of etcd gives the
// number of a term again. One term has one holder: the same number with another holder is of a term before the restore.
func (s *Store) isUnbroken(object *coordinationv1.Lease) bool {
	recorded, current := custodyOf(object), s.currentCustody()
	repeated := current.LeaderLease != "" && recorded.Transitions == current.Transitions &&
		journal.HolderOf(object) != s.Holder
	return !repeated && journal.Unbroken(recorded, current)
}

// Unresolved returns the entries that only an administrator can finish or drop.
func (s *Store) Unresolved() []journal.Entry {
	s.mu.Lock()
	defer s.mu.Unlock()
	var all []journal.Entry
	for _, name := range slices.Sorted(maps.Keys(s.unresolved)) {
		all = append(all, s.unresolved[name].entries...)
	}
	return all
}
