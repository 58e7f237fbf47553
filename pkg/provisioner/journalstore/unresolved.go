package journalstore

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/exeunt-io/exeunt/internal/answer"
	"github.com/exeunt-io/exeunt/pkg/journal"
)

// MoveToUnresolved moves an entry into a Lease for unresolved entries. A crash can leave the
// entry in both Leases; the next leader then repeats the move.
func (s *Store) MoveToUnresolved(ctx context.Context, entry journal.Entry, reason string) error {
	entry.Unresolved = &journal.Unresolved{Reason: reason, Since: s.Now().Unix()}
	text, err := journal.Encode(entry)
	if err != nil {
		return err
	}
	if err := s.writeUnresolved(ctx, entry.UID, text); err != nil {
		return fmt.Errorf("move the journal entry of claim %s/%s to the unresolved ones: %w", entry.Namespace, entry.Name,
			err)
	}
	if err := s.RemoveNow(ctx, entry.UID); err != nil {
		return err
	}
	s.warn("JournalEntryUnresolved", fmt.Sprintf(
		"Whether a volume %s exists for claim %s/%s (UID %s) cannot be found out: %s. See exeunt journal list. exeunt journal drop %[4]s removes the entry; exeunt journal finish %[4]s records the volume, and deletes it with its data if the claim is gone and its class says Delete",
		entry.VolumeName(), entry.Namespace, entry.Name, entry.UID, reason))
	return nil
}

// unresolvedLeases reads the Leases with unresolved entries. It returns them ordered by
// number, and the first free number. Numbers may have gaps.
func (s *Store) unresolvedLeases(ctx context.Context) (found []*coordinationv1.Lease, free int, err error) {
	list, err := s.listLeases(ctx)
	if err != nil {
		return nil, 0, fmt.Errorf("read the unresolved journal entries: %w", err)
	}
	numbers, names := map[string]int{}, map[string]bool{}
	for i := range list.Items {
		names[list.Items[i].Name] = true
		if kind, number, ours := s.Journal.KindOf(&list.Items[i]); ours && kind == journal.KindUnresolved {
			numbers[list.Items[i].Name] = number
			found = append(found, &list.Items[i])
		}
	}
	slices.SortFunc(found, func(a, b *coordinationv1.Lease) int { return cmp.Compare(numbers[a.Name], numbers[b.Name]) })
	for names[s.Journal.LeaseName(journal.KindUnresolved, free)] {
		free++
	}
	return found, free, nil
}

// changeUnresolved changes Leases with unresolved entries, and repeats the change after
// conflicts.
func (s *Store) changeUnresolved(ctx context.Context, change func(found []*coordinationv1.Lease,
	free int) error) error {
	select {
	case s.unresolvedWriter <- struct{}{}:
	case <-ctx.Done():
		return ctx.Err()
	}
	defer func() { <-s.unresolvedWriter }()
	var err error
	for range maxTries {
		s.mu.Lock()
		lost := s.lostErr
		s.mu.Unlock()
		if lost != nil {
			return lost
		}
		found, free, failed := s.unresolvedLeases(ctx)
		if failed != nil {
			return failed
		}
		err = change(found, free)
		if !apierrors.IsConflict(err) && !apierrors.IsAlreadyExists(err) && !apierrors.IsNotFound(err) {
			return err
		}
	}
	return err
}

// writeUnresolved writes the encoded entry into the Lease with an unresolved entry of the
// claim, else into the first Lease with enough space, else into a new Lease.
func (s *Store) writeUnresolved(ctx context.Context, claim types.UID, text string) error {
	return s.changeUnresolved(ctx, func(found []*coordinationv1.Lease, free int) error {
		if target := leaseFor(found, claim, len(text)); target != nil {
			texts := journal.Encoded(target)
			texts[claim] = text
			return s.updateUnresolved(ctx, target, texts)
		}
		object := s.Journal.Lease(journal.KindUnresolved, free, s.Holder, s.currentCustody(),
			map[types.UID]string{claim: text})
		now, err := s.Client.CoordinationV1().Leases(object.Namespace).Create(ctx, object, metav1.CreateOptions{})
		return s.checkUnresolvedWrite(now, object, err)
	})
}

