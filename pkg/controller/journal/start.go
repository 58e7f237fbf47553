package journal

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

	"github.com/exeunt-io/exeunt/pkg/journal"
)

// ErrForbidden: this process may not write Leases in its namespace.
var ErrForbidden = errors.New("no right to write Leases for the provisioning journal")

// verbs are what the journal needs to do with Leases.
var verbs = []string{"list", "get", "create", "update"}

// Start takes over the journal and returns the entries of earlier processes. It tries
// until the context ends; [ErrForbidden] if the rights have been missing for a minute.
func (s *Store) Start(ctx context.Context) ([]journal.Entry, error) {
	var deniedSince time.Time
	for wait := firstRetry; ; wait = min(2*wait, lastRetry) {
		entries, err := s.TakeOver(ctx)
		if err == nil || errors.Is(err, ErrLost) || ctx.Err() != nil {
			return entries, err
		}
		denied := apierrors.IsForbidden(err) && s.denied(ctx)
		switch {
		case !denied:
			deniedSince = time.Time{}
		case deniedSince.IsZero():
			deniedSince = time.Now()
		}
		if denied && time.Since(deniedSince) >= s.DeniedFor {
			s.warn("JournalForbidden", fmt.Sprintf(
				"The provisioner of %s may not write Leases in namespace %s: volumes are created without a journal, and one that is being created when the provisioner ends may be left behind", s.Journal.Driver, s.Journal.Namespace))
			return nil, ErrForbidden
		}
		klog.FromContext(ctx).Error(err, "Reading the provisioning journal failed, trying again", "wait", wait)
		select {
		case <-time.After(wait):
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

// denied reports whether the API server says that a right is missing. A request can
// be forbidden for other reasons, such as a quota.
func (s *Store) denied(ctx context.Context) bool {
	for _, verb := range verbs {
		review := &authorizationv1.SelfSubjectAccessReview{Spec: authorizationv1.SelfSubjectAccessReviewSpec{
			ResourceAttributes: &authorizationv1.ResourceAttributes{Group: "coordination.k8s.io", Resource: "leases", Namespace: s.Journal.Namespace, Verb: verb},
		}}
		answer, err := s.Client.AuthorizationV1().SelfSubjectAccessReviews().Create(ctx, review, metav1.CreateOptions{})
		if err == nil && !answer.Status.Allowed {
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

// TakeOver reads the Leases of the journal that are not known yet, writes the own
// holder and term into each, and returns their entries. Those in broken custody say
// so from that write on, should this process end before it acts on them.
func (s *Store) TakeOver(ctx context.Context) ([]journal.Entry, error) {
	list, err := s.Client.CoordinationV1().Leases(s.Journal.Namespace).List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, fmt.Errorf("list leases in namespace %s: %w", s.Journal.Namespace, err)
	}
	var inherited []journal.Entry
	for i := range list.Items {
		kind, number, ours := s.Journal.KindOf(&list.Items[i])
		switch {
		case ours && kind == journal.Apart:
			s.sawApart(&list.Items[i])
		case ours && !s.knows(number):
			entries, err := s.takeOver(ctx, &list.Items[i], number)
			if err != nil {
				return nil, err
			}
			inherited = append(inherited, entries...)
		}
	}
	return inherited, nil
}

func (s *Store) knows(number int) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.ContainsFunc(s.leases, func(l *lease) bool { return l.number == number })
}

// takeOver makes one Lease this process's own. A conflict means that its writer was
// still at work: it is read again.
func (s *Store) takeOver(ctx context.Context, object *coordinationv1.Lease, number int) ([]journal.Entry, error) {
	for range tries {
		texts, inherited, err := s.inherit(object)
		if err != nil {
			return nil, err
		}
		l := &lease{number: number, version: object.ResourceVersion, entries: texts}
		switch err := s.put(ctx, l, texts); {
		case err == nil:
			s.add(l)
			return inherited, nil
		case apierrors.IsNotFound(err):
			return nil, nil
		case !apierrors.IsConflict(err):
			return nil, fmt.Errorf("take over lease %s/%s: %w", object.Namespace, object.Name, err)
		}
		if object, err = s.Client.CoordinationV1().Leases(object.Namespace).Get(ctx, object.Name, metav1.GetOptions{}); err != nil {
			return nil, fmt.Errorf("read a lease of the journal again: %w", err)
		}
	}
	return nil, fmt.Errorf("take over lease %s/%s: somebody else keeps writing it", object.Namespace, object.Name)
}

// inherit returns the texts to be written and the entries that can be read. A text
// that cannot be read is left as it is.
func (s *Store) inherit(object *coordinationv1.Lease) (map[types.UID]string, []journal.Entry, error) {
	texts := journal.Encoded(object)
	unbroken := journal.Unbroken(journal.ParseCustody(object.Annotations[journal.CustodyAnnotation]), s.term())
	entries, unreadable := journal.Entries(object)
	for _, uid := range unreadable {
		s.warn("JournalEntryUnreadable", fmt.Sprintf("The journal entry of claim UID %s in lease %s cannot be read and is left alone", uid, object.Name))
	}
	for i := range entries {
		if unbroken || entries[i].CustodyBroken {
			continue
		}
		entries[i].CustodyBroken = true
		text, err := journal.Encode(entries[i])
		if err != nil {
			return nil, nil, err
		}
		texts[entries[i].UID] = text
	}
	return texts, entries, nil
}

func (s *Store) add(l *lease) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.leases = append(s.leases, l)
	for uid, text := range l.entries {
		l.size += len(text)
		s.where[uid] = l
	}
	s.count()
}

// Unresolved returns the entries that an administrator must end.
func (s *Store) Unresolved() []journal.Entry {
	s.mu.Lock()
	defer s.mu.Unlock()
	var all []journal.Entry
	for _, name := range slices.Sorted(maps.Keys(s.apart)) {
		all = append(all, s.apart[name]...)
	}
	return all
}
