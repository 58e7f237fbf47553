package runner

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/exeunt-io/exeunt/internal/answer"
	"github.com/exeunt-io/exeunt/pkg/alive"
	"github.com/exeunt-io/exeunt/pkg/controller"
	"github.com/exeunt-io/exeunt/pkg/patch"
	"github.com/exeunt-io/exeunt/pkg/teardown/fate"
	"github.com/exeunt-io/exeunt/pkg/teardown/inventory"
)

// try is what became of the last try of a step. It is a cache: a new runner tries again.
type try struct {
	// after is when the step may be tried again, failures how often it failed in a row.
	after    time.Time
	failures int
	// version is that of the object in the last try. Another version is tried at once.
	version string
	err     string
}

// settles is how long the watch may take to show a deletion that was accepted.
const settles = time.Minute

// errNotLeading: the Lease may end before the write.
var errNotLeading = errors.New("the Lease is not valid beyond the margin")

// due returns the steps that may be tried now.
func (s *session) due(v view) []inventory.Step {
	var due []inventory.Step
	for _, step := range v.steps {
		last, tried := s.tries[step.UID]
		after := last.after
		if last.failures == 0 && last.version != step.ResourceVersion { // somebody has undone the step since
			after = after.Add(s.Waits.Retry - settles)
		}
		if !tried || v.now.After(after) || last.failures > 0 && last.version != step.ResourceVersion {
			due = append(due, step)
		} else {
			s.wakeAt(after)
		}
	}
	return due
}

// batch carries out at most 100 steps of the kind, in parallel.
func (s *session) batch(ctx context.Context, v view, action inventory.Action) error {
	var steps []inventory.Step
	for _, step := range s.due(v) {
		if step.Action == action && len(steps) < maxBatch {
			steps = append(steps, step)
		}
	}
	if action == inventory.Delete {
		if err := s.saveNew(ctx, v); err != nil {
			return err
		}
	}
	requests, stop := untilAnswered(ctx)
	defer stop()
	errs := make([]error, len(steps))
	var group sync.WaitGroup
	slots := make(chan struct{}, s.Parallel)
	for i, step := range steps {
		slots <- struct{}{}
		group.Go(func() {
			defer func() { <-slots }()
			if errs[i] = context.Cause(ctx); errs[i] == nil {
				errs[i] = s.step(requests, step)
			}
		})
	}
	group.Wait()
	for i, step := range steps {
		s.settle(v, step, errs[i])
	}
	s.prune(v)
	if len(steps) > 0 { // there may be more than one batch
		s.notify()
	}
	return context.Cause(ctx)
}

// untilAnswered returns a context for requests that are in flight when the context ends: they get their answers.
func untilAnswered(ctx context.Context) (context.Context, context.CancelFunc) {
	requests, cancel := context.WithCancel(context.WithoutCancel(ctx))
	stop := context.AfterFunc(ctx, func() { time.AfterFunc(controller.ShutdownGracePeriod, cancel) })
	return requests, func() {
		stop()
		cancel()
	}
}

// settle records the outcome of a step.
func (s *session) settle(v view, step inventory.Step, err error) {
	last := s.tries[step.UID]
	if err == nil {
		s.tries[step.UID] = try{after: v.now.Add(settles), version: step.ResourceVersion}
		return
	}
	next := try{failures: last.failures + 1, version: step.ResourceVersion, err: err.Error()}
	wait := s.backoff(next.failures)
	if seconds, asked := apierrors.SuggestsClientDelay(err); asked {
		wait = max(wait, time.Duration(seconds)*time.Second)
	}
	next.after = v.now.Add(wait)
	s.tries[step.UID] = next
	s.wakeAt(next.after)
}

// prune forgets what is no step any more, once there is much to forget.
func (s *session) prune(v view) {
	if len(s.tries) < 2*len(v.steps)+10*maxBatch {
		return
	}
	current := make(map[types.UID]try, len(v.steps))
	for _, step := range v.steps {
		if last, tried := s.tries[step.UID]; tried {
			current[step.UID] = last
		}
	}
	s.tries = current
}

