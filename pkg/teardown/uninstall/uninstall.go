// Package uninstall removes the kind Alive with its policies, and the freeze that a teardown leaves. It is for a
// cluster that is not deleted after all.
//
// The bindings go first: they guard Alive and its CRD. Whatever is gone already is skipped, so that a second run goes
// on where the first one ended.
package uninstall

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/exeunt-io/exeunt/internal/answer"
	"github.com/exeunt-io/exeunt/pkg/alive"
	"github.com/exeunt-io/exeunt/pkg/controller"
	"github.com/exeunt-io/exeunt/pkg/patch"
	"github.com/exeunt-io/exeunt/pkg/teardown"
	"github.com/exeunt-io/exeunt/pkg/why/cluster"
	"github.com/exeunt-io/exeunt/pkg/why/holder"
)

// ErrRefused: a participant is registered, or a teardown is in progress. Nothing was removed.
var ErrRefused = errors.New("refused")

var (
	policies = schema.GroupVersionResource{Group: "admissionregistration.k8s.io", Version: "v1",
		Resource: "validatingadmissionpolicies"}
	bindings    = policies.GroupVersion().WithResource("validatingadmissionpolicybindings")
	definitions = schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1",
		Resource: "customresourcedefinitions"}
)

// names are the policies and their bindings: the freeze, and the guards of Alive and of its CRD.
var names = []string{teardown.FreezeName, teardown.GuardName, teardown.DefinitionGuardName}

const (
	// settling is how long a policy whose binding is gone may still deny.
	settling = 30 * time.Second
	again    = 200 * time.Millisecond
)

// Remover removes what a teardown has installed.
type Remover struct {
	Reader   *cluster.Reader
	Commands cluster.Commands
	// Say is called with each removed object.
	Say func(string)
}

// Run removes everything, or refuses before the first write.
func (r *Remover) Run(ctx context.Context) error {
	object, err := r.read(ctx)
	if err != nil {
		return err
	}
	if object != nil {
		if err := r.check(object); err != nil {
			return err
		}
		if _, err := r.protect(ctx, object); err != nil {
			return err
		}
	}
	for _, name := range names {
		if err := r.remove(ctx, bindings, name, nil); err != nil {
			return err
		}
	}
	if err := r.await(ctx, "Alive", r.clear); err != nil {
		return err
	}
	if err := r.remove(ctx, definitions, alive.CRD, nil); err != nil {
		return err
	}
	// What is installed before the CRD is gone would go with it.
	if err := r.await(ctx, "CustomResourceDefinition "+alive.CRD, r.isUndefined); err != nil {
		return err
	}
	for _, name := range names {
		if err := r.remove(ctx, policies, name, nil); err != nil {
			return err
		}
	}
	return nil
}

// read returns Alive, nil if there is none, or the kind is not served.
func (r *Remover) read(ctx context.Context) (*unstructured.Unstructured, error) {
	_, served, err := answer.Get(ctx, alive.CRD, r.get(definitions))
	if err != nil || !served {
		return nil, err
	}
	object, exists, err := answer.Get(ctx, alive.Name, r.get(alive.Resource))
	if err != nil || !exists {
		return nil, err
	}
	return object, nil
}

func (r *Remover) get(resource schema.GroupVersionResource) func(context.Context, string, metav1.GetOptions) (
	*unstructured.Unstructured, error) {
	return func(ctx context.Context, name string, o metav1.GetOptions) (*unstructured.Unstructured, error) {
		return r.Reader.Dynamic().Resource(resource).Get(ctx, name, o)
	}
}

// check refuses while somebody relies on Alive.
func (r *Remover) check(object *unstructured.Unstructured) error {
	if participants := alive.ParticipantsOf(object); len(participants) > 0 {
		finder := holder.Finder{Reader: r.Reader, Commands: r.Commands}
		lines := []string{fmt.Sprintf("%d participants are registered with Alive: uninstall them first. If one is gone for "+
			"good, strip its finalizer; what it made outside stays:", len(participants))}
		for _, p := range participants {
			lines = append(lines, fmt.Sprintf("%s (namespace %s): %s", p.Finalizer, p.Namespace, p.Text),
				"  "+finder.RemovalCommand(object, p.Finalizer))
		}
		return fmt.Errorf("%w: %s", ErrRefused, strings.Join(lines, "\n"))
	}
	read, err := alive.FromUnstructured(object)
	if err != nil { // a teardown may be in progress
		return fmt.Errorf("%w: %w", ErrRefused, err)
	}
	if read.IsDeleted() && !read.IsProtected() {
		return fmt.Errorf("%w: a teardown is in progress; stop it first: %s", ErrRefused,
			r.Commands.Exeunt("", "teardown", "--abort"))
	}
	return nil
}

