// Package uninstall removes the kind Alive with its policies, and the freeze that a teardown leaves. It is the way back
// for a cluster that is to live on.
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
	}
	for _, name := range names {
		if err := r.remove(ctx, bindings, name, ""); err != nil {
			return err
		}
	}
	if object != nil {
		if err := r.removeAlive(ctx, object); err != nil {
			return err
		}
	}
	if err := r.remove(ctx, definitions, alive.CRD, ""); err != nil {
		return err
	}
	if err := r.awaitGone(ctx); err != nil {
		return err
	}
	for _, name := range names {
		if err := r.remove(ctx, policies, name, ""); err != nil {
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

// removeAlive deletes Alive, and takes our finalizer off.
func (r *Remover) removeAlive(ctx context.Context, object *unstructured.Unstructured) error {
	err := r.remove(ctx, alive.Resource, alive.Name, object.GetUID())
	if err != nil {
		return err
	}
	live, exists, err := answer.Get(ctx, alive.Name, r.get(alive.Resource))
	if err != nil || !exists || live.GetUID() != object.GetUID() {
		return err
	}
	if err := r.check(live); errors.Is(err, ErrRefused) && len(alive.ParticipantsOf(live)) > 0 {
		return err
	}
	all := live.GetFinalizers()
	rest := slices.DeleteFunc(slices.Clone(all), func(name string) bool { return name == alive.Finalizer })
	body, err := patch.For(live).Test("/metadata/finalizers", all).Set("/metadata/finalizers", rest).Bytes()
	if err != nil {
		return err
	}
	_, err = r.Reader.Dynamic().Resource(alive.Resource).Patch(ctx, alive.Name, types.JSONPatchType, body,
		metav1.PatchOptions{})
	if err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("remove the finalizer of Alive: %w", err)
	}
	return nil
}

// awaitGone waits until the CRD is gone: what is installed before would go with it.
func (r *Remover) awaitGone(ctx context.Context) error {
	err := wait.PollUntilContextTimeout(ctx, again, settling, true, func(ctx context.Context) (bool, error) {
		_, exists, err := answer.Get(ctx, alive.CRD, r.get(definitions))
		return !exists, err
	})
	if err != nil {
		return fmt.Errorf("wait until CustomResourceDefinition %s is gone: %w", alive.CRD, err)
	}
	return nil
}

// remove deletes an object of the UID, "" for any. A guard whose binding is gone may still deny for a second.
func (r *Remover) remove(ctx context.Context, resource schema.GroupVersionResource, name string, uid types.UID) error {
	options := metav1.DeleteOptions{}
	if uid != "" {
		options.Preconditions = &metav1.Preconditions{UID: &uid}
	}
	var denied error
	err := wait.PollUntilContextTimeout(ctx, again, settling, true, func(ctx context.Context) (bool, error) {
		err := r.Reader.Dynamic().Resource(resource).Delete(ctx, name, options)
		switch {
		case err == nil:
			r.Say(resource.GroupResource().String() + " " + name + " is deleted")
			return true, nil
		case apierrors.IsNotFound(err):
			return true, nil
		case apierrors.IsForbidden(err) && strings.Contains(err.Error(), "ValidatingAdmissionPolicy"):
			denied = err
			return false, nil
		}
		return false, err
	})
	if err != nil && denied != nil && ctx.Err() == nil {
		err = denied
	}
	if err != nil {
		return fmt.Errorf("delete %s %s: %w", resource.GroupResource(), name, err)
	}
	return nil
}
