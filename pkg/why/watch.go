package why

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/utils/ptr"

	"github.com/exeunt-io/exeunt/pkg/blocker"
	"github.com/exeunt-io/exeunt/pkg/why/cluster"
)

const (
	// refresh is how often the object is explained again without a change of its own: holders,
	// Leases and events change in many objects, some of which the user may not watch. A storage
	// chain takes up to 20 requests: four in a second. After an explanation that takes long, such as of
	// a namespace, it is twice that time.
	refresh = 5 * time.Second
	// pause is the least time between two explanations of an object that changes all the time, or the time
	// that the last one took.
	pause = time.Second
	// recreation is how long a watch waits for an object of the same name. A StatefulSet
	// creates its pod again within a second or two.
	recreation = 10 * time.Second
)

// Watcher explains one object again and again, until it is gone, or exists again under a new
// UID.
type Watcher struct {
	// Explain explains the object with a fresh Reader, for Readers remember what they read.
	Explain func(context.Context) (blocker.Report, error)
	// Recreated returns the report of the new object in the place of the old one.
	Recreated func(ctx context.Context, before, now blocker.Object) blocker.Report
	// Changed receives reports that differ from the report before.
	Changed func(blocker.Report) error
	// Failed receives errors after the first explanation.
	Failed func(error)
}

// Run returns the verdict of the last report. It ends with the context. changes tells that
// the object was written.
func (w Watcher) Run(ctx context.Context, changes <-chan struct{}) (blocker.Verdict, error) {
	began := time.Now()
	report, err := w.Explain(ctx)
	if err != nil {
		return blocker.Unknown, err
	}
	state := watchState{Watcher: w, changes: changes, object: report.Object, last: report, took: time.Since(began)}
	if err := w.Changed(report); err != nil {
		return report.Verdict, err
	}
	for !state.ended() && wait(ctx, changes, state.took) {
		if err := state.step(ctx); err != nil {
			return state.last.Verdict, err
		}
	}
	return state.last.Verdict, nil
}

// wait waits for a change or the next refresh, and returns false if the context ends. took is the time that the last
// explanation took.
func wait(ctx context.Context, changes <-chan struct{}, took time.Duration) bool {
	least, most := time.NewTimer(max(pause, took)), time.NewTimer(max(refresh, 2*took))
	defer least.Stop()
	defer most.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-most.C:
		return true
	case <-changes:
	}
	select {
	case <-ctx.Done():
		return false
	case <-least.C:
		return true
	}
}

// watchState is what a watch has seen.
type watchState struct {
	Watcher
	changes <-chan struct{}
	object  blocker.Object // with its UID, once that was read
	last    blocker.Report
	failure string
	done    bool
	took    time.Duration // by the last explanation
}

// ended reports whether nothing is left to be waited for.
func (s *watchState) ended() bool { return s.done || s.last.Verdict == blocker.Gone }

// step explains the object again.
func (s *watchState) step(ctx context.Context) error {
	began := time.Now()
	report, err := s.Explain(ctx)
	s.took = time.Since(began)
	switch {
	case ctx.Err() != nil:
		return nil
	case err != nil:
		if s.failure != err.Error() {
			s.failure = err.Error()
			s.Failed(err)
		}
		return nil
	}
	s.failure = ""
	if s.object.UID == "" {
		s.object = report.Object
	}
	switch uid := report.Object.UID; {
	case report.Verdict == blocker.Gone:
		return s.gone(ctx, s.object)
	case uid != "" && uid != s.object.UID: // without a UID the API server could not read the object
		return s.recreated(ctx, s.object, report.Object)
	case alike(s.last, report):
		return nil
	}
	return s.changed(report)
}

func (s *watchState) changed(report blocker.Report) error {
	s.last = report
	return s.Changed(report)
}

// gone reports that the object is gone, and waits whether it is created again.
func (s *watchState) gone(ctx context.Context, before blocker.Object) error {
	s.done = true
	if err := s.changed(blocker.Report{Object: before, Verdict: blocker.Gone}.Normalized()); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, recreation)
	defer cancel()
	for wait(ctx, s.changes, 0) {
		report, err := s.Explain(ctx)
		switch {
		case err != nil || report.Object.UID == "":
		case report.Object.UID == before.UID: // the answer that it is gone was wrong
			s.done = false
			return s.changed(report)
		default:
			return s.changed(s.Recreated(ctx, before, report.Object))
		}
	}
	return nil
}

