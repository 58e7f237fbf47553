package runner

import (
	"context"
	"errors"
	"fmt"
	"time"

	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/exeunt-io/exeunt/internal/answer"
	"github.com/exeunt-io/exeunt/pkg/alive"
	"github.com/exeunt-io/exeunt/pkg/teardown"
	"github.com/exeunt-io/exeunt/pkg/teardown/inventory"
)

// definitions are the CRDs.
var definitions = schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1",
	Resource: "customresourcedefinitions"}

// definition is the CRD of Alive, as a watch shows it.
type definition struct{ deleting bool }

func (d *definition) see(object any) bool {
	content, is := object.(*unstructured.Unstructured)
	d.deleting = is && content.GetDeletionTimestamp() != nil
	return true
}

// view is what a round knows of the objects.
type view struct {
	now      time.Time
	steps    []inventory.Step
	work     teardown.Work
	unmarked int
	running  []string
	items    []teardown.Item
	// lost are the recorded requests whose claim went without a volume. One that is no item was seen to fail.
	lost   []teardown.Item
	next   time.Time
	listed bool
}

// look evaluates the inventory.
func (s *session) look() view {
	s.mu.Lock()
	defer s.mu.Unlock()
	v := view{now: s.Clock.Now(), work: teardown.Unlisted}
	if v.listed = s.watched > 0 && s.listed == s.watched; !v.listed {
		v.running = s.freeze.running
		return v
	}
	if object, _, _ := s.view(); object != nil {
		s.inventory.SetParticipants(participantsOf(object, s.why.participants))
	}
	v.lost = s.inventory.Lost(s.record.requests())
	if !s.judged {
		s.judged = true
		s.inventory.Restore(s.inventory.Unanswered(v.lost))
	}
	v.steps, v.work = s.inventory.Steps(v.now), s.inventory.Work(v.now)
	v.unmarked, v.running = s.inventory.Unmarked(v.now), s.inventory.Unopened(v.now)
	v.items, v.next = s.inventory.Items(v.now), s.inventory.NextTime(v.now)
	return v
}

// participantsOf returns the foreign finalizers of Alive.
func participantsOf(object *alive.Alive, stuck map[string]bool) []inventory.Participant {
	var all []inventory.Participant
	for _, one := range alive.ParticipantsOf(object) {
		all = append(all, inventory.Participant{Finalizer: one.Finalizer, Namespace: one.Namespace, Text: one.Text,
			Stuck: stuck[one.Finalizer]})
	}
	return all
}

// wordOf returns what the spec says of a person's permission.
func (r *Runner) wordOf(object *alive.Alive) teardown.Word {
	spec, now := object.Spec, r.Clock.Now()
	switch {
	case spec.Confirm == "", spec.ConfirmedAt.IsZero(), spec.ConfirmedAt.After(now.Add(alive.MaxAhead)):
		return teardown.NoWord
	case spec.Confirm != r.Cluster:
		return teardown.OtherWord
	case object.TimeLeft(r.Clock.Latest()) <= 0: // nothing may be deleted after the end
		return teardown.ExpiredWord
	}
	return teardown.ValidWord
}

// observe returns the state of a round.
func (s *session) observe(ctx context.Context, v view) (teardown.State, error) {
	object, presence, err := s.alive(ctx)
	if err != nil {
		return teardown.State{}, err
	}
	state := teardown.State{OtherCluster: s.otherCluster, Alive: presence, Leading: s.term.Leading(),
		Confirmed: s.confirmed != nil, Recorded: s.record.complete, Planned: s.record.planned,
		Kept: !v.listed || v.unmarked == 0, Work: s.workOf(v)}
	if object == nil {
		if presence == teardown.Absent { // another runner may have written it
			err = s.readRecord(ctx)
			state.Recorded = s.record.complete
		}
		return state, err
	}
	word := s.wordOf(object)
	state.Deleting, state.Held = object.IsDeleted(), hasFinalizer(object)
	state.Protected, state.Word = object.IsProtected(), word
	state.Started = object.IsStarted()
	state.Restored = s.isRestored(object)
	if state.Undefined, err = s.isUndefined(ctx, object); err != nil {
		return state, err
	}
	state.Readiness = s.readinessOf(ctx, object)
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.freeze.listed() {
		return teardown.State{Alive: teardown.Unread}, nil
	}
	if s.freeze.present() {
		state.Freeze = teardown.Written
	}
	if teardown.Decide(state).Phase != teardown.Stopped {
		state.Freeze = s.freeze.state(v.running)
	}
	if word == teardown.ValidWord {
		s.wakeAt(object.Deadline())
	}
	return state, nil
}

