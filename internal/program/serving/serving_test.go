package serving

import (
	"crypto/tls"
	"io"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/spf13/pflag"
	"k8s.io/apiserver/pkg/server/healthz"
	"k8s.io/client-go/tools/cache"
)

// endpoint is a client of a served port.
type endpoint struct {
	t      *testing.T
	url    string
	client *http.Client
}

// serve serves the checks with the flags until the test ends.
func serve(t *testing.T, checks Checks, flags ...string) *endpoint {
	t.Helper()
	s, stop := serveUntilStop(t, reviewer(t), checks, append(flags, "--authentication-skip-lookup=true")...)
	t.Cleanup(stop)
	return s
}

// serveUntilStop serves the checks with the flags and reviews of the API server until stop
// is called.
func serveUntilStop(t *testing.T, apiServer string, checks Checks, flags ...string) (*endpoint, func()) {
	t.Helper()
	options := listening(t, apiServer, flags...)
	stop, err := options.Serve(checks)
	if err != nil {
		t.Fatal(err)
	}
	// The server has a self-signed certificate.
	transport := &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}
	t.Cleanup(transport.CloseIdleConnections)
	return &endpoint{t, "https://" + options.secure.Listener.Addr().String(), &http.Client{Transport: transport}}, stop
}

// listening returns options with a listener on any port, which are complete.
func listening(t *testing.T, apiServer string, flags ...string) *Options {
	t.Helper()
	listener, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = listener.Close() })
	options := parsed(t, append(flags, "--secure-port=1")...)
	options.secure.Listener = listener // replaces the port
	if err := options.Complete(kubeconfig(t, apiServer)); err != nil {
		t.Fatal(err)
	}
	return options
}

func parsed(t *testing.T, flags ...string) *Options {
	t.Helper()
	options, set := NewOptions("program"), pflag.NewFlagSet("program", pflag.ContinueOnError)
	options.AddFlags(set)
	if err := set.Parse(flags); err != nil {
		t.Fatal(err)
	}
	return options
}

// get returns status and body of the response to a request with the token, "" for none.
func (s *endpoint) get(path, token string) (status int, body string) {
	s.t.Helper()
	request, err := http.NewRequestWithContext(s.t.Context(), http.MethodGet, s.url+path, nil)
	if err != nil {
		s.t.Fatal(err)
	}
	if token != "" {
		request.Header.Set("Authorization", "Bearer "+token)
	}
	response, err := s.client.Do(request)
	if err != nil {
		s.t.Fatal(err)
	}
	defer func() { _ = response.Body.Close() }()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		s.t.Fatal(err)
	}
	return response.StatusCode, string(text)
}

func TestRequestsAreAuthenticatedAndAuthorized(t *testing.T) {
	s := serve(t, Checks{Ready: InformerSync(map[string]cache.InformerSynced{"claims": func() bool { return false }})})
	for name, tc := range map[string]struct {
		path, token string
		status      int
		contains    string
	}{
		"anonymous reads no metrics":             {"/metrics", "", http.StatusForbidden, "system:anonymous"},
		"a forged token is refused":              {"/metrics", "forged", http.StatusUnauthorized, ""},
		"a user without rights is refused":       {"/metrics", "visitor", http.StatusForbidden, "visitor"},
		"reader reads metrics":                   {"/metrics", reader, http.StatusOK, "go_goroutines"},
		"reader reads flags":                     {"/flagz", reader, http.StatusOK, "secure-port"},
		"anonymous reads no flags":               {"/flagz", "", http.StatusForbidden, ""},
		"anonymous reads health":                 {"/healthz", "", http.StatusOK, "ok"},
		"anonymous reads liveness":               {"/livez", "", http.StatusOK, "ok"},
		"anonymous reads names of failed checks": {"/readyz", "", http.StatusInternalServerError, "[-]informer-sync-claims failed"},
		"anonymous reads no reason of a failure": {"/readyz/informer-sync-claims", "", http.StatusForbidden, ""},
		"reader reads the reason of a failure":   {"/readyz/informer-sync-claims", reader, http.StatusInternalServerError, errNotSynced.Error()},
	} {
		t.Run(name, func(t *testing.T) {
			status, body := s.get(tc.path, tc.token)
			if status != tc.status || !strings.Contains(body, tc.contains) {
				t.Errorf("%s answers %d %q, want %d and %q", tc.path, status, body, tc.status, tc.contains)
			}
		})
	}
}

func TestReadyOnceEveryCacheHasSynced(t *testing.T) {
	var claims, volumes atomic.Bool
	s := serve(t, Checks{Ready: InformerSync(map[string]cache.InformerSynced{"claims": claims.Load,
		"volumes": volumes.Load})})
	s.expect("/readyz", http.StatusInternalServerError, "[-]informer-sync-claims failed",
		"[-]informer-sync-volumes failed")
	claims.Store(true)
	s.expect("/readyz", http.StatusInternalServerError, "[+]informer-sync-claims ok", "[-]informer-sync-volumes failed")
	s.expect("/readyz?exclude=informer-sync", http.StatusOK, "ok")
	volumes.Store(true)
	s.expect("/readyz", http.StatusOK, "ok")
}

func TestFailedLiveCheckFailsLiveness(t *testing.T) {
	stuck := healthz.NamedCheck("lease", func(*http.Request) error { return io.ErrUnexpectedEOF })
	s := serve(t, Checks{Live: []healthz.HealthChecker{stuck}})
	s.expect("/healthz", http.StatusInternalServerError, "[-]lease failed")
	s.expect("/livez", http.StatusInternalServerError, "[-]lease failed")
	s.expect("/readyz", http.StatusOK, "ok")
}

func (s *endpoint) expect(path string, status int, contains ...string) {
	s.t.Helper()
	got, body := s.get(path, "")
	if got != status {
		s.t.Errorf("%s answers %d %q, want %d", path, got, body, status)
	}
	for _, text := range contains {
		if !strings.Contains(body, text) {
			s.t.Errorf("%s answers %q, which lacks %q", path, body, text)
		}
	}
}

func TestNothingIsServedWithoutPort(t *testing.T) {
	options := parsed(t)
	if err := options.Complete("/does/not/exist"); err != nil {
		t.Fatal(err)
	}
	stop, err := options.Serve(Checks{})
	if err != nil {
		t.Fatal(err)
	}
	stop()
}
