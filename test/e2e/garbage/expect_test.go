package garbage

import (
	"fmt"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

func (w *world) awaitGone(k kind, name string) {
	w.t.Helper()
	var last *unstructured.Unstructured
	defer func() {
		if w.t.Failed() {
			w.t.Logf("%s %s: %s", k.name, name, kept(last))
		}
	}()
	w.await(name+" is gone", func() bool { last = w.get(k, name); return last == nil })
}

func (w *world) awaitDeleted(k kind, name string) {
	w.t.Helper()
	w.await(name+" is being deleted", func() bool {
		o := w.get(k, name)
		return o != nil && o.GetDeletionTimestamp() != nil
	})
}

// awaitOwners waits until the object has the owners; the names of cluster-scoped ones are
// prefixed by the namespace.
func (w *world) awaitOwners(k kind, name string, owners ...string) {
	w.t.Helper()
	w.await(fmt.Sprintf("%s has the owners %v", name, owners), func() bool {
		o := w.get(k, name)
		if o == nil {
			w.t.Fatalf("%s is gone", name)
		}
		var names []string
		for _, r := range o.GetOwnerReferences() {
			names = append(names, r.Name)
		}
		return slices.Equal(names, owners)
	})
}

func (w *world) awaitFinalizers(k kind, name string, finalizers ...string) {
	w.t.Helper()
	w.await(fmt.Sprintf("%s has the finalizers %v", name, finalizers), func() bool {
		o := w.get(k, name)
		if o == nil {
			w.t.Fatalf("%s is gone", name)
		}
		return slices.Equal(o.GetFinalizers(), finalizers)
	})
}

func (w *world) awaitReached(r *rule) {
	w.t.Helper()
	select {
	case <-r.reached:
	case <-w.ctx.Done():
		w.t.Fatalf("no request %s %s", r.method, r.path)
	}
}

// settle waits until garbage was collected that came later than what happened before.
func (w *world) settle() {
	w.t.Helper()
	for _, k := range []kind{secrets, widgets, configMaps, secrets} {
		w.settleKind(k)
	}
}

// settleKind waits until the watch of the kind has delivered what happened before.
func (w *world) settleKind(k kind) {
	w.t.Helper()
	w.fences++
	fence := fmt.Sprint("fence-", w.fences)
	w.create(k, fence, w.absentOwner())
	w.awaitGone(k, fence)
}

// expectKept fails if the object is gone or being deleted after garbage that came later was
// collected.
func (w *world) expectKept(k kind, name string) {
	w.t.Helper()
	w.settle()
	if o := w.get(k, name); o == nil || o.GetDeletionTimestamp() != nil {
		w.t.Errorf("%s was deleted", name)
	}
}

// expectWaiting fails unless the deletion of the object waits for dependents after garbage that came
// later was collected.
func (w *world) expectWaiting(k kind, name string) {
	w.t.Helper()
	w.settle()
	o := w.get(k, name)
	switch {
	case o == nil:
		w.t.Errorf("%s is gone", name)
	case o.GetDeletionTimestamp() == nil:
		w.t.Errorf("%s is not being deleted", name)
	case !contains(o.GetFinalizers(), metav1.FinalizerDeleteDependents) &&
		!contains(o.GetFinalizers(), metav1.FinalizerOrphanDependents):
		w.t.Errorf("%s waits for no dependents: its finalizers are %v", name, o.GetFinalizers())
	}
}

func (w *world) expectGone(k kind, name string) {
	w.t.Helper()
	if w.get(k, name) != nil {
		w.t.Errorf("%s still exists", name)
	}
}

func (w *world) expectExists(k kind, name string) {
	w.t.Helper()
	if w.get(k, name) == nil {
		w.t.Errorf("%s is gone", name)
	}
}
