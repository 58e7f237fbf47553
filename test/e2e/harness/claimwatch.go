package harness

import (
	"strings"
	"sync"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/tools/cache"
)

// ClaimWatch records the finalizers of the claims of a test, and when claims were deleted.
type ClaimWatch struct {
	mu    sync.Mutex
	found map[string]sets.Set[string]
	gone  map[string]time.Time
	seen  int
}

// WatchClaims watches the claims in all namespaces whose name begins with the test's namespace.
func (s *Session) WatchClaims() *ClaimWatch {
	s.T.Helper()
	w := &ClaimWatch{found: map[string]sets.Set[string]{}, gone: map[string]time.Time{}}
	factory := informers.NewSharedInformerFactory(s.Client, 0)
	note := func(object any, gone bool) {
		claim, is := object.(*v1.PersistentVolumeClaim)
		if !is || !strings.HasPrefix(claim.Namespace, s.Namespace) {
			return
		}
		w.mu.Lock()
		defer w.mu.Unlock()
		w.seen++
		if gone {
			w.gone[claim.Name] = time.Now()
		}
		for _, f := range claim.Finalizers {
			if f != "kubernetes.io/pvc-protection" {
				w.found[claim.Name] = sets.New(f).Union(w.found[claim.Name])
			}
		}
	}
	informer := factory.Core().V1().PersistentVolumeClaims().Informer()
	_, err := informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    func(object any) { note(object, false) },
		UpdateFunc: func(_, object any) { note(object, false) },
		DeleteFunc: func(object any) { note(object, true) },
	})
	s.Must(err, "watch claims")
	factory.StartWithContext(s.Ctx)
	s.T.Cleanup(factory.Shutdown)
	return w
}

// GoneAt returns when the watch reported the deletion of the claim.
func (w *ClaimWatch) GoneAt(claim string) (time.Time, bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	at, is := w.gone[claim]
	return at, is
}

// ExpectNoFinalizer fails the test if a claim ever had a finalizer other than pvc-protection.
func (w *ClaimWatch) ExpectNoFinalizer(t testing.TB) {
	t.Helper()
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.seen == 0 || len(w.found) > 0 {
		t.Errorf("%d changes of claims seen; claims with other finalizers than pvc-protection: %v", w.seen, w.found)
	}
}
