package protection

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes/fake"

	"github.com/exeunt-io/exeunt/pkg/controller"
	"github.com/exeunt-io/exeunt/pkg/pvcontroller/pvcache"
)

// lister answers after a second and remembers when each list started.
type lister struct {
	mu      sync.Mutex
	started []time.Time
	err     error
}

func (l *lister) list(context.Context, string) ([]*v1.Pod, error) {
	l.mu.Lock()
	l.started = append(l.started, time.Now())
	l.mu.Unlock()
	<-time.After(time.Second)
	return []*v1.Pod{{}}, l.err
}

func TestListStartsAfterCall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := &lister{}
		pods := newLivePods(l.list)
		var callers sync.WaitGroup
		for i := range 30 {
			callers.Go(func() {
				<-time.After(time.Duration(i) * 100 * time.Millisecond)
				came := time.Now()
				if _, err := pods.List(t.Context(), "ns"); err != nil {
					t.Error(err)
				}
				l.mu.Lock()
				defer l.mu.Unlock()
				served := false
				for _, start := range l.started {
					served = served || !start.Before(came) && start.Add(time.Second).Compare(time.Now()) <= 0
				}
				if !served {
					t.Errorf("caller %d got a list that started before it came", i)
				}
			})
		}
		callers.Wait()
		if lists := len(l.started); lists > 5 {
			t.Errorf("30 callers in 3 seconds took %d lists of a second, want them shared", lists)
		}
	})
}

func TestFailedListIsRepeated(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := &lister{err: errors.New("no")}
		pods := newLivePods(l.list)
		if _, err := pods.List(t.Context(), "ns"); err == nil {
			t.Error("the error was lost")
		}
		l.err = nil
		if found, err := pods.List(t.Context(), "ns"); err != nil || len(found) != 1 {
			t.Errorf("List = %v, %v", found, err)
		}
	})
}

func TestCanceledCallerReturns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		pods := newLivePods((&lister{}).list)
		ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
		defer cancel()
		if _, err := pods.List(ctx, "ns"); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("List = %v", err)
		}
		<-time.After(2 * time.Second) // the list itself goes on
	})
}

func TestDeletedClaimsShareLists(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const claims, requests = 500, 16
		var objects []runtime.Object
		for i := range claims {
			objects = append(objects, claimOf(inDeletion, func(c *v1.PersistentVolumeClaim) {
				c.Name, c.UID = fmt.Sprint("data-", i), types.UID(fmt.Sprint("uid-", i))
			}))
		}
		client := fake.NewClientset(objects...)
		caches, err := pvcache.New(informers.NewSharedInformerFactory(client, 0))
		if err != nil {
			t.Fatal(err)
		}
		c, l := New(Config{Client: client, Caches: caches, Versions: controller.NewVersions()}), &lister{}
		c.pods = newLivePods(func(ctx context.Context, namespace string) ([]*v1.Pod, error) {
			_, err := l.list(ctx, namespace)
			return nil, err
		})
		for _, object := range objects {
			if err := caches.Claims.GetStore().Add(object); err != nil {
				t.Fatal(err)
			}
			c.loop.Enqueue(controller.Key(object.(*v1.PersistentVolumeClaim)))
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		c.Run(ctx, requests)
		patches := 0
		for _, action := range client.Actions() {
			if action.GetVerb() == "patch" {
				patches++
			}
		}
		if lists := len(l.started); patches != claims || lists > 2*claims/(requests*claimsPerRequest)+2 {
			t.Errorf("%d claims took %d lists and %d patches", claims, lists, patches)
		}
	})
}

func TestRequestsAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := &Controller{requests: make(chan struct{}, 3)}
		var callers sync.WaitGroup
		start := time.Now()
		for range 9 {
			callers.Go(func() {
				end, err := c.begin(t.Context())
				if err != nil {
					t.Error(err)
					return
				}
				<-time.After(time.Second)
				end()
			})
		}
		callers.Wait()
		if took := time.Since(start); took != 3*time.Second {
			t.Errorf("9 requests of a second, 3 at once, took %v", took)
		}
		for range 3 {
			_, _ = c.begin(t.Context())
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, err := c.begin(ctx); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("a fourth request began: %v", err)
		}
	})
}

// A write that had to wait for its turn rests on an old list of pods: only the caches tell
// of a pod that was created since.
func TestPodCreatedWhileWriteWaitsKeepsProtection(t *testing.T) {
	for name, tc := range map[string]struct {
		pods    []any
		err     error
		patches int
	}{
		"no pod":            {nil, nil, 1},
		"a pod was created": {[]any{podOf("web")}, controller.ErrStaleCache, 0},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				claim := claimOf(inDeletion)
				client := fake.NewClientset(claim)
				caches, err := pvcache.New(informers.NewSharedInformerFactory(client, 0))
				if err != nil {
					t.Fatal(err)
				}
				c := New(Config{Client: client, Caches: caches, Versions: controller.NewVersions()})
				c.pods, c.requests = newLivePods((&lister{}).list), make(chan struct{}, 1)
				end, err := c.begin(t.Context())
				if err := errors.Join(err, caches.Claims.GetStore().Add(claim)); err != nil {
					t.Fatal(err)
				}
				ended := make(chan error)
				go func() { ended <- c.Reconcile(t.Context(), controller.Key(claim)) }()
				<-time.After(time.Minute)
				if err := caches.Pods.GetStore().Replace(tc.pods, ""); err != nil {
					t.Fatal(err)
				}
				end()
				if err := <-ended; !errors.Is(err, tc.err) || len(client.Actions()) != tc.patches {
					t.Errorf("%v after %v, want %v after %d patches", err, client.Actions(), tc.err, tc.patches)
				}
				stopped, stop := context.WithCancel(t.Context())
				stop()
				c.loop.Run(stopped, 1)
			})
		})
	}
}
