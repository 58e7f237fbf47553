package journalstore

import (
	"context"
	"errors"
	"maps"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/exeunt-io/exeunt/internal/answer"
	"github.com/exeunt-io/exeunt/pkg/journal"
)

// requestLimit is the age at which a request without an answer is no longer executed: the API
// server ends requests after a minute.
const requestLimit = time.Minute + commitTimeout

// errMayBeExecuted: a write without an answer may still be executed.
var errMayBeExecuted = errors.New("an earlier write may still be executed")

// writeAccepted writes the entries. If the API server refuses the write, it writes the durable
// entries, and then the changes one by one. It returns the errors of the refused changes.
// Durable entries stay durable meanwhile.
func (s *Store) writeAccepted(ctx context.Context, l *lease,
	entries map[types.UID]string) (map[types.UID]error, error) {
	err := s.write(ctx, l, entries)
	if !answer.IsRefused(err) {
		return nil, err
	}
	switch unchanged := s.write(ctx, l, l.durable); {
	case answer.IsRefused(unchanged): // because of no entry
		if s.settle(ctx, l) != nil {
			return nil, err
		}
		return refuse(changesOf(l.durable, entries), err), err
	case unchanged != nil:
		return nil, unchanged
	}
	changes := changesOf(l.durable, entries)
	if len(changes) == 1 {
		return refuse(changes, err), nil
	}
	return s.writeOneByOne(ctx, l, changes, entries)
}

// writeOneByOne writes each change, and returns the errors of the refused changes.
func (s *Store) writeOneByOne(ctx context.Context, l *lease, changes []types.UID,
	entries map[types.UID]string) (map[types.UID]error, error) {
	refusals := map[types.UID]error{}
	for _, claim := range changes {
		candidate := maps.Clone(l.durable)
		if text, wanted := entries[claim]; wanted {
			candidate[claim] = text
		} else {
			delete(candidate, claim)
		}
		switch err := s.write(ctx, l, candidate); {
		case answer.IsRefused(err):
			refusals[claim] = err
		case err != nil: // the remaining changes are retried
			return refusals, err
		}
	}
	return refusals, nil
}

// changesOf returns the claims whose entries differ.
func changesOf(before, after map[types.UID]string) []types.UID {
	var changes []types.UID
	for claim, text := range after {
		if known, has := before[claim]; !has || known != text {
			changes = append(changes, claim)
		}
	}
	for claim := range before {
		if _, has := after[claim]; !has {
			changes = append(changes, claim)
		}
	}
	return changes
}

func refuse(changes []types.UID, err error) map[types.UID]error {
	refusals := map[types.UID]error{}
	for _, claim := range changes {
		refusals[claim] = err
	}
	return refusals
}

// refusedRemoval returns the error of a refused removal, nil if no removal was refused.
func refusedRemoval(tried map[types.UID]string, refusals map[types.UID]error) error {
	for claim, err := range refusals {
		if _, put := tried[claim]; !put {
			return err
		}
	}
	return nil
}

// revert drops the refused entries, so that the durable entries stay. No call was made for
// the dropped entries. A refused removal stays wanted.
func (s *Store) revert(l *lease, tried map[types.UID]string, refusals map[types.UID]error) {
	for claim := range refusals {
		if _, put := tried[claim]; !put || l.entries[claim] != tried[claim] {
			continue // a removal, or changed again
		}
		text, durable := l.durable[claim]
		l.size += len(text) - len(l.entries[claim])
		if l.entries[claim] = text; !durable {
			delete(l.entries, claim)
			delete(s.leaseOf, claim)
		}
	}
}

// settle reads which entries are durable if the outcome of an earlier write is unknown. Wanted
// entries that another writer removed count as durable; the next write restores them.
func (s *Store) settle(ctx context.Context, l *lease) error {
	switch {
	case l.unknown.IsZero():
		return nil
	case time.Since(l.unknown) < requestLimit:
		return errMayBeExecuted
	}
	ctx, stop := context.WithTimeout(ctx, commitTimeout)
	defer stop()
	object, err := s.reread(ctx, l)
	if err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	durable := map[types.UID]string{}
	if object != nil {
		durable = journal.Encoded(object)
	}
	for claim, text := range l.durable {
		_, wanted := l.entries[claim]
		if _, stored := durable[claim]; wanted && !stored {
			durable[claim] = text
		}
	}
	l.durable, l.unknown, l.tried = durable, time.Time{}, nil
	l.changed = object == nil && len(durable) > 0 || object != nil && !s.isAsWritten(l, object)
	return nil
}