func hasFinalizer(object metav1.Object) bool {
	for _, finalizer := range object.GetFinalizers() {
		if finalizer == alive.Finalizer {
			return true
		}
	}
	return false
}

// isRestored reports whether a backup of etcd brought the started teardown back (#64): a person's later word ends that.
func (s *session) isRestored(object *alive.Alive) bool {
	return s.started && s.took.Sub(s.renewed) > s.Waits.Pause && !object.Spec.ConfirmedAt.IsZero() &&
		s.took.Sub(object.Spec.ConfirmedAt.Time) > s.Waits.Pause
}

// isUndefined reports whether the CRD of Alive is being deleted. Before the start it is read live: the deletion of the
// CRD is what sets the deletionTimestamp, and its watch may be late.
func (s *session) isUndefined(ctx context.Context, object *alive.Alive) (bool, error) {
	s.mu.Lock()
	deleting := s.defined.deleting
	s.mu.Unlock()
	if deleting || !object.IsDeleted() || object.IsStarted() || s.confirmed == nil {
		return deleting, nil
	}
	found, exists, err := answer.Get(ctx, alive.CRD, s.get(definitions))
	if err != nil {
		return false, fmt.Errorf("read the CRD of Alive: %w", err)
	}
	return !exists || found.GetDeletionTimestamp() != nil, nil
}

// get returns the read of one object of a cluster-scoped resource.
func (c *Config) get(resource schema.GroupVersionResource) func(context.Context, string,
	metav1.GetOptions) (*unstructured.Unstructured, error) {
	return func(ctx context.Context, name string, options metav1.GetOptions) (*unstructured.Unstructured, error) {
		return c.Dynamic.Resource(resource).Get(ctx, name, options)
	}
}

// alive returns Alive: what was read live in this round, else what the watch shows. Only a live read shows that it is
// gone.
func (s *session) alive(ctx context.Context) (*alive.Alive, teardown.Presence, error) {
	if s.confirmed != nil {
		return s.confirmed, teardown.Present, nil
	}
	if object, _, _ := s.view(); object != nil && object.UID == s.uid {
		return object, teardown.Present, nil
	}
	object, err := s.readAlive(ctx)
	switch {
	case err != nil:
		return nil, teardown.Unread, err
	case object == nil || object.UID != s.uid:
		return nil, teardown.Absent, nil
	}
	return object, teardown.Present, nil
}

// readAlive reads Alive live. It returns nil if there is none.
func (r *Runner) readAlive(ctx context.Context) (*alive.Alive, error) {
	content, exists, err := answer.Get(ctx, alive.Name, r.get(alive.Resource))
	switch {
	case apierrors.IsNotFound(err): // not the answer about the object: the kind may be gone (#57)
		_, defined, definitionErr := answer.Get(ctx, alive.CRD, r.get(definitions))
		if definitionErr == nil && !defined {
			return nil, nil
		}
		return nil, errors.Join(fmt.Errorf("read Alive: %w", err), definitionErr)
	case err != nil:
		return nil, fmt.Errorf("read Alive: %w", err)
	case !exists:
		return nil, nil
	}
	return alive.FromUnstructured(content)
}

// confirm reads kube-system and Alive live: a DNS name can move to another cluster in the middle of a run (#70).
func (s *session) confirm(ctx context.Context) error {
	same, err := s.isSameCluster(ctx)
	if err != nil {
		return err
	}
	if !same {
		s.otherCluster = true
		return nil
	}
	object, err := s.readAlive(ctx)
	if err != nil {
		return err
	}
	if object != nil && object.UID == s.uid {
		s.confirmed = object
		return nil
	}
	// The watch may never show it: the kind may be gone, too.
	s.change(func() bool {
		stale := s.current != nil && s.current.UID == s.uid
		if stale {
			s.current = object
		}
		return stale
	})
	return nil
}

func (r *Runner) isSameCluster(ctx context.Context) (bool, error) {
	namespace, exists, err := answer.Get(ctx, metav1.NamespaceSystem, r.Objects.CoreV1().Namespaces().Get)
	if err != nil {
		return false, fmt.Errorf("read namespace kube-system: %w", err)
	}
	return exists && namespace.UID == r.Cluster, nil
}

// workOf returns what is left to do.
func (s *session) workOf(v view) teardown.Work {
	work := v.work
	if work == teardown.Ready && len(s.due(v)) == 0 {
		work = teardown.Awaited
	}
	if work != teardown.Quiet {
		s.end.clean = 0
		return work
	}
	if s.end.clean >= 2 {
		return teardown.Finished
	}
	return work
}

func isVolume(object any) bool {
	_, is := object.(*v1.PersistentVolume)
	return is
}
