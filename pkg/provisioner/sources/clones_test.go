package sources_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/record"

	kit "github.com/exeunt-io/exeunt/pkg/controller"
	"github.com/exeunt-io/exeunt/pkg/controller/waiting"
	"github.com/exeunt-io/exeunt/pkg/finalizer"
	"github.com/exeunt-io/exeunt/pkg/provisioner/provisioning"
	"github.com/exeunt-io/exeunt/pkg/provisioner/sources"
	"github.com/exeunt-io/exeunt/test/controllertest"
)

const foreign = "example.com/other"

func claim(name string, change ...func(*v1.PersistentVolumeClaim)) *v1.PersistentVolumeClaim {
	c := &v1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name, UID: "uid",
		ResourceVersion: "1"}}
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
func clones(t *testing.T, claims ...*v1.PersistentVolumeClaim) (*sources.Clones, *fake.Clientset, cache.Store) {
	t.Helper()
	return clonesWithEvents(t, record.NewFakeRecorder(100), claims...)
}

func clonesWithEvents(t *testing.T, events record.EventRecorder,
	claims ...*v1.PersistentVolumeClaim) (*sources.Clones, *fake.Clientset, cache.Store) {
	t.Helper()
	client := fake.NewClientset()
	informer := informers.NewSharedInformerFactory(client, 0).Core().V1().PersistentVolumeClaims().Informer()
	controller, err := sources.NewClones(client, informer, kit.NewReporter(events))
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
		"pending clone": {[]*v1.PersistentVolumeClaim{claim("source", protected, deleting), claim("clone", waitsForCloneOf("source"))}, true},
		"bound clone": {[]*v1.PersistentVolumeClaim{claim("source", protected, deleting),
			claim("clone", waitsForCloneOf("source"), func(c *v1.PersistentVolumeClaim) { c.Status.Phase = v1.ClaimBound })},
			false},
		"pending clone of another source": {[]*v1.PersistentVolumeClaim{claim("source", protected, deleting), claim("clone", waitsForCloneOf("other"))}, false},
		"source is not deleted":           {[]*v1.PersistentVolumeClaim{claim("source", protected)}, true},
		"source is a clone":               {[]*v1.PersistentVolumeClaim{claim("source", protected, deleting, waitsForCloneOf("other"))}, false},
		"one of two clones is bound": {[]*v1.PersistentVolumeClaim{claim("source", protected, deleting), claim("a"),
			claim("b", waitsForCloneOf("source"))}, true},
	} {
		t.Run(name, func(t *testing.T) {
			controller, client, _ := clones(t, tc.claims...)
			if err := controller.Reconcile(t.Context(), "ns/source"); err != nil {
				t.Fatal(err)
			}
			if got := isProtected(t, client, "source"); got != tc.kept {
				t.Errorf("protected = %v, want %v", got, tc.kept)
			}
			if now, _ := client.CoreV1().PersistentVolumeClaims("ns").
				Get(t.Context(), "source", metav1.GetOptions{}); !finalizer.Has(now.Finalizers, foreign) {
				t.Error("a foreign finalizer was removed")
			}
		})
	}
}

func TestProtectAddsMissingFinalizerOnce(t *testing.T) {
	controller, client, store := clones(t, claim("source"))
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
	controller, client, _ := clones(t, claim("source",
		func(c *v1.PersistentVolumeClaim) { c.Finalizers = []string{foreign} }))
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
	controller, client, _ := clones(t, claim("source", deleting))
	if err := controller.Protect(t.Context(), claim("source", deleting)); err == nil {
		t.Error("no error")
	}
	if isProtected(t, client, "source") {
		t.Error("a finalizer was added to a claim that is being deleted")
	}
}

func TestMissingClaimIsNotProtected(t *testing.T) {
	controller, _, _ := clones(t)
	if err := controller.Protect(t.Context(), claim("source")); !errors.Is(err, kit.ErrGone) {
		t.Errorf("err = %v, want ErrGone", err)
	}
}

