package protection

import (
	"errors"
	"fmt"
	"net/http"
	"slices"
	"testing"

	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/record"
	"k8s.io/utils/ptr"

	"github.com/exeunt-io/exeunt/pkg/controller"
	"github.com/exeunt-io/exeunt/pkg/finalizer"
	"github.com/exeunt-io/exeunt/pkg/pvcontroller/pvcache"
)

// newController returns a controller whose caches have the objects, and its queue. The API
// server has the live objects.
func newController(t *testing.T, cached []runtime.Object,
	live ...runtime.Object) (*Controller, *fake.Clientset, *controller.Stepped) {
	t.Helper()
	client := fake.NewClientset(live...)
	caches, err := pvcache.New(informers.NewSharedInformerFactory(client, 0))
	if err != nil {
		t.Fatal(err)
	}
	for _, object := range cached {
		informer := cache.SharedIndexInformer(caches.Claims)
		if _, isPod := object.(*v1.Pod); isPod {
			informer = caches.Pods
		}
		if err := informer.GetStore().Add(object); err != nil {
			t.Fatal(err)
		}
	}
	c := New(Config{Client: client, Caches: caches, Versions: controller.NewVersions(),
		Reporter: controller.NewReporter(record.NewFakeRecorder(10))})
	return c, client, c.Loops()[0].Step()
}

// claimOf returns the claim shop/data with another finalizer, and pvc-protection.
func claimOf(change ...func(*v1.PersistentVolumeClaim)) *v1.PersistentVolumeClaim {
	claim := &v1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{
		Namespace: "shop", Name: "data", UID: "uid-1", ResourceVersion: "7",
		Finalizers: []string{"example.com/backup", string(finalizer.ClaimProtection)},
	}}
	for _, f := range change {
		f(claim)
	}
	return claim
}

func inDeletion(claim *v1.PersistentVolumeClaim)  { claim.DeletionTimestamp = ptr.To(metav1.Now()) }
func unprotected(claim *v1.PersistentVolumeClaim) { claim.Finalizers = claim.Finalizers[:1] }
func replaced(claim *v1.PersistentVolumeClaim)    { claim.UID = "uid-9" }

func TestReconcileOfClaim(t *testing.T) {
	web := podOf("web")
	list, patch := "list pods", "patch persistentvolumeclaims"
	for name, tc := range map[string]struct {
		cached, live []runtime.Object
		requests     []string
		protected    bool
		stale        bool
	}{
		"new claim":                     {[]runtime.Object{claimOf(unprotected)}, []runtime.Object{claimOf(unprotected)}, []string{patch}, true, false},
		"new claim of a running pod":    {[]runtime.Object{claimOf(unprotected), web}, []runtime.Object{claimOf(unprotected), web}, []string{patch}, true, false},
		"protected claim":               {[]runtime.Object{claimOf()}, []runtime.Object{claimOf()}, nil, true, false},
		"deleted claim, cached pod":     {[]runtime.Object{claimOf(inDeletion), web}, []runtime.Object{claimOf(inDeletion)}, nil, true, false},
		"deleted claim, no pod":         {[]runtime.Object{claimOf(inDeletion)}, []runtime.Object{claimOf(inDeletion)}, []string{list, patch}, false, false},
		"deleted claim, pod not cached": {[]runtime.Object{claimOf(inDeletion)}, []runtime.Object{claimOf(inDeletion), web}, []string{list}, true, true},
		"claim gone from the cache":     {nil, []runtime.Object{claimOf()}, nil, true, false},
		"new claim, replaced since":     {[]runtime.Object{claimOf(unprotected)}, []runtime.Object{claimOf(unprotected, replaced)}, []string{patch}, false, true},
		"deleted claim, replaced since": {[]runtime.Object{claimOf(inDeletion)}, []runtime.Object{claimOf(replaced)}, []string{list, patch}, true, true},
		"deleted claim, restored since": {[]runtime.Object{claimOf(inDeletion)}, []runtime.Object{claimOf()}, []string{list, patch}, true, true},
		"deleted claim without protection": {[]runtime.Object{claimOf(inDeletion, unprotected)},
			[]runtime.Object{claimOf(inDeletion, unprotected)}, nil, false, false},
	} {
		t.Run(name, func(t *testing.T) {
			c, client, _ := newController(t, tc.cached, tc.live...)
			err := c.Reconcile(t.Context(), "shop/data")
			if (err != nil) != tc.stale {
				t.Errorf("Reconcile() = %v, want an error: %v", err, tc.stale)
			}
			var requests []string
			for _, action := range client.Actions() {
				requests = append(requests, action.GetVerb()+" "+action.GetResource().Resource)
			}
			if !slices.Equal(requests, tc.requests) {
				t.Errorf("requests %q, want %q", requests, tc.requests)
			}
			now, err := client.CoreV1().PersistentVolumeClaims("shop").Get(t.Context(), "data", metav1.GetOptions{})
			if err != nil || finalizer.Has(now.Finalizers, finalizer.ClaimProtection) != tc.protected {
				t.Errorf("claim %v, %v, want protected: %v", now, err, tc.protected)
			}
		})
	}
}