// leaseFor returns the Lease with an entry of the claim, else the first Lease with enough
// space, else nil.
func leaseFor(found []*coordinationv1.Lease, claim types.UID, length int) *coordinationv1.Lease {
	var target *coordinationv1.Lease
	for _, object := range found {
		texts := journal.Encoded(object)
		if _, has := texts[claim]; has {
			return object
		}
		if target == nil && (len(texts) == 0 || size(texts)+length <= unresolvedBudget) {
			target = object
		}
	}
	return target
}

func (s *Store) updateUnresolved(ctx context.Context, object *coordinationv1.Lease, texts map[types.UID]string) error {
	_, number, _ := s.Journal.KindOf(object)
	next := s.Journal.Lease(journal.KindUnresolved, number, s.Holder, s.currentCustody(), texts)
	next.ResourceVersion = object.ResourceVersion
	now, err := s.Client.CoordinationV1().Leases(next.Namespace).Update(ctx, next, metav1.UpdateOptions{})
	return s.checkUnresolvedWrite(now, next, err)
}

func (s *Store) checkUnresolvedWrite(now, written *coordinationv1.Lease, err error) error {
	if err == nil {
		err = s.checkStored(now, written)
	}
	if err == nil {
		s.recordUnresolved(now, false)
	}
	return err
}

func size(texts map[types.UID]string) int {
	sum := 0
	for _, text := range texts {
		sum += len(text)
	}
	return sum
}

// unresolvedLease is the last known version of a Lease with unresolved entries.
type unresolvedLease struct {
	version string
	entries []journal.Entry
}

// recordUnresolved records a Lease with unresolved entries, and reports the entries that the
// administrator has approved for finishing. It ignores older versions.
func (s *Store) recordUnresolved(object *coordinationv1.Lease, deleted bool) {
	entries, _ := journal.Entries(object)
	if deleted {
		entries = nil
	}
	s.mu.Lock()
	if isOlder(object.ResourceVersion, s.unresolved[object.Name].version) {
		s.mu.Unlock()
		return
	}
	s.unresolved[object.Name] = unresolvedLease{object.ResourceVersion, entries}
	s.updateGauges()
	approved := s.approved
	s.mu.Unlock()
	for _, entry := range entries {
		if approved != nil && entry.Unresolved != nil && entry.Unresolved.Finish {
			approved(entry)
		}
	}
}

// Resume moves an approved entry from the unresolved Leases to an active Lease.
func (s *Store) Resume(ctx context.Context, entry journal.Entry) (journal.Entry, error) {
	entry.CustodyBroken, entry.Unresolved = false, nil
	if err := s.Write(ctx, entry); err != nil {
		return entry, err
	}
	return entry, s.RemoveUnresolved(ctx, entry.UID)
}

// RemoveUnresolved removes the claim's entry from the unresolved Leases.
func (s *Store) RemoveUnresolved(ctx context.Context, claim types.UID) error {
	err := s.changeUnresolved(ctx, func(found []*coordinationv1.Lease, _ int) error {
		for _, object := range found {
			texts := journal.Encoded(object)
			if _, has := texts[claim]; !has {
				continue
			}
			delete(texts, claim)
			if err := s.updateUnresolved(ctx, object, texts); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("remove the unresolved journal entry of claim UID %s: %w", claim, err)
	}
	return nil
}

// listLeases reads the Leases of the journal's namespace.
func (s *Store) listLeases(ctx context.Context) (*coordinationv1.LeaseList, error) {
	return answer.CheckedList(s.Client.CoordinationV1().Leases(s.Journal.Namespace).List(ctx, metav1.ListOptions{}))
}