// The answer to a write has a version that the cache does not show.
func TestSourceOlderThanOwnWriteIsRequeued(t *testing.T) {
	cloner, client, _ := clones(t, claim("source", protected, deleting))
	client.PrependReactor("patch", "persistentvolumeclaims", func(clienttesting.Action) (bool, runtime.Object, error) {
		return true, claim("source", protected, deleting, func(c *v1.PersistentVolumeClaim) { c.ResourceVersion = "2" }), nil
	})
	_ = cloner.Reconcile(t.Context(), "ns/source")
	if err := cloner.Reconcile(t.Context(), "ns/source"); !errors.Is(err, kit.ErrStaleCache) {
		t.Errorf("Reconcile() = %v, want %v", err, kit.ErrStaleCache)
	}
}

// staleUnless rejects, as the API server does, every patch that does not test that the given
// finalizer is the only one.
func staleUnless(only string) clienttesting.ReactionFunc {
	return func(action clienttesting.Action) (bool, runtime.Object, error) {
		body := string(action.(clienttesting.PatchAction).GetPatch())
		if strings.Contains(body, `{"op":"test","path":"/metadata/finalizers","value":["`+only+`"]}`) {
			return false, nil, nil
		}
		return true, nil, apierrors.NewInvalid(schema.GroupKind{}, "source", nil)
	}
}

func TestEventNamesCloneThatIsServedHere(t *testing.T) {
	const want = "Normal DeletionWaiting CloneRunning: A volume is being cloned from the claim. Waiting for PersistentVolumeClaim ns/clone, which is cloned from the claim."
	for name, tc := range map[string]struct {
		change []func(*v1.PersistentVolumeClaim)
		served bool
		events int
	}{
		"clone is served here":         {[]func(*v1.PersistentVolumeClaim){protected, deleting}, true, 1},
		"clone of another driver":      {[]func(*v1.PersistentVolumeClaim){protected, deleting}, false, 0},
		"source is not deleted":        {[]func(*v1.PersistentVolumeClaim){protected}, true, 0},
		"source without the finalizer": {[]func(*v1.PersistentVolumeClaim){deleting}, true, 0},
	} {
		t.Run(name, func(t *testing.T) {
			controller, _, _ := clones(t, claim("source", tc.change...), claim("clone", waitsForCloneOf("source")))
			events := controllertest.EventsAfter(t, func(t *testing.T, tracker *waiting.Tracker) {
				controller.TrackWaiting(tracker,
					func(clone *v1.PersistentVolumeClaim) bool { return tc.served && clone.Name == "clone" })
				if err := controller.Reconcile(t.Context(), "ns/source"); err != nil {
					t.Fatal(err)
				}
			})
			if len(events) != tc.events || tc.events > 0 && !strings.HasPrefix(events[0], want) {
				t.Errorf("events %q, want %d that begin with %q", events, tc.events, want)
			}
		})
	}
}

// A webhook refuses the removal of the finalizer, or undoes it: without an event nothing says why the source stays.
func TestRefusedRemovalFromClaimIsReported(t *testing.T) {
	const removal = "Warning WriteRefused Removing the finalizer provisioner.storage.kubernetes.io/cloning-protection"
	for _, code := range []int32{0, http.StatusBadRequest, http.StatusNotFound, http.StatusConflict,
		http.StatusUnprocessableEntity} {
		t.Run(fmt.Sprint(code), func(t *testing.T) {
			events, source := record.NewFakeRecorder(10), claim("source", protected, deleting)
			c, client, _ := clonesWithEvents(t, events, source)
			reason := `admission webhook "w" denied the request`
			if code == 0 {
				reason = "another program, such as an admission webhook, undoes this write each time; the write is repeated less and less often"
			}
			client.PrependReactor("patch", "persistentvolumeclaims", func(clienttesting.Action) (bool, runtime.Object, error) {
				if code == 0 {
					return true, source, nil
				}
				return true, nil, &apierrors.StatusError{ErrStatus: metav1.Status{Status: metav1.StatusFailure, Code: code,
					Message: reason}}
			})
			for range 3 {
				if err := c.Reconcile(t.Context(), "ns/source"); err == nil {
					t.Fatal("the refusal is no error")
				}
			}
			want := removal + " failed, and is repeated with backoff: patch claim ns/source: " + reason
			if count := len(events.Events); count != 1 {
				t.Fatalf("%d events", count)
			}
			if got := <-events.Events; got != want {
				t.Errorf("event %q, want %q", got, want)
			}
		})
	}
}

