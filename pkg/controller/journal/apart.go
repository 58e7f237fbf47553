package journal

import (
	"context"
	"fmt"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/exeunt-io/exeunt/pkg/journal"
)

// SetApart moves an entry to the unresolved ones. A crash in the middle leaves it in
// both places, and the next leader does the same again.
func (s *Store) SetApart(ctx context.Context, entry journal.Entry, reason string) error {
	entry.Unresolved = &journal.Unresolved{Reason: reason, Since: time.Now().Unix()}
	text, err := journal.Encode(entry)
	if err != nil {
		return err
	}
	if err := s.writeApart(ctx, entry.UID, text); err != nil {
		return fmt.Errorf("set the journal entry of claim %s/%s apart: %w", entry.Namespace, entry.Name, err)
	}
	if err := s.StrikeNow(ctx, entry.UID); err != nil {
		return err
	}
	s.warn("JournalEntryUnresolved", fmt.Sprintf(
		"Whether a volume %s exists for claim %s/%s (UID %s) cannot be found out: %s. See exeunt journal list; exeunt journal finish or drop %s ends it",
		entry.VolumeName(), entry.Namespace, entry.Name, entry.UID, reason, entry.UID))
	return nil
}

// writeApart adds the text to the first unresolved Lease that has room for it.
func (s *Store) writeApart(ctx context.Context, claim types.UID, text string) error {
	leases := s.Client.CoordinationV1().Leases(s.Journal.Namespace)
	for number := 0; ; {
		object, err := leases.Get(ctx, s.Journal.LeaseName(journal.Apart, number), metav1.GetOptions{})
		var now *coordinationv1.Lease
		switch {
		case apierrors.IsNotFound(err):
			now, err = leases.Create(ctx, s.Journal.Lease(journal.Apart, number, s.Holder, s.term(), map[types.UID]string{claim: text}), metav1.CreateOptions{})
		case err == nil:
			texts := journal.Encoded(object)
			texts[claim] = text
			if len(texts) > 1 && size(texts) > apartBudget {
				number++
				continue
			}
			next := s.Journal.Lease(journal.Apart, number, s.Holder, s.term(), texts)
			next.ResourceVersion = object.ResourceVersion
			now, err = leases.Update(ctx, next, metav1.UpdateOptions{})
		}
		switch {
		case err == nil:
			s.sawApart(now)
			return nil
		case !apierrors.IsConflict(err) && !apierrors.IsAlreadyExists(err) && !apierrors.IsNotFound(err):
			return err
		}
	}
}

func size(texts map[types.UID]string) int {
	sum := 0
	for _, text := range texts {
		sum += len(text)
	}
	return sum
}

// sawApart takes note of a Lease of unresolved entries, and of those that the
// administrator wants finished.
func (s *Store) sawApart(object *coordinationv1.Lease) {
	entries, _ := journal.Entries(object)
	s.mu.Lock()
	s.apart[object.Name] = entries
	s.count()
	approved := s.approved
	s.mu.Unlock()
	for _, entry := range entries {
		if approved != nil && entry.Unresolved != nil && entry.Unresolved.Finish {
			approved(entry)
		}
	}
}

// Resume makes an unresolved entry that the administrator wants finished an active one.
func (s *Store) Resume(ctx context.Context, entry journal.Entry) (journal.Entry, error) {
	entry.CustodyBroken, entry.Unresolved = false, nil
	if err := s.Write(ctx, entry); err != nil {
		return entry, err
	}
	return entry, s.RemoveApart(ctx, entry.UID)
}

// RemoveApart removes the claim's entry from the unresolved Leases.
func (s *Store) RemoveApart(ctx context.Context, claim types.UID) error {
	leases := s.Client.CoordinationV1().Leases(s.Journal.Namespace)
	for number := 0; ; {
		object, err := leases.Get(ctx, s.Journal.LeaseName(journal.Apart, number), metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("read the unresolved journal entries: %w", err)
		}
		texts := journal.Encoded(object)
		if _, has := texts[claim]; !has {
			number++
			continue
		}
		delete(texts, claim)
		next := s.Journal.Lease(journal.Apart, number, s.Holder, s.term(), texts)
		next.ResourceVersion = object.ResourceVersion
		now, err := leases.Update(ctx, next, metav1.UpdateOptions{})
		switch {
		case err == nil:
			s.sawApart(now)
			return nil
		case !apierrors.IsConflict(err):
			return fmt.Errorf("remove the unresolved journal entry of claim UID %s: %w", claim, err)
		}
	}
}
