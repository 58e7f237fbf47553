package runner

import (
	"context"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/exeunt-io/exeunt/internal/answer"
	"github.com/exeunt-io/exeunt/pkg/alive"
)

// isUninstalled reports whether there is no CRD of Alive. An answer that does not name the CRD proves nothing.
func (r *Runner) isUninstalled(ctx context.Context) bool {
	_, defined, err := answer.Get(ctx, alive.CRD, r.get(definitions))
	return err == nil && !defined
}

// listAlive lists Alive. Without the kind it waits for the CRD first: the reflector would ask, and complain, for ever.
func (r *Runner) listAlive(ctx context.Context, options metav1.ListOptions) (*unstructured.UnstructuredList, error) {
	objects := r.Dynamic.Resource(alive.Resource)
	found, err := objects.List(ctx, options)
	if err == nil || !r.isUninstalled(ctx) {
		return found, err
	}
	r.awaitInstallation(ctx)
	return objects.List(ctx, options)
}

// awaitInstallation waits until the CRD of Alive exists, or the context ends.
func (r *Runner) awaitInstallation(ctx context.Context) {
	waiting, stop := context.WithCancel(ctx)
	defer stop()
	exists := func(any) bool {
		stop()
		return true
	}
	objects := r.Dynamic.Resource(definitions)
	f := newFeed(func(f func() bool) { f() }, exists, func(any) {})
	kind(definitions.Resource, &unstructured.Unstructured{}, objects.List, objects.Watch).
		only("metadata.name="+alive.CRD).follow(waiting, r.Dynamic, f)
}
