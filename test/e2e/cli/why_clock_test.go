package cli

import (
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"k8s.io/client-go/rest"
)

// throughProxy returns the server behind a proxy that changes the time that the API server tells.
func (l *whyServer) throughProxy(shift time.Duration) *whyServer {
	l.t.Helper()
	target, err := url.Parse(l.plane.URL)
	l.must(err, "parse URL")
	transport, err := rest.TransportFor(l.plane.RESTConfig())
	l.must(err, "connect to the API server")
	proxy := &httputil.ReverseProxy{
		Transport: transport,
		Rewrite:   func(request *httputil.ProxyRequest) { request.SetURL(target) },
		ModifyResponse: func(response *http.Response) error {
			response.Header.Set("Date", time.Now().Add(shift).UTC().Format(http.TimeFormat))
			return nil
		},
	}
	server := httptest.NewServer(proxy)
	l.t.Cleanup(server.Close)
	behind := *l
	behind.kubeconfig = filepath.Join(l.t.TempDir(), "kubeconfig")
	text := "apiVersion: v1\nkind: Config\nclusters: [{name: c, cluster: {server: \"" + server.URL + "\"}}]\n" +
		"contexts: [{name: c, context: {cluster: c}}]\ncurrent-context: c\n"
	l.must(os.WriteFile(behind.kubeconfig, []byte(text), 0o600), "write kubeconfig")
	return &behind
}

func TestAgeIsByServersClock(t *testing.T) {
	l := open(t, current)
	l.createConfig("held", "example.com/held")
	for name, tc := range map[string]struct {
		shift time.Duration
		want  []string
	}{
		"the same time":                {0, nil},
		"local clock two hours behind": {2 * time.Hour, []string{"ConfigMap lab/held"}},
		"local clock two hours ahead":  {-2 * time.Hour, nil},
	} {
		t.Run(name, func(t *testing.T) {
			if names, _ := l.throughProxy(tc.shift).all("--all", "--older-than=1h"); !slices.Equal(names, tc.want) {
				t.Errorf("older than an hour are %q, want %q", names, tc.want)
			}
		})
	}
}
