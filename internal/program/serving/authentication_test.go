package serving

import (
	"crypto/tls"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"k8s.io/apiserver/pkg/server"
)

// as returns the endpoint for requests with a client certificate and a header.
func (s *endpoint) as(cert tls.Certificate, header string) *endpoint {
	transport := &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true,
		Certificates: []tls.Certificate{cert}}}
	s.t.Cleanup(transport.CloseIdleConnections)
	return &endpoint{t: s.t, url: s.url, client: &http.Client{Transport: withHeader{transport, header}}}
}

// withUser returns the endpoint for requests without a client certificate that name a user.
func (s *endpoint) withUser(user string) *endpoint {
	return &endpoint{t: s.t, url: s.url, client: &http.Client{Transport: withHeader{s.client.Transport, user}}}
}

// withHeader sets the header X-Remote-User of each request.
type withHeader struct {
	http.RoundTripper
	user string
}

// RoundTrip sends one request.
func (h withHeader) RoundTrip(request *http.Request) (*http.Response, error) {
	if h.user != "" {
		request.Header.Set("X-Remote-User", h.user)
	}
	return h.RoundTripper.RoundTrip(request)
}

func TestClientCertificateAuthenticatesItsCommonName(t *testing.T) {
	ours, theirs := newAuthority(t), newAuthority(t)
	s := serve(t, Checks{}, "--client-ca-file="+ours.file())
	s.as(ours.client(reader), "").expect("/metrics", http.StatusOK, "go_goroutines")
	s.as(ours.client("visitor"), "").expect("/metrics", http.StatusForbidden, "visitor")
	s.as(theirs.client(reader), "").expect("/metrics", http.StatusUnauthorized)
	s.as(ours.client("visitor"), reader).expect("/metrics", http.StatusForbidden, "visitor")
}

func TestOnlyAllowedFrontProxyNamesTheUser(t *testing.T) {
	proxies, others := newAuthority(t), newAuthority(t)
	s := serve(t, Checks{}, "--requestheader-client-ca-file="+proxies.file(), "--requestheader-allowed-names=proxy")
	s.as(proxies.client("proxy"), reader).expect("/metrics", http.StatusOK, "go_goroutines")
	s.as(proxies.client("proxy"), "visitor").expect("/metrics", http.StatusForbidden, "visitor")
	s.as(proxies.client("other"), reader).expect("/metrics", http.StatusUnauthorized)
	for _, name := range []string{"proxy", reader} {
		if status, _ := s.as(others.client(name), reader).get("/metrics", ""); status == http.StatusOK {
			t.Errorf("a front proxy %s of an unknown CA is trusted", name)
		}
	}
}

func TestForbiddenConfigMapEndsTheStartUnlessTolerated(t *testing.T) {
	forbids := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter,
		_ *http.Request) {
		w.WriteHeader(http.StatusForbidden)
	}))
	t.Cleanup(forbids.Close)
	stop, err := listening(t, forbids.URL).Serve(Checks{})
	if err == nil {
		stop()
	}
	if err == nil || !strings.Contains(err.Error(), publishedName) {
		t.Errorf("error %v, want one that names the ConfigMap", err)
	}
	stop, err = listening(t, forbids.URL, "--authentication-tolerate-lookup-failure").Serve(Checks{})
	if err != nil {
		t.Fatalf("a tolerated failure ends the start: %v", err)
	}
	stop()
}

func TestEmptyRequestHeadersAreRefused(t *testing.T) {
	for flag, want := range map[string]string{
		"--requestheader-group-headers= ":      "requestheader-group-headers",
		"--requestheader-uid-headers=x-uid":    "X-Remote-Uid",
		"--requestheader-uid-headers=X-Remote": "X-Remote-Uid",
	} {
		if err := parsed(t, flag, "--secure-port=1").Complete(""); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: error %v, want one with %s", flag, err, want)
		}
	}
	if err := parsed(t, "--requestheader-uid-headers=x-remote-uid", "--secure-port=1").Complete(""); err != nil {
		t.Error(err)
	}
}

func TestHandlersSeeNoCredentials(t *testing.T) {
	options := parsed(t, "--secure-port=1", "--authentication-skip-lookup=true",
		"--requestheader-client-ca-file="+newAuthority(t).file(), "--requestheader-username-headers=X-Proxy-User")
	if err := options.Complete(kubeconfig(t, reviewer(t))); err != nil {
		t.Fatal(err)
	}
	credentials := []string{"Authorization", "X-Proxy-User", "X-Remote-User", "X-Remote-Group", "X-Remote-Uid",
		"X-Remote-Extra-Scopes"}
	served := false
	handler, err := options.protect(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		served = true
		for _, name := range credentials {
			if value := r.Header.Get(name); value != "" {
				t.Errorf("the handler sees %s: %s", name, value)
			}
		}
	}), new(server.SecureServingInfo))
	if err != nil {
		t.Fatal(err)
	}
	request := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/metrics", nil)
	for _, name := range credentials {
		request.Header.Set(name, "visitor")
	}
	request.Header.Set("Authorization", "Bearer "+reader)
	handler.ServeHTTP(httptest.NewRecorder(), request)
	if !served {
		t.Error("the request is refused")
	}
}
