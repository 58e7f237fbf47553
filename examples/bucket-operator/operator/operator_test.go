package operator

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic/fake"
	clienttesting "k8s.io/client-go/testing"

	"github.com/exeunt-io/exeunt/pkg/alive"
)

// world is an operator that runs with a fake API server.
type world struct {
	*testing.T
	client    *fake.FakeDynamicClient
	operator  *Operator
	directory string
	log       bytes.Buffer
}

// start runs the operator, and returns once it is idle. Directories of the names exist before.
func start(t *testing.T, one *alive.Alive, directories ...string) *world {
	t.Helper()
	w := &world{T: t, directory: t.TempDir(), client: fake.NewSimpleDynamicClientWithCustomListKinds(runtime.NewScheme(),
		map[schema.GroupVersionResource]string{alive.Resource: "AliveList", Resource: "BucketList"})}
	for _, name := range directories {
		w.must(os.Mkdir(filepath.Join(w.directory, name), 0o755))
	}
	if one != nil {
		w.put(one)
	}
	w.run()
	return w
}

// run runs the operator until the test ends.
func (w *world) run() {
	w.Helper()
	var err error
	w.operator, err = New(w.client, w.directory, log.New(&w.log, "", 0))
	w.must(err)
	ctx, stop := context.WithCancel(w.Context())
	ended := make(chan error)
	go func() { ended <- w.operator.Run(ctx, func() {}) }()
	w.Cleanup(func() {
		stop()
		if err := <-ended; err != nil {
			w.Error(err)
		}
	})
	settle()
}

// settle returns once the operator is idle.
func settle() {
	synctest.Wait() // the watches have begun: the fake client loses what happens before
	<-time.After(lastRetry)
	synctest.Wait()
}

func (w *world) must(err error) {
	w.Helper()
	if err != nil {
		w.Fatal(err)
	}
}

// put writes Alive without its guards, and returns once the operator is idle.
func (w *world) put(one *alive.Alive) {
	w.Helper()
	object, err := alive.ToUnstructured(one)
	w.must(err)
	w.set(alive.Resource, object)
	settle()
}

func (w *world) set(resource schema.GroupVersionResource, object *unstructured.Unstructured) {
	w.Helper()
	tracker := w.client.Tracker()
	if _, err := tracker.Get(resource, object.GetNamespace(), object.GetName()); err != nil {
		w.must(tracker.Create(resource, object, object.GetNamespace()))
		return
	}
	w.must(tracker.Update(resource, object, object.GetNamespace()))
}

// bucket writes a Bucket, and returns once the operator is idle.
func (w *world) bucket(number int, change func(*unstructured.Unstructured)) {
	w.Helper()
	object := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "example.exeunt.io/v1", "kind": "Bucket",
		"metadata": map[string]any{"namespace": "default", "name": fmt.Sprint("b-", number), "uid": uidOf(number),
			"resourceVersion": "7"}}}
	change(object)
	w.set(Resource, object)
	settle()
}

func asMade(*unstructured.Unstructured) {}

func uidOf(number int) string { return fmt.Sprintf("0f8e1b1c-6d5c-4d52-9c53-%012d", number) }

// live returns the Bucket.
func (w *world) live(number int) *unstructured.Unstructured {
	w.Helper()
	object, err := w.client.Tracker().Get(Resource, "default", fmt.Sprint("b-", number))
	w.must(err)
	return object.(*unstructured.Unstructured)
}

// alive returns Alive as it is now.
func (w *world) alive() *alive.Alive {
	w.Helper()
	object, err := w.client.Tracker().Get(alive.Resource, "", alive.Name)
	w.must(err)
	one, err := alive.FromUnstructured(object.(*unstructured.Unstructured))
	w.must(err)
	return one
}

func (w *world) registered() bool {
	w.Helper()
	return slices.Contains(w.alive().Finalizers, Participant.Finalizer)
}

// count counts the directories of buckets.
func (w *world) count() int {
	w.Helper()
	names, err := w.operator.directories.all()
	w.must(err)
	return len(names)
}

