package controller

import (
	"errors"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clienttesting "k8s.io/client-go/testing"
)

// A webhook denies with the code of its choice, also with those of an object that is gone or has changed.
func TestDeniedRemovalOfFinalizerIsReported(t *testing.T) {
	kind := schema.GroupKind{Group: "example.com", Kind: "Machine"}
	for name, denial := range map[string]error{
		"conflict":  apierrors.NewConflict(resource.GroupResource(), "a", errors.New("denied by w.example")),
		"not found": apierrors.NewNotFound(resource.GroupResource(), "a"),
		"invalid":   apierrors.NewInvalid(kind, "a", nil),
		"forbidden": apierrors.NewForbidden(resource.GroupResource(), "a", errors.New("denied by w.example")),
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, machine(""))
			w.start()
			w.await("guest runs")
			var permitted atomic.Bool
			w.client.PrependReactor("patch", "machines", func(clienttesting.Action) (bool, runtime.Object, error) {
				return !permitted.Load(), nil, denial
			})
			w.update(deleted(w.get(), time.Now(), time.Time{}))
			w.await("Warning WriteRefused change finalizers: " + denial.Error())
			w.await("log default/a: change finalizers: " + denial.Error())
			permitted.Store(true)
			w.awaitGone()
		})
	}
}

func TestChangedObjectIsNoRefusal(t *testing.T) {
	w := newWorld(t, machine(""))
	var removed atomic.Bool // the chain of reactors is read while the controller runs
	var once sync.Once
	w.client.PrependReactor("patch", "machines", func(clienttesting.Action) (stale bool, _ runtime.Object, err error) {
		if !removed.Load() {
			return false, nil, nil
		}
		once.Do(func() {
			found, getErr := w.client.Tracker().Get(resource, "default", "a")
			changed := found.DeepCopyObject().(*unstructured.Unstructured)
			changed.SetResourceVersion("2")
			stale, err = true, apierrors.NewConflict(resource.GroupResource(), "a", errors.New("changed"))
			if failed := errors.Join(getErr, w.client.Tracker().Update(resource, changed, "default")); failed != nil {
				err = failed
			}
		})
		return stale, nil, err
	})
	w.start()
	w.await("guest runs")
	removed.Store(true)
	w.update(deleted(w.get(), time.Now(), time.Time{}))
	w.awaitGone()
	w.end()
	if seen := w.log(); strings.Contains(seen, "change finalizers") {
		t.Errorf("reported as a refusal:\n%s", seen)
	}
}