// step carries out one step, unless the Lease may end.
func (s *session) step(ctx context.Context, step inventory.Step) error {
	if !s.term.Leading() {
		return errNotLeading
	}
	if step.Action == inventory.Mark {
		return s.mark(ctx, step)
	}
	for _, name := range step.Volumes {
		if err := s.confirmVolume(ctx, step, name); err != nil {
			return err
		}
	}
	for _, name := range step.Unseen {
		if err := s.confirmUnseen(ctx, name); err != nil {
			return err
		}
	}
	if !s.term.Leading() {
		return errNotLeading
	}
	if object, _, _ := s.view(); object != nil && object.UID == s.uid && !s.permits(object) {
		return errNotPermitted // protected, or over, amid the batch (#71)
	}
	return s.delete(ctx, step)
}

// confirmUnseen reads a volume that no watch shows. If it is there, a user may have given it the label, and it would be
// released and deleted with its claim. Once its watch shows it, it is judged.
func (s *session) confirmUnseen(ctx context.Context, name string) error {
	_, exists, err := answer.Get(ctx, name, s.Objects.CoreV1().PersistentVolumes().Get)
	switch {
	case err != nil:
		return fmt.Errorf("read PersistentVolume %s: %w", name, err)
	case exists:
		return fmt.Errorf("PersistentVolume %s is there, and its watch is late", name)
	}
	return nil
}

// confirmVolume reads a volume live and judges it before its claim is deleted, or the pod whose ephemeral claim it is: a
// user may have set the policy Retain or the label since (#06), and the deletion would delete the disk.
func (s *session) confirmVolume(ctx context.Context, step inventory.Step, name string) error {
	volume, exists, err := answer.Get(ctx, name, s.Objects.CoreV1().PersistentVolumes().Get)
	switch {
	case err != nil:
		return fmt.Errorf("read PersistentVolume %s: %w", name, err)
	case !exists:
		return fmt.Errorf("PersistentVolume %s is gone", name)
	}
	ref := volume.Spec.ClaimRef
	if step.Kind == "PersistentVolumeClaim" && (ref == nil || ref.UID != step.UID) {
		return fmt.Errorf("PersistentVolume %s is not that of the claim", name)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if decision := s.inventory.Live(volume); decision.Action != fate.DeleteClaim {
		return fmt.Errorf("PersistentVolume %s is not to be deleted: %s, %s", name, decision.Action, decision.Reason)
	}
	return nil
}

// mark keeps a volume: label and policy in one patch of the version that the decision rests on.
func (s *session) mark(ctx context.Context, step inventory.Step) error {
	observed := &metav1.ObjectMeta{UID: step.UID, ResourceVersion: step.ResourceVersion}
	change := patch.ForVersion(observed)
	s.mu.Lock()
	labeled := s.labeled[step.UID]
	s.mu.Unlock()
	if labeled {
		change.Set("/metadata/labels/"+patch.Escape(alive.PreserveLabel), keptBy)
	} else {
		change.Set("/metadata/labels", map[string]string{alive.PreserveLabel: keptBy})
	}
	body, err := change.Set("/spec/persistentVolumeReclaimPolicy", "Retain").Bytes()
	if err != nil {
		return err
	}
	volume, err := s.Objects.CoreV1().PersistentVolumes().Patch(ctx, step.Name, types.JSONPatchType, body,
		metav1.PatchOptions{FieldManager: s.Agent})
	if err != nil {
		return fmt.Errorf("keep PersistentVolume %s: %w", step.Name, err)
	}
	return controller.CheckName(volume, step.Name) // the watch brings the volume as it is now
}

// keptBy is the value of the label that the runner sets.
const keptBy = "teardown"

// delete deletes one object of the version that the decision rests on. Whether an object is gone says the watch.
func (s *session) delete(ctx context.Context, step inventory.Step) error {
	err := s.Dynamic.Resource(step.Resource).Namespace(step.Namespace).Delete(ctx, step.Name, metav1.DeleteOptions{
		Preconditions: &metav1.Preconditions{UID: &step.UID, ResourceVersion: &step.ResourceVersion}})
	if err != nil {
		return fmt.Errorf("delete %s %s/%s: %w", step.Kind, step.Namespace, step.Name, err)
	}
	return nil
}