// signaled is an Alive that lets the registered operator clean up.
func signaled() *alive.Alive {
	one := alive.New()
	now := metav1.Now()
	one.UID, one.ResourceVersion, one.DeletionTimestamp = "1", "7", &now
	one.Finalizers = append(one.Finalizers, Participant.Finalizer)
	one.Spec = alive.Spec{Protected: new(false), Confirm: "id", ConfirmedAt: &now}
	one.Status.Conditions = []metav1.Condition{{Type: alive.ConditionStarted, Status: metav1.ConditionTrue}}
	return one
}

// living is an Alive that is not deleted.
func living() *alive.Alive {
	one := alive.New()
	one.UID, one.ResourceVersion = "1", "7"
	return one
}

func TestBucketGetsFinalizerThenDirectoryOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := start(t, living())
		w.bucket(1, asMade)
		made, _, _ := unstructured.NestedString(w.live(1).Object, "status", "directory")
		if made != uidOf(1) || !slices.Equal(w.live(1).GetFinalizers(), []string{Finalizer}) || w.count() != 1 {
			t.Fatalf("directory %q, finalizers %v, %d directories", made, w.live(1).GetFinalizers(), w.count())
		}
		w.must(os.Remove(filepath.Join(w.directory, uidOf(1))))
		w.bucket(1, func(o *unstructured.Unstructured) {
			o.Object = w.live(1).DeepCopy().Object
			o.SetLabels(map[string]string{"changed": ""})
		})
		if w.count() != 0 {
			t.Error("a bucket that was lost is made again, and is empty")
		}
	})
}

func TestDeletedBucketLosesDirectoryThenFinalizer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := start(t, living())
		w.bucket(1, asMade)
		w.bucket(2, asMade)
		var fail atomic.Bool
		fail.Store(true)
		w.client.PrependReactor("patch", "buckets", func(clienttesting.Action) (bool, runtime.Object, error) {
			return fail.Load(), nil, errors.New("the answer is lost")
		})
		w.bucket(1, func(o *unstructured.Unstructured) {
			now := metav1.Now()
			o.Object = w.live(1).DeepCopy().Object
			o.SetDeletionTimestamp(&now)
			o.SetFinalizers([]string{Finalizer, "of.others/x"})
		})
		if w.count() != 1 || len(w.live(1).GetFinalizers()) != 2 {
			t.Errorf("%d directories, finalizers %v", w.count(), w.live(1).GetFinalizers())
		}
		fail.Store(false)
		settle()
		if w.count() != 1 || !slices.Equal(w.live(1).GetFinalizers(), []string{"of.others/x"}) {
			t.Errorf("%d directories, finalizers %v", w.count(), w.live(1).GetFinalizers())
		}
	})
}

// Each condition stands alone.
func TestBucketsStayUntilAllPermissionsHold(t *testing.T) {
	for name, tc := range map[string]struct {
		change func(*alive.Alive)
		left   int
	}{
		"all":         {func(*alive.Alive) {}, 0},
		"not deleted": {func(a *alive.Alive) { a.DeletionTimestamp = nil }, 2},
		"protected":   {func(a *alive.Alive) { a.Spec.Protected = new(true) }, 2},
		"not started": {func(a *alive.Alive) { a.Status.Conditions = nil }, 2},
		"no time":     {func(a *alive.Alive) { a.Spec.ConfirmedAt = nil }, 2},
		"restored": {func(a *alive.Alive) {
			a.Spec.ConfirmedAt = &metav1.Time{Time: time.Now().Add(-alive.DefaultTimeout)}
		}, 2},
		"not registered": {func(a *alive.Alive) { a.Finalizers = []string{alive.Finalizer} }, 2},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				one := signaled()
				tc.change(one)
				// No object has these directories: they were made, and etcd was restored from before.
				w := start(t, one, uidOf(1), uidOf(2), "notes")
				if w.count() != tc.left {
					t.Errorf("%d directories, want %d", w.count(), tc.left)
				}
				if want := tc.left > 0 && name != "not registered"; w.registered() != want {
					t.Errorf("finalizers %v, want ours: %v", w.alive().Finalizers, want)
				}
				if _, err := os.Stat(filepath.Join(w.directory, "notes")); err != nil {
					t.Errorf("what is no bucket: %v", err)
				}
			})
		})
	}
}

