package runner

import (
	"context"
	"errors"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/exeunt-io/exeunt/deploy"
	"github.com/exeunt-io/exeunt/internal/answer"
	"github.com/exeunt-io/exeunt/pkg/alive"
	"github.com/exeunt-io/exeunt/pkg/patch"
	"github.com/exeunt-io/exeunt/pkg/teardown"
)

// Word is what a person says with --confirm.
type Word struct {
	// Timeout is how long the permission lasts, Last are namespaces that go last.
	Timeout time.Duration
	Last    []string
}

// Teardown is what "exeunt teardown --confirm" does: it installs what is missing, permits the teardown, deletes Alive
// once nothing refuses, and carries the teardown out, or follows another runner that does.
func (r *Runner) Teardown(ctx context.Context, said Word) (*Outcome, error) {
	if err := r.install(ctx); err != nil {
		return nil, err
	}
	object, err := r.ensure(ctx)
	if object != nil && err == nil {
		r.commanded = object.UID
		err = r.preserveShared(ctx)
	}
	if object != nil && err == nil {
		object, err = r.permit(ctx, object, said)
	}
	switch {
	case err != nil:
		return nil, err
	case object == nil:
		return r.lastOutcome(ctx)
	}
	running, stop := context.WithCancel(ctx)
	defer stop()
	ended := make(chan struct{})
	var outcome *Outcome
	var runErr error
	go func() {
		defer close(ended)
		outcome, runErr = r.Run(running)
	}()
	refused, err := r.deleteWhenReady(running, object, ended)
	if refused != nil || err != nil {
		stop()
		<-ended
		if err != nil && outcome != nil || errors.Is(err, errEnded) {
			return outcome, runErr
		}
		return refused, err
	}
	<-ended
	return outcome, runErr
}

// install applies the kind and its policies where they are missing. Versions that are there stay: an administrator, or a
// release, keeps them.
func (r *Runner) install(ctx context.Context) error {
	for _, name := range []string{"alive/namespace.yaml", "alive/crd.yaml", "alive/policy.yaml"} {
		text, err := deploy.Alive.ReadFile(name)
		if err != nil {
			return err
		}
		if err := r.installAll(ctx, text); err != nil {
			return err
		}
	}
	return r.awaitServed(ctx)
}

// installed are the resources of what install applies.
var installed = map[string]schema.GroupVersionResource{
	"Namespace":                        {Version: "v1", Resource: "namespaces"},
	"CustomResourceDefinition":         definitions,
	"ValidatingAdmissionPolicy":        freezeParts[0],
	"ValidatingAdmissionPolicyBinding": freezeParts[1],
}

func (r *Runner) installAll(ctx context.Context, text []byte) error {
	objects, err := parse(text)
	if err != nil {
		return err
	}
	for _, object := range objects {
		resource, known := installed[object.GetKind()]
		if !known {
			return fmt.Errorf("install %s %s: the kind is not known", object.GetKind(), object.GetName())
		}
		_, exists, err := answer.Get(ctx, object.GetName(), r.get(resource))
		if err == nil && !exists {
			_, err = r.Dynamic.Resource(resource).Apply(ctx, object.GetName(), object,
				metav1.ApplyOptions{FieldManager: r.Agent, Force: true})
		}
		if err != nil {
			return fmt.Errorf("install %s %s: %w", object.GetKind(), object.GetName(), err)
		}
	}
	return nil
}

// awaitServed waits until the API server serves Alive.
func (r *Runner) awaitServed(ctx context.Context) error {
	for began := time.Now(); ; {
		_, err := r.readAlive(ctx)
		if err == nil || time.Since(began) > r.Waits.Freeze || !apierrors.IsNotFound(err) {
			return err
		}
		if !sleep(ctx, r.Waits.Probe) {
			return context.Cause(ctx)
		}
	}
}

// ensure returns Alive. It creates a missing one, unless the freeze shows that a teardown has begun: then it returns nil.
func (r *Runner) ensure(ctx context.Context) (*alive.Alive, error) {
	object, err := r.readAlive(ctx)
	if object != nil || err != nil {
		return object, err
	}
	if err := r.create(ctx); err != nil {
		return nil, err
	}
	return r.readAlive(ctx)
}

// lastOutcome is that of a teardown whose Alive is gone (#57).
func (r *Runner) lastOutcome(ctx context.Context) (*Outcome, error) {
	last, err := r.lastAlive(ctx)
	switch {
	case err != nil:
		return nil, err
	case last == "":
		return &Outcome{Reason: teardown.NotCompleted}, ErrNotCompleted
	}
	return r.recordedOutcome(ctx, last)
}

// lastAlive returns the UID of the Alive of the last teardown, "" if nothing shows it: that of this command, else that
// of the freeze, which each teardown writes before it writes anything else. The record may be of an earlier one.
func (r *Runner) lastAlive(ctx context.Context) (last types.UID, err error) {
	if r.commanded != "" {
		return r.commanded, nil
	}
	for _, part := range freezeParts {
		object, exists, err := answer.Get(ctx, FreezeName, r.get(part))
		if err != nil {
			return "", fmt.Errorf("read the freeze: %w", err)
		}
		if !exists {
			continue
		}
		of := types.UID(object.GetAnnotations()[ofAlive])
		if of == "" || last != "" && of != last { // a teardown has ended between policy and binding
			return "", nil
		}
		last = of
	}
	return last, nil
}