// A clone is created after the index shows the deleted source as unneeded, and its worker
// reaches the source before the finalizer is removed.
func TestSourceIsReadAfterRemovalOfFinalizer(t *testing.T) {
	controller, client, claims := clones(t, claim("source", protected, deleting))
	synctest.Test(t, func(t *testing.T) {
		var removed atomic.Bool
		refused := make(chan error, 1)
		client.PrependReactor("patch", "persistentvolumeclaims", func(clienttesting.Action) (bool, runtime.Object, error) {
			if err := claims.Add(claim("clone", waitsForCloneOf("source"),
				func(c *v1.PersistentVolumeClaim) { c.UID = "clone" })); err != nil {
				t.Error(err)
			}
			go func() {
				controller.AwaitRemoval("ns/source")
				if !removed.Load() {
					t.Error("the source would be read while its finalizer is being removed")
					refused <- nil
					return
				}
				source, err := client.CoreV1().PersistentVolumeClaims("ns").Get(t.Context(), "source", metav1.GetOptions{})
				if err == nil {
					err = controller.Protect(t.Context(), source)
				}
				refused <- err
			}()
			synctest.Wait() // the worker waits, or is done
			removed.Store(true)
			return false, nil, nil
		})
		if err := controller.Reconcile(t.Context(), "ns/source"); err != nil {
			t.Fatal(err)
		}
		if err := <-refused; err == nil {
			t.Error("a source that is being deleted is cloned without its finalizer")
		}
	})
}

// A clone of another provisioner leaves the cache when it is bound. Its source, which is being
// deleted, loses the finalizer then.
func TestSourceOfForeignCloneLosesFinalizer(t *testing.T) {
	for name, deleted := range map[string]bool{"bound": false, "deleted while pending": true} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				source, clone := claim("source", protected, deleting), claim("clone", waitsForCloneOf("source"))
				source.UID, clone.UID = "source", "clone"
				now := metav1.Now()
				source.DeletionTimestamp = &now
				client := fake.NewClientset(source, clone)
				claims, _ := provisioning.NewClaims(client, provisioning.Names{Driver: "ours.example.com"})
				c, err := sources.NewClones(client, claims, kit.NewReporter(record.NewFakeRecorder(10)))
				if err != nil {
					t.Fatal(err)
				}
				go claims.RunWithContext(t.Context())
				cache.WaitForCacheSync(t.Context().Done(), claims.HasSynced)
				if err := c.Watch(t.Context()); err != nil {
					t.Fatal(err)
				}
				go c.Run(t.Context(), 1)
				<-time.After(time.Minute)
				if !isProtected(t, client, "source") {
					t.Fatal("the source of a pending clone lost the finalizer")
				}
				if deleted {
					err = client.CoreV1().PersistentVolumeClaims("ns").Delete(t.Context(), "clone", metav1.DeleteOptions{})
				} else {
					bound := clone.DeepCopy()
					bound.ResourceVersion, bound.Status.Phase, bound.Spec.VolumeName = "2", v1.ClaimBound, "static"
					_, err = client.CoreV1().PersistentVolumeClaims("ns").Update(t.Context(), bound, metav1.UpdateOptions{})
				}
				if err != nil {
					t.Fatal(err)
				}
				<-time.After(24 * time.Hour)
				if len(claims.GetStore().List()) > 1 {
					t.Errorf("cached: %d claims", len(claims.GetStore().List()))
				}
				if isProtected(t, client, "source") {
					t.Error("the source still has the finalizer after a day")
				}
			})
		})
	}
}

// etcd is restored to the version that the cache shows: no event follows the lost write.
func TestSourceOfUnseenWriteIsReconciled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		source := claim("source", protected, deleting)
		cloner, client, _ := clones(t, source)
		var lost atomic.Bool
		lost.Store(true)
		client.PrependReactor("patch", "persistentvolumeclaims", func(clienttesting.Action) (bool, runtime.Object, error) {
			written := source.DeepCopy()
			written.ResourceVersion, written.Finalizers = "2", []string{foreign}
			return lost.Load(), written, nil
		})
		working, end := context.WithCancel(t.Context())
		var running sync.WaitGroup
		running.Go(func() { cloner.Run(working, 1) })
		synctest.Wait()
		if err := cloner.Reconcile(t.Context(), "ns/source"); err != nil {
			t.Fatal(err)
		}
		lost.Store(false)
		<-time.After(3 * time.Minute)
		synctest.Wait()
		if isProtected(t, client, "source") {
			t.Error("the source is kept for ever")
		}
		end()
		running.Wait()
	})
}
