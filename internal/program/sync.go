package program

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/informers"
	"k8s.io/klog/v2"

	"github.com/exeunt-io/exeunt/pkg/controller"
)

const (
	// probeInterval is the time between two requests to an API server that does not
	// answer, probeTimeout how long an answer may take.
	probeInterval = 2 * time.Second
	probeTimeout  = 10 * time.Second
)

// WaitForAPIServer waits until the API server answers, also with an error: it may be
// unreachable for a while, as during a restart of its node. It returns false if the
// context ended first.
func (c *Clients) WaitForAPIServer(ctx context.Context) bool {
	defer controller.LogRepeatedly(ctx, func() { c.logUnreachable(ctx) })()
	for first := true; !c.answers(ctx); first = false {
		if first && ctx.Err() == nil {
			c.logUnreachable(ctx)
		}
		next := time.NewTimer(probeInterval)
		select {
		case <-ctx.Done():
			next.Stop()
			return false
		case <-next.C:
		}
	}
	return true
}

func (c *Clients) logUnreachable(ctx context.Context) {
	klog.FromContext(ctx).Info("The API server does not answer; waiting for it (--kubeconfig, --master)", "server",
		c.Config.Host, "err", c.failures.last())
}

func (c *Clients) answers(ctx context.Context) bool {
	probing, cancel := context.WithTimeout(ctx, probeTimeout)
	defer cancel()
	err := c.Objects.Discovery().RESTClient().Get().AbsPath("/version").Do(probing).Error()
	var answer apierrors.APIStatus
	return err == nil || errors.As(err, &answer)
}

// WaitForCacheSync is [controller.WaitForCacheSync], whose log names the API server and the last
// failed request.
func (c *Clients) WaitForCacheSync(ctx context.Context, factory informers.SharedInformerFactory) bool {
	return controller.WaitForCacheSync(ctx, factory, func() []any {
		return []any{"server", c.Config.Host, "err", c.failures.last()}
	})
}

// failures records the last failed request of all clients.
type failures struct {
	mu   sync.Mutex
	path string
	err  error
}

// last returns the last failure, nil if the same path was requested successfully since.
func (f *failures) last() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.err
}

// wrap returns a RoundTripper that records failures.
func (f *failures) wrap(next http.RoundTripper) http.RoundTripper {
	return recordingRoundTripper{next, f}
}

type recordingRoundTripper struct {
	http.RoundTripper
	failures *failures
}

// RoundTrip sends one request and records whether it failed.
func (r recordingRoundTripper) RoundTrip(request *http.Request) (*http.Response, error) {
	response, err := r.RoundTripper.RoundTrip(request)
	switch {
	case err != nil && request.Context().Err() == nil:
		r.failures.record(request, err)
	case err == nil && response.StatusCode >= http.StatusBadRequest:
		r.failures.record(request, fmt.Errorf("%s %s: %s", request.Method, request.URL.Path, response.Status))
	case err == nil:
		r.failures.record(request, nil)
	}
	return response, err
}

// WrappedRoundTripper enables client-go to close the idle connections of the transport.
func (r recordingRoundTripper) WrappedRoundTripper() http.RoundTripper { return r.RoundTripper }

func (f *failures) record(request *http.Request, err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if err != nil || f.path == request.URL.Path {
		f.path, f.err = request.URL.Path, err
	}
}