func TestPermissionThatEndsStopsTheRemoval(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := start(t, nil, uidOf(1), uidOf(2), uidOf(3))
		w.client.PrependReactor("get", "alives", func(clienttesting.Action) (bool, runtime.Object, error) {
			one := signaled()
			one.Spec.Protected = new(w.count() < 3)
			object, err := alive.ToUnstructured(one)
			return true, object, err
		})
		w.put(signaled()) // the informer goes on saying that the operator may
		if w.count() != 2 || !w.registered() {
			t.Errorf("%d directories, finalizers %v", w.count(), w.alive().Finalizers)
		}
	})
}

// unserved is what a client makes of "404 page not found".
func unserved() error {
	return apierrors.NewGenericServerResponse(http.StatusNotFound, "get", alive.Resource.GroupResource(), alive.Name,
		"404 page not found", 0, true)
}

func TestAnswerOfProxyEndsNoRemoval(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := start(t, nil, uidOf(1))
		reads := 0
		w.client.PrependReactor("get", "alives", func(clienttesting.Action) (bool, runtime.Object, error) {
			reads++
			return reads == 1, nil, unserved()
		})
		w.put(signaled())
		if w.count() != 0 || w.registered() {
			t.Errorf("%d directories, finalizers %v", w.count(), w.alive().Finalizers)
		}
	})
}

// An API server that does not serve the kind Alive answers as a proxy does.
func TestBucketIsMadeWithoutKindAlive(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := start(t, nil)
		w.client.PrependReactor("get", "alives", func(clienttesting.Action) (bool, runtime.Object, error) {
			return true, nil, unserved()
		})
		w.bucket(1, asMade)
		if w.count() != 1 || w.log.Len() > 0 {
			t.Errorf("%d directories, log: %s", w.count(), &w.log)
		}
	})
}

func TestBucketThatFailsKeepsTheFinalizer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := start(t, nil, uidOf(1))
		w.client.PrependReactor("get", "alives", func(clienttesting.Action) (bool, runtime.Object, error) {
			return false, nil, w.operator.directories.root.Close()
		})
		w.put(signaled())
		if !w.registered() {
			t.Error("the operator is done although a bucket is left")
		}
	})
}

func TestNoBucketIsMadeAfterTheEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := start(t, living())
		w.put(signaled())
		if w.registered() {
			t.Fatal("the operator is not done")
		}
		w.bucket(1, asMade)
		w.must(w.client.Tracker().Delete(alive.Resource, "", alive.Name))
		w.bucket(2, asMade)
		if w.count() != 0 {
			t.Fatalf("%d directories that nobody will remove", w.count())
		}
		w.put(living())
		if w.count() != 2 || !w.registered() {
			t.Errorf("with a new Alive: %d directories, finalizers %v", w.count(), w.alive().Finalizers)
		}
	})
}

// A directory that is made now would stay: an Alive that is being deleted takes no participant.
func TestLateOperatorMakesNoBucket(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		late := signaled()
		late.Finalizers, late.Status = []string{alive.Finalizer}, alive.Status{}
		w := start(t, late)
		w.bucket(1, asMade)
		if w.count() != 0 || len(w.live(1).GetFinalizers()) != 0 {
			t.Errorf("%d directories, finalizers %v", w.count(), w.live(1).GetFinalizers())
		}
	})
}

// A webhook denies with the code of its choice, also with that of an object that has changed.
func TestDeniedWriteIsLogged(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := start(t, living())
		w.client.PrependReactor("patch", "buckets", func(clienttesting.Action) (bool, runtime.Object, error) {
			return true, nil, apierrors.NewConflict(Resource.GroupResource(), "b-1", errors.New("denied by w.example"))
		})
		w.bucket(1, asMade)
		if !strings.Contains(w.log.String(), "denied by w.example; tried again") {
			t.Errorf("log: %s", &w.log)
		}
	})
}

func TestRegisteredOperatorIsIdle(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := start(t, living())
		w.bucket(1, asMade)
		before := len(w.client.Actions())
		<-time.After(time.Hour)
		synctest.Wait()
		if after := w.client.Actions()[before:]; len(after) != 0 {
			t.Errorf("requests without a change: %v", after)
		}
	})
}
