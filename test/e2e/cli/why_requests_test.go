package cli

import (
	"fmt"
	"net/http"
	"os"
	"runtime"
	"strconv"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/rest"

	"github.com/exeunt-io/exeunt/pkg/blocker"
	"github.com/exeunt-io/exeunt/pkg/why"
	"github.com/exeunt-io/exeunt/pkg/why/cluster"
)

// maxRequests is the number of requests of a storage chain, apart from further pages of lists.
const maxRequests = 20

// requests counts requests by their path, and further pages of lists.
type requests struct {
	mu    sync.Mutex
	first map[string]int
	pages int
}

func (c *requests) total() int {
	total := 0
	for _, count := range c.first {
		total += count
	}
	return total
}

// wrap counts the requests of a connection.
func (c *requests) wrap(next http.RoundTripper) http.RoundTripper {
	return roundTripperFunc(func(request *http.Request) (*http.Response, error) {
		c.count(request)
		return next.RoundTrip(request)
	})
}

func (c *requests) count(request *http.Request) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if query := request.URL.Query(); query.Get("continue") != "" {
		c.pages++
	} else {
		c.first[request.URL.Path+" "+query.Get("fieldSelector")+query.Get("labelSelector")]++
	}
}

type roundTripperFunc func(*http.Request) (*http.Response, error)

func (f roundTripperFunc) RoundTrip(request *http.Request) (*http.Response, error) { return f(request) }

// volumesInCluster is EXEUNT_VOLUMES: 50,000 takes minutes. The default has three pages.
func volumesInCluster() int {
	if many, err := strconv.Atoi(os.Getenv("EXEUNT_VOLUMES")); err == nil {
		return many
	}
	return 1200
}

func TestStorageChainTakesFewRequests(t *testing.T) {
	l := open(t, current)
	l.furnish()
	many := volumesInCluster()
	l.createVolumes(many)
	for _, name := range []string{"released", "bound"} {
		counted := &requests{first: map[string]int{}}
		explorer := l.explorer(counted)
		begin := time.Now()
		report, err := explorer.Explain(l.ctx,
			cluster.Ref{Resource: corev1.SchemeGroupVersion.WithResource("persistentvolumes"), Kind: "PersistentVolume",
				Name: name})
		l.must(err, "explain")
		t.Logf("%d volumes, pv/%s: %v, %d requests and %d further pages, %v", many, name, report.Verdict, counted.total(),
			counted.pages, time.Since(begin).Round(time.Millisecond))
		if counted.total() > maxRequests {
			t.Errorf("pv/%s took %d requests, want at most %d: %v", name, counted.total(), maxRequests, counted.first)
		}
		for path, count := range counted.first {
			if count > 1 {
				t.Errorf("pv/%s was asked for %s %d times", name, path, count)
			}
		}
	}
	l.measureSurvey(many)
}

// measureSurvey lists all that waits: every kind is listed once.
func (l *whyServer) measureSurvey(many int) {
	l.t.Helper()
	counted := &requests{first: map[string]int{}}
	begin := time.Now()
	survey, err := l.explorer(counted).All(l.ctx, why.Scope{})
	l.must(err, "explain all")
	var memory runtime.MemStats
	runtime.ReadMemStats(&memory)
	l.t.Logf("%d volumes, --all: %d objects wait, %d requests and %d further pages, %v, %d MB from the system", many,
		len(survey.Items),
		counted.total(), counted.pages, time.Since(begin).Round(time.Millisecond), memory.Sys>>20)
	if count := counted.first["/api/v1/persistentvolumes "]; count != 1 {
		l.t.Errorf("--all lists volumes %d times, want once", count)
	}
	for _, item := range survey.Items {
		if item.Verdict == blocker.Stuck {
			l.t.Errorf("%v is called stuck: %+v", item.Object, item)
		}
	}
}

// explorer returns an Explorer whose requests are counted.
func (l *whyServer) explorer(counted *requests) *why.Explorer {
	l.t.Helper()
	config := rest.CopyConfig(l.plane.RESTConfig())
	config.Wrap(counted.wrap)
	reader, err := cluster.NewReader(config)
	l.must(err, "connect")
	return why.NewExplorer(reader, cluster.Commands{}, false)
}

// createVolumes creates volumes that nobody uses, 16 at a time.
func (l *whyServer) createVolumes(count int) {
	l.t.Helper()
	var work sync.WaitGroup
	for worker := range 16 {
		work.Go(func() {
			for i := worker; i < count; i += 16 {
				l.createAvailable(fmt.Sprintf("volume-%d", i))
			}
		})
	}
	work.Wait()
	if l.t.Failed() {
		l.t.FailNow()
	}
}