// recreated reports that the object is gone, and that another has its name.
func (s *watchState) recreated(ctx context.Context, before, now blocker.Object) error {
	s.done = true
	if err := s.changed(blocker.Report{Object: before, Verdict: blocker.Gone}.Normalized()); err != nil {
		return err
	}
	return s.changed(s.Recreated(ctx, before, now))
}

// alike reports whether two reports differ in evidence, times and next steps only, which may
// differ with each explanation.
func alike(a, b blocker.Report) bool {
	return a.Object == b.Object && a.Verdict == b.Verdict && ptr.Equal(a.Deadline, b.Deadline) && sameBlockers(a.Blockers, b.Blockers) &&
		fmt.Sprint(a.Incomplete) == fmt.Sprint(b.Incomplete)
}

func sameBlockers(a, b []blocker.Blocker) bool {
	if len(a) != len(b) {
		return false
	}
	for i := range a {
		x, y := a[i], b[i]
		if x.Object != y.Object || x.Finalizer != y.Finalizer || x.Reason != y.Reason || x.Holder != y.Holder ||
			x.Verdict != y.Verdict {
			return false
		}
		if !sameBlockers(x.Blockers, y.Blockers) {
			return false
		}
	}
	return true
}

// Changes tells of each write of the object until the context ends. Without the right to
// watch it tells of none, and calls failed once. The reader's connection must have no timeout.
func Changes(ctx context.Context, reader *cluster.Reader, ref cluster.Ref, failed func(error)) <-chan struct{} {
	changes := make(chan struct{}, 1)
	go func() {
		told := false
		for ctx.Err() == nil {
			err := follow(ctx, reader, ref, changes)
			if err != nil && !told && ctx.Err() == nil {
				told = true
				failed(err)
			}
			select {
			case <-ctx.Done():
			case <-time.After(pause):
			}
		}
	}()
	return changes
}

// follow watches the object until the API server ends the watch.
func follow(ctx context.Context, reader *cluster.Reader, ref cluster.Ref, changes chan<- struct{}) error {
	stream, err := reader.Dynamic().Resource(ref.Resource).Namespace(ref.Namespace).Watch(ctx, metav1.ListOptions{
		FieldSelector: metav1.SingleObject(metav1.ObjectMeta{Name: ref.Name}).FieldSelector,
	})
	if err != nil {
		return errors.New(cluster.Failure("watch", ref.Resource.GroupResource(), ref.Namespace, err))
	}
	defer stream.Stop()
	for range stream.ResultChan() {
		select {
		case changes <- struct{}{}:
		default: // one is pending
		}
	}
	return nil
}

// Recreated returns the report of an object that has the name of one that is gone.
func (e *Explorer) Recreated(ctx context.Context, ref cluster.Ref, before, now blocker.Object) blocker.Report {
	found := blocker.Blocker{
		Object: now, Reason: blocker.Recreated, Verdict: blocker.None,
		Evidence: []blocker.Evidence{{Source: blocker.FromField, Text: fmt.Sprintf("metadata.uid was %s and is %s",
			before.UID, now.UID)}},
		Next: cluster.Steps("nothing waits. To keep the object away, delete or scale down its creator"),
	}
	object, presence, _ := e.reader.Live(ctx, ref)
	if presence == cluster.Present {
		found.Since = blocker.Time(object.GetCreationTimestamp().Time)
		e.nameCreator(&found, object)
	}
	return blocker.Report{Object: now, Verdict: blocker.None, Blockers: []blocker.Blocker{found}}.Normalized()
}

// nameCreator names the owner of the new object, or the program that wrote the object first.
func (e *Explorer) nameCreator(found *blocker.Blocker, object *unstructured.Unstructured) {
	if owner := metav1.GetControllerOf(object); owner != nil {
		found.Holder = owner.Kind + " " + owner.Name
		found.Next = cluster.Steps("nothing waits. To keep the object away, delete or scale down its owner",
			e.commands.Kubectl(object.GetNamespace(), "describe", strings.ToLower(owner.Kind), owner.Name))
		found.Evidence = append(found.Evidence, blocker.Evidence{
			Source: blocker.FromField, Text: fmt.Sprintf("metadata.ownerReferences names %s %s as controller", owner.Kind,
				owner.Name),
		})
		return
	}
	if fields := object.GetManagedFields(); len(fields) > 0 {
		found.Evidence = append(found.Evidence, blocker.Evidence{
			Source: blocker.FromManagedFields, Text: "first written by " + fields[0].Manager,
		})
	}
}
