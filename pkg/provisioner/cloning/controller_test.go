package cloning_test

import (
	"context"
	"errors"
	"testing"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/record"

	kit "github.com/exeunt-io/exeunt/pkg/controller"
	"github.com/exeunt-io/exeunt/pkg/finalizer"
	"github.com/exeunt-io/exeunt/pkg/provisioner/cloning"
)

const foreign = "example.com/other"

func claim(name string, change ...func(*v1.PersistentVolumeClaim)) *v1.PersistentVolumeClaim {
	c := &v1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name, UID: "uid", ResourceVersion: "1"}}
	c.Status.Phase = v1.ClaimBound
	for _, f := range change {
		f(c)
	}
	return c
}

func protected(c *v1.PersistentVolumeClaim) {
	c.Finalizers = []string{foreign, string(finalizer.CloneSource)}
}

func deleting(c *v1.PersistentVolumeClaim) { c.DeletionTimestamp = new(metav1.Now()) }

func waitsForCloneOf(source string) func(*v1.PersistentVolumeClaim) {
	return func(c *v1.PersistentVolumeClaim) {
		c.Status.Phase = v1.ClaimPending
		c.Spec.DataSource = &v1.TypedLocalObjectReference{Kind: "PersistentVolumeClaim", Name: source}
	}
}

// world is a controller whose API server and cache have the same claims.
func world(t *testing.T, claims ...*v1.PersistentVolumeClaim) (*cloning.Controller, *fake.Clientset, cache.Store) {
	t.Helper()
	return worldWithEvents(t, record.NewFakeRecorder(100), claims...)
}

func worldWithEvents(t *testing.T, events record.EventRecorder, claims ...*v1.PersistentVolumeClaim) (*cloning.Controller, *fake.Clientset, cache.Store) {
	t.Helper()
	client := fake.NewClientset()
	informer := informers.NewSharedInformerFactory(client, 0).Core().V1().PersistentVolumeClaims().Informer()
	controller, err := cloning.New(client, informer, kit.NewReporter(events))
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range claims {
		if err := client.Tracker().Add(c); err != nil {
			t.Fatal(err)
		}
		if err := informer.GetStore().Add(c); err != nil {
			t.Fatal(err)
		}
	}
	return controller, client, informer.GetStore()
}

func isProtected(t *testing.T, client *fake.Clientset, name string) bool {
	t.Helper()
	c, err := client.CoreV1().PersistentVolumeClaims("ns").Get(t.Context(), name, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return finalizer.Has(c.Finalizers, finalizer.CloneSource)
}

func TestUnneededSourceLosesFinalizer(t *testing.T) {
	for name, tc := range map[string]struct {
		claims []*v1.PersistentVolumeClaim
		kept   bool
	}{
		"pending clone":                   {[]*v1.PersistentVolumeClaim{claim("source", protected, deleting), claim("clone", waitsForCloneOf("source"))}, true},
		"bound clone":                     {[]*v1.PersistentVolumeClaim{claim("source", protected, deleting), claim("clone", waitsForCloneOf("source"), func(c *v1.PersistentVolumeClaim) { c.Status.Phase = v1.ClaimBound })}, false},
		"pending clone of another source": {[]*v1.PersistentVolumeClaim{claim("source", protected, deleting), claim("clone", waitsForCloneOf("other"))}, false},
		"source is not deleted":           {[]*v1.PersistentVolumeClaim{claim("source", protected)}, true},
		"source is a clone":               {[]*v1.PersistentVolumeClaim{claim("source", protected, deleting, waitsForCloneOf("other"))}, false},
		"one of two clones is bound":      {[]*v1.PersistentVolumeClaim{claim("source", protected, deleting), claim("a"), claim("b", waitsForCloneOf("source"))}, true},
	} {
		t.Run(name, func(t *testing.T) {
			controller, client, _ := world(t, tc.claims...)
			if err := controller.Reconcile(t.Context(), "ns/source"); err != nil {
				t.Fatal(err)
			}
			if got := isProtected(t, client, "source"); got != tc.kept {
				t.Errorf("protected = %v, want %v", got, tc.kept)
			}
			if now, _ := client.CoreV1().PersistentVolumeClaims("ns").Get(t.Context(), "source", metav1.GetOptions{}); !finalizer.Has(now.Finalizers, foreign) {
				t.Error("a foreign finalizer was removed")
			}
		})
	}
}

func TestProtectAddsMissingFinalizerOnce(t *testing.T) {
	controller, client, store := world(t, claim("source"))
	source := claim("source")
	for range 2 {
		if err := controller.Protect(t.Context(), source); err != nil {
			t.Fatal(err)
		}
		now, err := client.CoreV1().PersistentVolumeClaims("ns").Get(t.Context(), "source", metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		source = now
	}
	if !isProtected(t, client, "source") {
		t.Error("the source is not protected")
	}
	writes := 0
	for _, action := range client.Actions() {
		if action.GetVerb() != "get" {
			writes++
		}
	}
	if writes != 1 {
		t.Errorf("%d writes, want one", writes)
	}
	if cached, _, _ := store.GetByKey("ns/source"); len(cached.(*v1.PersistentVolumeClaim).Finalizers) != 0 {
		t.Error("the cached claim was changed")
	}
}

func TestProtectReadsStaleSourceAgain(t *testing.T) {
	controller, client, _ := world(t, claim("source", func(c *v1.PersistentVolumeClaim) { c.Finalizers = []string{foreign} }))
	stale := claim("source", func(c *v1.PersistentVolumeClaim) {
		c.Finalizers = []string{foreign, "example.com/gone-since"}
		c.ResourceVersion = "stale"
	})
	client.PrependReactor("patch", "persistentvolumeclaims", staleUnless(foreign))
	if err := controller.Protect(context.WithoutCancel(t.Context()), stale); err != nil {
		t.Fatal(err)
	}
	if !isProtected(t, client, "source") {
		t.Error("the source is not protected")
	}
}

func TestDeletedClaimIsNotProtected(t *testing.T) {
	controller, client, _ := world(t, claim("source", deleting))
	if err := controller.Protect(t.Context(), claim("source", deleting)); err == nil {
		t.Error("no error")
	}
	if isProtected(t, client, "source") {
		t.Error("a finalizer was added to a claim that is being deleted")
	}
}

func TestMissingClaimIsNotProtected(t *testing.T) {
	controller, _, _ := world(t)
	if err := controller.Protect(t.Context(), claim("source")); !errors.Is(err, kit.ErrGone) {
		t.Errorf("err = %v, want ErrGone", err)
	}
}

// The answer to a write has a version that the cache does not show.
func TestSourceOlderThanOwnWriteIsRequeued(t *testing.T) {
	cloner, client, _ := world(t, claim("source", protected, deleting))
	client.PrependReactor("patch", "persistentvolumeclaims", func(clienttesting.Action) (bool, runtime.Object, error) {
		return true, claim("source", protected, deleting, func(c *v1.PersistentVolumeClaim) { c.ResourceVersion = "2" }), nil
	})
	_ = cloner.Reconcile(t.Context(), "ns/source")
	if err := cloner.Reconcile(t.Context(), "ns/source"); !errors.Is(err, kit.ErrStaleCache) {
		t.Errorf("Reconcile() = %v, want %v", err, kit.ErrStaleCache)
	}
}
