package runner

import (
	"context"
	"net/http"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	dynamicfake "k8s.io/client-go/dynamic/fake"
	k8stesting "k8s.io/client-go/testing"

	"github.com/exeunt-io/exeunt/pkg/alive"
)

// kindOf is an API server that serves Alive while its CRD exists.
type kindOf struct {
	*dynamicfake.FakeDynamicClient
	gone atomic.Bool
}

func newKindOf(r *Runner) *kindOf {
	k := &kindOf{FakeDynamicClient: r.Dynamic.(*dynamicfake.FakeDynamicClient)}
	unserved := apierrors.NewGenericServerResponse(http.StatusNotFound, "get", alive.Resource.GroupResource(), "", "", 0, true)
	k.PrependReactor("*", "alives", func(k8stesting.Action) (bool, runtime.Object, error) {
		return k.gone.Load(), nil, unserved
	})
	k.PrependReactor("create", "alives", func(action k8stesting.Action) (bool, runtime.Object, error) {
		if created, is := action.(k8stesting.CreateAction).GetObject().(*unstructured.Unstructured); is { // as the API server
			created.SetUID("1")
			created.SetResourceVersion("1")
		}
		return k.gone.Load(), nil, unserved
	})
	k.PrependWatchReactor("alives", func(k8stesting.Action) (bool, watch.Interface, error) {
		return k.gone.Load(), nil, unserved
	})
	return k
}

// install creates the CRD, uninstall deletes the CRD with Alive.
func (k *kindOf) install(t *testing.T) {
	t.Helper()
	crd := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "apiextensions.k8s.io/v1",
		"kind": "CustomResourceDefinition", "metadata": map[string]any{"name": alive.CRD, "uid": "crd"}}}
	k.gone.Store(false)
	if err := k.Tracker().Create(definitions, crd, ""); err != nil {
		t.Fatal(err)
	}
}

func (k *kindOf) uninstall(t *testing.T) {
	t.Helper()
	k.gone.Store(true)
	_ = k.Tracker().Delete(alive.Resource, "", alive.Name)
	if err := k.Tracker().Delete(definitions, "", alive.CRD); err != nil {
		t.Fatal(err)
	}
}

// isQuiet fails the test if there are requests within an hour.
func (k *kindOf) isQuiet(t *testing.T) {
	t.Helper()
	<-time.After(time.Minute)
	synctest.Wait()
	before := len(k.Actions())
	<-time.After(time.Hour)
	synctest.Wait()
	if after := k.Actions()[before:]; len(after) != 0 {
		t.Errorf("%d requests within an hour, the first is %+v", len(after), after[0])
	}
}

// "exeunt teardown remove" takes the kind away while alive-controller runs.
func TestControllerWithoutTheKindIsQuiet(t *testing.T) {
	for name, installed := range map[string]bool{"removed": true, "never there": false} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := newTestRunner(t, nil)
				k := newKindOf(r)
				k.gone.Store(true)
				if installed {
					k.install(t)
				}
				ctx, stop := context.WithCancel(t.Context())
				defer stop()
				go func() { _, _ = r.Run(ctx) }()
				<-time.After(time.Minute)
				if installed {
					k.uninstall(t)
				}
				k.isQuiet(t)
				if installed { // the fake watch never ends: there is nothing to begin anew
					return
				}
				k.install(t)
				k.isQuiet(t)
				if _, err := k.Tracker().Get(alive.Resource, "", alive.Name); err != nil {
					t.Errorf("the kind is back, and Alive is not created: %v", err)
				}
			})
		})
	}
}