// protect takes a permission back while the guards are on: the deletion of a permitted Alive is the signal.
func (r *Remover) protect(ctx context.Context, object *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	read, err := alive.FromUnstructured(object)
	if err != nil || read.IsProtected() {
		return object, err
	}
	body, err := patch.ForVersion(object).Set("/spec/protected", true).Bytes()
	if err != nil {
		return nil, err
	}
	protected, err := r.Reader.Dynamic().Resource(alive.Resource).Patch(ctx, alive.Name, types.JSONPatchType, body,
		metav1.PatchOptions{})
	if err != nil {
		return nil, fmt.Errorf("take the permission of Alive back: %w", err)
	}
	r.Say("alives." + alive.Group + " " + alive.Name + " is protected")
	return protected, nil
}

// clear takes the next step towards a cluster without Alive, and reports whether there is none. alive-controller makes
// a new one, protected, until the CRD is being deleted.
func (r *Remover) clear(ctx context.Context) (bool, error) {
	live, err := r.read(ctx)
	if err != nil || live == nil {
		return err == nil, err
	}
	if err := r.check(live); err != nil { // the guards are off: this is no refusal before the first write
		return false, fmt.Errorf("a part is removed already, and the same command goes on: %s", err.Error())
	}
	err = controller.CheckRefusal(ctx, r.takeStep(ctx, live), "Alive", live, r.get(alive.Resource))
	if patch.IsStale(err) || errors.Is(err, controller.ErrGone) {
		err = nil // it is read again
	}
	return false, err
}

// takeStep protects Alive, and deletes it or removes our finalizer.
func (r *Remover) takeStep(ctx context.Context, live *unstructured.Unstructured) error {
	live, err := r.protect(ctx, live)
	switch {
	case err != nil:
		return err
	case live.GetDeletionTimestamp() == nil:
		uid, version := live.GetUID(), live.GetResourceVersion()
		// Of this version only: it is protected, and the deletion of a permitted Alive is the signal.
		return r.remove(ctx, alive.Resource, alive.Name, &metav1.Preconditions{UID: &uid, ResourceVersion: &version})
	case slices.Contains(live.GetFinalizers(), alive.Finalizer):
		return r.release(ctx, live)
	}
	return nil
}

// release takes our finalizer off.
func (r *Remover) release(ctx context.Context, live *unstructured.Unstructured) error {
	rest := slices.DeleteFunc(live.GetFinalizers(), func(name string) bool { return name == alive.Finalizer })
	body, err := patch.ForVersion(live).Set("/metadata/finalizers", rest).Bytes()
	if err != nil {
		return err
	}
	_, err = r.Reader.Dynamic().Resource(alive.Resource).Patch(ctx, alive.Name, types.JSONPatchType, body,
		metav1.PatchOptions{})
	if err != nil {
		return fmt.Errorf("remove the finalizer of Alive: %w", err)
	}
	return nil
}

// isUndefined reports whether the CRD is gone. A new Alive would hold it.
func (r *Remover) isUndefined(ctx context.Context) (bool, error) {
	_, exists, err := answer.Get(ctx, alive.CRD, r.get(definitions))
	if err != nil || !exists {
		return err == nil, err
	}
	_, failed := r.clear(ctx)
	if failed == nil {
		return false, nil
	}
	if _, exists, err = answer.Get(ctx, alive.CRD, r.get(definitions)); err == nil && !exists {
		return true, nil // the CRD is gone meanwhile, and so is the kind
	}
	return false, failed
}

// await waits until something is gone. A step of it may wait for a guard.
func (r *Remover) await(ctx context.Context, what string, isGone wait.ConditionWithContextFunc) error {
	if err := wait.PollUntilContextTimeout(ctx, again, 2*settling, true, isGone); err != nil {
		return fmt.Errorf("wait until %s is gone: %w", what, err)
	}
	return nil
}

// remove deletes an object. A guard whose binding is gone may still deny for a second.
func (r *Remover) remove(ctx context.Context, resource schema.GroupVersionResource, name string,
	only *metav1.Preconditions) error {
	options := metav1.DeleteOptions{Preconditions: only}
	var denied error
	err := wait.PollUntilContextTimeout(ctx, again, settling, true, func(ctx context.Context) (bool, error) {
		err := r.Reader.Dynamic().Resource(resource).Delete(ctx, name, options)
		switch {
		case err == nil:
			r.Say(resource.GroupResource().String() + " " + name + " is deleted")
			return true, nil
		case apierrors.IsForbidden(err) && strings.Contains(err.Error(), "ValidatingAdmissionPolicy"):
			denied = err
			return false, nil
		case answer.NeedsRead(err):
			if _, exists, unread := answer.Get(ctx, name, r.get(resource)); unread == nil && !exists {
				return true, nil
			}
		}
		return false, err
	})
	if wait.Interrupted(err) && denied != nil && ctx.Err() == nil {
		err = denied
	}
	if err != nil {
		return fmt.Errorf("delete %s %s: %w", resource.GroupResource(), name, err)
	}
	return nil
}
