package teardown

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"

	core "github.com/exeunt-io/exeunt/pkg/teardown"
	"github.com/exeunt-io/exeunt/pkg/teardown/runner"
	"github.com/exeunt-io/exeunt/test/e2e/harness"
	"github.com/exeunt-io/exeunt/test/faultproxy"
)

// The API server is killed while disks are deleted.
func TestRestartAmidDeletionsIsSurvived(t *testing.T) {
	setup := stock
	setup.Restarts = true
	r := newRig(t, setup)
	const claims = 10
	for i := range claims {
		r.CreateClaim(fmt.Sprint("data-", i), []string{harness.DeleteClass, harness.RetainClass}[i%2])
	}
	disks := r.awaitDisks(claims)
	var restarting sync.WaitGroup
	restarting.Go(func() {
		harness.Await(r.Session, &v1.PersistentVolumeClaim{}, harness.ObjectName{Resource: "persistentvolumeclaims",
			Namespace: r.Namespace, Name: "data-0"}, "is deleted", func(c *v1.PersistentVolumeClaim, exists bool) bool {
			return !exists || c.DeletionTimestamp != nil
		})
		if err := r.Plane.Restart(r.Ctx, func() error { return nil }); err != nil {
			t.Errorf("restart the API server: %v", err)
		}
	})
	r.mustComplete()
	restarting.Wait()
	r.expectDisks(disks...)
	for _, d := range disks {
		if d.stays && r.CountCalls("DeleteVolume", d.handle) > 0 {
			t.Errorf("DeleteVolume was called for the kept disk %s", d.name)
		}
	}
}

// overload refuses the first deletion of each object, and notes when it is tried again.
type overload struct {
	date func() string

	mu      sync.Mutex
	refused map[string]time.Time
	waits   []time.Duration
}

const retryAfter = 2 * time.Second

func (o *overload) wrap(forward http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, request *http.Request) {
		if request.Method == http.MethodDelete && o.refuses(request.URL.Path) {
			w.Header().Set("Retry-After", fmt.Sprint(retryAfter.Seconds()))
			w.Header().Set("Date", o.date())
			http.Error(w, "too many requests", http.StatusTooManyRequests)
			return
		}
		forward.ServeHTTP(w, request)
	})
}

func (o *overload) refuses(path string) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	at, again := o.refused[path]
	if again {
		o.waits = append(o.waits, time.Since(at))
		return false
	}
	o.refused[path] = time.Now()
	return true
}

// The clock of this machine is an hour behind that of the API server, which is overloaded.
func TestCommandObeysRetryAfterAndServerTime(t *testing.T) {
	r := newRig(t, stock)
	disks := []disk{r.addDynamic("a", harness.DeleteClass), r.addDynamic("b", harness.DeleteClass),
		keep(r.addDynamic("c", harness.RetainClass))}
	r.createUser("user", "a")
	began := time.Now()
	server := func() time.Time { return time.Now().Add(time.Hour) }
	o := &overload{refused: map[string]time.Time{}, date: func() string { return server().UTC().Format(http.TimeFormat) }}
	file := r.through(faultproxy.Config{Wrap: o.wrap, Change: func(response *http.Response) error {
		response.Header.Set("Date", o.date())
		return nil
	}})
	e := r.command(file, "--confirm="+r.id(), "-o", "json")
	report := r.document(e)
	if e.code != 0 || report.Phase != core.Complete {
		t.Fatalf("exit code %d, phase %s:\n%s", e.code, report.Phase, e.errors)
	}
	r.expectDisks(disks...)
	if report.Started.Before(began.Add(time.Hour-time.Minute)) || report.Started.After(server().Add(time.Minute)) {
		t.Errorf("started at %s, the API server's time is %s", report.Started, server())
	}
	if len(o.waits) < len(disks) { // Alive, the pod and two claims
		t.Errorf("%d deletions were refused: %v", len(o.waits), o.refused)
	}
	for _, wait := range o.waits {
		if wait < retryAfter {
			t.Errorf("a refused deletion was tried again after %s, Retry-After was %s", wait, retryAfter)
		}
	}
}

// Row 66, after the start: what was not read may be left. The last lists fail three times, when nothing is left.
func TestUnreadListEndsNoTeardown(t *testing.T) {
	r := newRig(t, stock)
	goes := r.addDynamic("data", harness.DeleteClass)
	const fails = 3
	var failed atomic.Int32
	connection := r.Plane.RESTConfig()
	connection.Wrap(func(next http.RoundTripper) http.RoundTripper {
		return transport(func(request *http.Request) (*http.Response, error) {
			listed := strings.HasSuffix(request.URL.Path, "/persistentvolumes") && !request.URL.Query().Has("watch")
			if listed && r.CountCalls("DeleteVolume", goes.handle) > 0 && failed.Add(1) <= fails {
				return nil, errors.New("the connection is lost")
			}
			return next.RoundTrip(request)
		})
	})
	outcome, err := runner.New(r.configFor(connection)).Teardown(r.Ctx, runner.Word{Timeout: time.Hour})
	if err != nil || outcome.Phase != core.Complete {
		t.Errorf("the teardown ended with %+v, %v", outcome, err)
	}
	if failed.Load() < fails+2 {
		t.Errorf("the teardown was complete after %d lists, of which %d failed, want two that do not", failed.Load(), fails)
	}
	r.expectDisks(goes)
}
