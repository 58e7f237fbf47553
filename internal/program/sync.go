package program

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/informers"
	"k8s.io/klog/v2"
)

const (
	// said is how often it is said that something is still waited for.
	said = 10 * time.Second
	// tried is how long after a request that got no answer the next one is sent, and
	// patience how long an answer may take.
	tried    = 2 * time.Second
	patience = 10 * time.Second
)

// WaitForAPIServer waits until the API server answers, whatever its answer is: it may be away
// for a while, as when its node is started anew. It returns false if the context
// ended first.
func (c *Clients) WaitForAPIServer(ctx context.Context) bool {
	told := c.tell(ctx, func() { c.sayUnreached(ctx) })
	defer told()
	for first := true; !c.answers(ctx); first = false {
		if first && ctx.Err() == nil {
			c.sayUnreached(ctx)
		}
		next := time.NewTimer(tried)
		select {
		case <-ctx.Done():
			next.Stop()
			return false
		case <-next.C:
		}
	}
	return true
}

func (c *Clients) sayUnreached(ctx context.Context) {
	klog.FromContext(ctx).Info("The API server does not answer; waiting for it (--kubeconfig, --master)", "server", c.Config.Host, "err", c.failures.last())
}

func (c *Clients) answers(ctx context.Context) bool {
	asking, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	err := c.Objects.Discovery().RESTClient().Get().AbsPath("/version").Do(asking).Error()
	var answer apierrors.APIStatus
	return err == nil || errors.As(err, &answer)
}

// WaitForCacheSync waits until every informer of the factory, which has been started, has
// its first list. It logs from time to time which informers have none, and the last
// failed request: informers do not log that the server is unreachable. It returns false
// if the context ended first.
func (c *Clients) WaitForCacheSync(ctx context.Context, factory informers.SharedInformerFactory) bool {
	told := c.tell(ctx, func() {
		klog.FromContext(ctx).Info("Still waiting for the API server to fill caches", "server", c.Config.Host, "missing", missing(factory), "err", c.failures.last())
	})
	defer told()
	return factory.WaitForCacheSyncWithContext(ctx).Err == nil
}

// missing returns the kinds whose informer has no list yet.
func missing(factory informers.SharedInformerFactory) []string {
	now, cancel := context.WithCancel(context.Background())
	cancel()
	var kinds []string
	for kind, synced := range factory.WaitForCacheSyncWithContext(now).Synced {
		if !synced {
			kinds = append(kinds, kind.Elem().Name())
		}
	}
	slices.Sort(kinds)
	return kinds
}

// tell says something again and again until the function that it returns is called.
func (c *Clients) tell(ctx context.Context, say func()) (stop func()) {
	telling, cancel := context.WithCancel(ctx)
	var teller sync.WaitGroup
	teller.Go(func() {
		ticker := time.NewTicker(said)
		defer ticker.Stop()
		for {
			select {
			case <-telling.Done():
				return
			case <-ticker.C:
				say()
			}
		}
	})
	return func() {
		cancel()
		teller.Wait()
	}
}

// failures knows of the requests of all clients the last one that failed.
type failures struct {
	mu   sync.Mutex
	path string
	err  error
}

// last is nil if nothing has failed, or that has succeeded since.
func (f *failures) last() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.err
}

// watch looks at what becomes of requests.
func (f *failures) watch(next http.RoundTripper) http.RoundTripper {
	return watched{next, f}
}

type watched struct {
	http.RoundTripper
	failures *failures
}

// RoundTrip sends one request.
func (w watched) RoundTrip(request *http.Request) (*http.Response, error) {
	response, err := w.RoundTripper.RoundTrip(request)
	switch {
	case err != nil && request.Context().Err() == nil:
		w.failures.note(request, err)
	case err == nil && response.StatusCode >= http.StatusBadRequest:
		w.failures.note(request, fmt.Errorf("%s %s: %s", request.Method, request.URL.Path, response.Status))
	case err == nil:
		w.failures.note(request, nil)
	}
	return response, err
}

// WrappedRoundTripper is for client-go, which closes the connections below.
func (w watched) WrappedRoundTripper() http.RoundTripper { return w.RoundTripper }

func (f *failures) note(request *http.Request, err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if err != nil || f.path == request.URL.Path {
		f.path, f.err = request.URL.Path, err
	}
}
