package program

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr/funcr"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/rest"
	"k8s.io/klog/v2"
)

// server is an API server without a network, which refuses connections until comeBack.
type server struct {
	mu      sync.Mutex
	answers func(*http.Request) (int, string)
}

// RoundTrip refuses the connection until comeBack.
func (s *server) RoundTrip(request *http.Request) (*http.Response, error) {
	s.mu.Lock()
	answers := s.answers
	s.mu.Unlock()
	if answers == nil {
		return nil, &net.OpError{Op: "dial", Net: "tcp", Err: syscall.ECONNREFUSED}
	}
	code, body := answers(request)
	return &http.Response{
		StatusCode: code, Status: http.StatusText(code), Request: request,
		Header: http.Header{"Content-Type": {"application/json"}}, Body: io.NopCloser(strings.NewReader(body)),
	}, nil
}

func (s *server) comeBack(answers func(*http.Request) (int, string)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.answers = answers
}

// away returns an unreachable server, its clients, and the log.
func away(t *testing.T) (*server, *Clients, context.Context, func() string) {
	t.Helper()
	s, f := &server{}, &failures{}
	clients := &Clients{Config: &rest.Config{Host: "https://server", Transport: s}, agent: "program", failures: f}
	clients.Config.Wrap(f.wrap)
	var err error
	if clients.Objects, err = clients.For(""); err != nil {
		t.Fatal(err)
	}
	var mu sync.Mutex
	var logged strings.Builder
	sink := funcr.New(func(prefix, args string) {
		mu.Lock()
		defer mu.Unlock()
		logged.WriteString(prefix + args + "\n")
	}, funcr.Options{})
	return s, clients, klog.NewContext(t.Context(), sink), func() string {
		mu.Lock()
		defer mu.Unlock()
		defer logged.Reset()
		return logged.String()
	}
}

func TestUnreachableServerIsAwaitedAndLogged(t *testing.T) {
	for name, answers := range map[string]func(*http.Request) (int, string){
		"comes back":            func(*http.Request) (int, string) { return http.StatusOK, "{}" },
		"comes back and denies": func(*http.Request) (int, string) { return http.StatusForbidden, "no" },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s, clients, ctx, logged := away(t)
				reached := make(chan bool, 1)
				go func() { reached <- clients.WaitForAPIServer(ctx) }()
				<-time.After(time.Second)
				if text := logged(); strings.Count(text, "does not answer") != 1 || !strings.Contains(text, "connection refused") ||
					!strings.Contains(text, "https://server") {
					t.Errorf("log after one second: %q", text)
				}
				<-time.After(time.Minute)
				if text := logged(); strings.Count(text, "does not answer") != 6 {
					t.Errorf("log after one minute: %q", text)
				}
				s.comeBack(answers)
				if !<-reached {
					t.Error("the server was not reached")
				}
				<-time.After(time.Minute)
				if text := logged(); text != "" {
					t.Errorf("log of a reachable server: %q", text)
				}
			})
		})
	}
}

func TestUnreachableServerIsAwaitedUntilTheContextEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, clients, ctx, _ := away(t)
		ctx, stop := context.WithTimeout(ctx, time.Hour)
		defer stop()
		if clients.WaitForAPIServer(ctx) || !errors.Is(ctx.Err(), context.DeadlineExceeded) {
			t.Error("WaitForAPIServer returned true or too early")
		}
	})
}

func TestMissingCachesAreLoggedWithTheReason(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, clients, ctx, logged := away(t)
		watching, stop := context.WithCancel(ctx)
		factory := informers.NewSharedInformerFactory(clients.Objects, 0)
		factory.Core().V1().PersistentVolumes().Informer()
		factory.Storage().V1().StorageClasses().Informer()
		factory.StartWithContext(watching)
		defer factory.Shutdown()
		defer stop()
		filled := make(chan bool, 1)
		go func() { filled <- clients.WaitForCacheSync(watching, factory) }()
		<-time.After(25 * time.Second)
		text := logged()
		if strings.Count(text, "to fill caches") != 2 || !strings.Contains(text, `["PersistentVolume" "StorageClass"]`) ||
			!strings.Contains(text, "connection refused") {
			t.Errorf("log: %q", text)
		}
		s.comeBack(func(request *http.Request) (int, string) {
			if strings.Contains(request.URL.Path, "storageclasses") {
				return http.StatusTooManyRequests, "not now"
			}
			return lists(request)
		})
		<-time.After(5 * time.Minute)
		if text = logged(); !strings.Contains(text, `["StorageClass"]`) ||
			!strings.Contains(text, "/apis/storage.k8s.io/v1/storageclasses: Too Many Requests") {
			t.Errorf("log: %q", text)
		}
		s.comeBack(lists)
		if !<-filled {
			t.Error("the caches were not filled")
		}
	})
}

func TestMissingCachesAreAwaitedUntilTheContextEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, clients, ctx, _ := away(t)
		ctx, stop := context.WithTimeout(ctx, time.Hour)
		defer stop()
		factory := informers.NewSharedInformerFactory(clients.Objects, 0)
		factory.Core().V1().PersistentVolumes().Informer()
		factory.StartWithContext(ctx)
		defer factory.Shutdown()
		if clients.WaitForCacheSync(ctx, factory) {
			t.Error("WaitForCacheSync returned true without a list")
		}
	})
}

// lists answers with empty lists. It refuses streaming lists, and other watches bring
// nothing until they are stopped.
func lists(request *http.Request) (int, string) {
	switch query := request.URL.Query(); {
	case query.Get("sendInitialEvents") != "":
		return http.StatusMethodNotAllowed, "lists only"
	case query.Get("watch") != "":
		<-request.Context().Done()
		return http.StatusOK, ""
	}
	kind, version := "PersistentVolumeList", "v1"
	if strings.Contains(request.URL.Path, "storageclasses") {
		kind, version = "StorageClassList", "storage.k8s.io/v1"
	}
	return http.StatusOK, `{"kind":"` + kind + `","apiVersion":"` + version +
		`","metadata":{"resourceVersion":"1"},"items":[]}`
}