// create creates the missing Alive, protected, unless the freeze is there.
func (r *Runner) create(ctx context.Context) error {
	for _, part := range freezeParts {
		_, exists, err := answer.Get(ctx, FreezeName, r.get(part))
		if err != nil {
			return fmt.Errorf("read the freeze: %w", err)
		}
		if exists {
			return nil
		}
	}
	content, err := alive.ToUnstructured(alive.New())
	if err != nil {
		return err
	}
	_, err = r.Dynamic.Resource(alive.Resource).Create(ctx, content, metav1.CreateOptions{FieldManager: r.Agent})
	if err == nil {
		return nil
	}
	// A webhook chooses the code of its denial. Without the kind nothing is created: the watch shows when it is back.
	if live, unread := r.readAlive(ctx); live != nil && unread == nil {
		return nil
	}
	if r.isUninstalled(ctx) {
		return nil
	}
	return fmt.Errorf("create Alive: %w", err)
}

// permit permits the teardown, whoever else writes Alive meanwhile: two people may give the command at once. It returns
// nil if Alive is gone since, and a teardown has begun.
func (r *Runner) permit(ctx context.Context, object *alive.Alive, said Word) (*alive.Alive, error) {
	for {
		armed, err := r.arm(ctx, object, said)
		if !answer.NeedsRead(err) {
			return armed, err
		}
		now, unread := r.ensure(ctx)
		switch {
		case now == nil || unread != nil:
			return nil, unread
		case now.UID == object.UID && now.ResourceVersion == object.ResourceVersion: // a webhook chose the code of its denial
			return nil, err
		case isStoppedSince(object, now):
			return nil, errStoppedSince
		}
		object = now
	}
}

var errStoppedSince = errors.New("the object Alive was protected or replaced since this command began, as an " +
	"abort does: nothing was permitted; the same command, given again, permits the teardown")

// isStoppedSince reports whether somebody has protected Alive since it was read. Another command that permits the
// teardown at the same time does not.
func isStoppedSince(before, now *alive.Alive) bool {
	changed := !before.IsProtected() || now.Generation != before.Generation
	return now.UID != before.UID || now.IsProtected() && changed
}

// arm writes the permission, with the time of the API server. It returns Alive as it is then. The version is that read:
// another command may have permitted the teardown since, and an abort stopped it.
func (r *Runner) arm(ctx context.Context, object *alive.Alive, said Word) (*alive.Alive, error) {
	spec := object.Spec.DeepCopy()
	protected, now := false, metav1.NewTime(r.Clock.Now().Truncate(time.Second))
	spec.Protected, spec.Confirm, spec.ConfirmedAt = &protected, r.Cluster, &now
	if said.Timeout > 0 {
		spec.Timeout = &metav1.Duration{Duration: said.Timeout}
	}
	if len(said.Last) > 0 {
		spec.Last = said.Last
	}
	armed, err := r.patchAlive(ctx, patch.ForVersion(object).Set("/spec", spec))
	if err != nil {
		return nil, fmt.Errorf("permit the teardown: %w", err)
	}
	return armed, nil
}

var errEnded = errors.New("the runner has ended")

// deleteWhenReady deletes Alive by UID once nothing refuses. It returns an outcome if something does.
func (r *Runner) deleteWhenReady(ctx context.Context, armed *alive.Alive, ended <-chan struct{}) (*Outcome, error) {
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	go func() {
		select {
		case <-ended:
			stop(errEnded)
		case <-ctx.Done():
		}
	}()
	for {
		object, synced, changed := r.view()
		switch {
		case !synced || object == nil || object.UID != armed.UID || object.Generation < armed.Generation && !object.IsDeleted():
		case object.IsDeleted():
			return nil, nil
		default:
			ready := meta.FindStatusCondition(object.Status.Conditions, alive.ConditionReady)
			if ready == nil || ready.ObservedGeneration != object.Generation || ready.Reason == alive.ReasonRightsMissing {
				break // not checked yet; the rights are those of an alive-controller
			}
			if ready.Status == metav1.ConditionTrue {
				return nil, r.deleteAlive(ctx, object)
			}
			return &Outcome{Phase: teardown.Phase(object.Status.Phase), Reason: teardown.NotReady, Message: ready.Message}, nil
		}
		if !await(ctx, changed, 0) {
			return nil, context.Cause(ctx)
		}
	}
}

func (r *Runner) deleteAlive(ctx context.Context, object *alive.Alive) error {
	err := r.Dynamic.Resource(alive.Resource).Delete(ctx, alive.Name, metav1.DeleteOptions{
		Preconditions: &metav1.Preconditions{UID: &object.UID}})
	if err != nil {
		return fmt.Errorf("delete Alive: %w", err)
	}
	return nil
}