func TestPodMissingInCacheIsStaleCache(t *testing.T) {
	c, _, queue := newController(t, []runtime.Object{claimOf(inDeletion)}, claimOf(inDeletion), podOf("web"))
	if err := c.Reconcile(t.Context(), "shop/data"); !errors.Is(err, controller.ErrStaleCache) {
		t.Errorf("Reconcile() = %v, want %v", err, controller.ErrStaleCache)
	}
	queue.Reconcile(t.Context(), "shop/data")
	if _, later := queue.Keys(); !slices.Equal(later, []string{"shop/data"}) {
		t.Errorf("requeued %q, want the claim", later)
	}
}

func TestClaimOlderThanOwnWriteIsRequeued(t *testing.T) {
	c, client, _ := newController(t, []runtime.Object{claimOf(unprotected)}, claimOf())
	c.versions.RecordWrite(claimOf(func(claim *v1.PersistentVolumeClaim) { claim.ResourceVersion = "8" }))
	if err := c.Reconcile(t.Context(), "shop/data"); !errors.Is(err, controller.ErrStaleCache) ||
		len(client.Actions()) > 0 {
		t.Errorf("Reconcile() = %v, requests %v, want %v", err, client.Actions(), controller.ErrStaleCache)
	}
}

// grace is a pod that is being deleted, with the seconds as its grace period. Each event
// brings a copy of its own.
func grace(seconds int64) *v1.Pod {
	return podOf("web", func(pod *v1.Pod) {
		pod.DeletionTimestamp, pod.DeletionGracePeriodSeconds = ptr.To(metav1.Now()), ptr.To(seconds)
	})
}

func TestPodEnqueuesDeletedClaims(t *testing.T) {
	for name, tc := range map[string]struct {
		claim    *v1.PersistentVolumeClaim
		old, now *v1.Pod // no new pod: the pod is gone
		enqueued bool
	}{
		"pod deleted":                 {claimOf(inDeletion), podOf("web"), grace(30), true},
		"pod terminated":              {claimOf(inDeletion), grace(30), grace(0), true},
		"pod gone":                    {claimOf(inDeletion), podOf("web"), nil, true},
		"new pod":                     {claimOf(inDeletion), nil, podOf("web"), false},
		"new status":                  {claimOf(inDeletion), podOf("web"), podOf("web"), false},
		"new status, pod in deletion": {claimOf(inDeletion), grace(30), grace(30), false},
		"claim not deleted":           {claimOf(), podOf("web"), nil, false},
		"claim gone":                  {nil, podOf("web"), nil, false},
	} {
		t.Run(name, func(t *testing.T) {
			var cached []runtime.Object
			if tc.claim != nil {
				cached = append(cached, tc.claim)
			}
			c, _, queue := newController(t, cached)
			if tc.now == nil {
				c.podGone(tc.old)
			} else {
				c.podChanged(tc.old, tc.now)
			}
			if due, _ := queue.Keys(); (len(due) > 0) != tc.enqueued {
				t.Errorf("enqueued %q, want the claim: %v", due, tc.enqueued)
			}
		})
	}
}

// Another server behind the address of the API server answers with an empty page: the claim of a
// running pod keeps its protection.
func TestPageOfAnotherServerIsNoListOfPods(t *testing.T) {
	c, client, _ := newController(t, []runtime.Object{claimOf(inDeletion)}, claimOf(inDeletion), podOf("web"))
	client.PrependReactor("list", "pods",
		func(clienttesting.Action) (bool, runtime.Object, error) { return true, &v1.PodList{}, nil })
	if err := c.Reconcile(t.Context(), "shop/data"); err == nil {
		t.Error("no error")
	}
	now, err := client.CoreV1().PersistentVolumeClaims("shop").Get(t.Context(), "data", metav1.GetOptions{})
	if err != nil || !finalizer.Has(now.Finalizers, finalizer.ClaimProtection) {
		t.Errorf("claim %v, %v, want it protected", now, err)
	}
}

// A webhook or quota refuses the write of the finalizer: without an event nothing says why the claim stays.
func TestRefusedWriteOfFinalizerIsReported(t *testing.T) {
	for write, claim := range map[string]*v1.PersistentVolumeClaim{"Adding": claimOf(unprotected),
		"Removing": claimOf(inDeletion)} {
		for _, code := range []int32{http.StatusBadRequest, http.StatusNotFound, http.StatusConflict,
			http.StatusUnprocessableEntity} {
			t.Run(fmt.Sprintf("%s, %d", write, code), func(t *testing.T) {
				events := record.NewFakeRecorder(10)
				c, client, _ := newController(t, []runtime.Object{claim}, claim)
				c.reporter = controller.NewReporter(events)
				client.PrependReactor("patch", "persistentvolumeclaims", func(clienttesting.Action) (bool, runtime.Object, error) {
					return true, nil, &apierrors.StatusError{ErrStatus: metav1.Status{Status: metav1.StatusFailure, Code: code,
						Message: `admission webhook "w" denied the request`}}
				})
				for range 3 {
					if err := c.Reconcile(t.Context(), "shop/data"); err == nil {
						t.Fatal("the refusal is no error")
					}
				}
				want := "Warning WriteRefused " + write +
					` the finalizer kubernetes.io/pvc-protection failed, and is repeated with backoff: patch claim shop/data: admission webhook "w" denied the request`
				if count := len(events.Events); count != 1 {
					t.Fatalf("%d events", count)
				}
				if got := <-events.Events; got != want {
					t.Errorf("event %q, want %q", got, want)
				}
			})
		}
	}
}
