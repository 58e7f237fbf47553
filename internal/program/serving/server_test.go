package serving

import (
	"io"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"k8s.io/apiserver/pkg/server"
	"k8s.io/apiserver/pkg/server/healthz"
)

func TestPanicCutsTheResponse(t *testing.T) {
	options := parsed(t, "--secure-port=1", "--authentication-skip-lookup=true",
		"--authorization-always-allow-paths=/metrics")
	if err := options.Complete(kubeconfig(t, reviewer(t))); err != nil {
		t.Fatal(err)
	}
	handler, err := options.protect(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		if _, err := io.WriteString(w, "the first metrics\n"); err != nil {
			t.Error(err)
		}
		panic("bad metric")
	}), new(server.SecureServingInfo))
	if err != nil {
		t.Fatal(err)
	}
	served := httptest.NewServer(handler)
	defer served.Close()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, served.URL+"/metrics", nil)
	if err != nil {
		t.Fatal(err)
	}
	response, err := served.Client().Do(request)
	if err != nil {
		return
	}
	defer func() { _ = response.Body.Close() }()
	if body, err := io.ReadAll(response.Body); err == nil {
		t.Errorf("status %d and a complete response %q after a panic", response.StatusCode, body)
	}
}

func TestStopDoesNotWaitForBlockedRequest(t *testing.T) {
	started, release, ended := make(chan struct{}), make(chan struct{}), make(chan struct{})
	blocked := healthz.NamedCheck("blocked", func(*http.Request) error {
		close(started)
		<-release
		return nil
	})
	s, stop := serveUntilStop(t, reviewer(t), Checks{Live: []healthz.HealthChecker{blocked}},
		"--authentication-skip-lookup=true")
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, s.url+"/livez", nil)
	if err != nil {
		t.Fatal(err)
	}
	go func() {
		defer close(ended)
		if response, err := s.client.Do(request); err == nil {
			_ = response.Body.Close()
		}
	}()
	<-started
	stopped := make(chan struct{})
	go func() {
		stop()
		close(stopped)
	}()
	timer := time.NewTimer(10 * time.Second)
	defer timer.Stop()
	select {
	case <-stopped:
	case <-timer.C:
		t.Error("a blocked request delays the stop")
	}
	close(release)
	<-ended
}
