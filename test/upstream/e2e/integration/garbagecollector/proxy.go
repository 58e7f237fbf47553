package garbagecollector

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"time"

	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
)

// kubeconfigFormat is a kubeconfig without credentials: the proxy has those of the test.
const kubeconfigFormat = `apiVersion: v1
kind: Config
clusters: [{name: c, cluster: {server: 'http://%s'}}]
contexts: [{name: c, context: {cluster: c, user: u}}]
current-context: c
users: [{name: u, user: {token: unused}}]
`

// serveProxy serves a proxy that sends requests as the client of the test does: with its
// credentials, and with the delays that a test adds. It returns the kubeconfig of the proxy.
func serveProxy(ctx context.Context, client kubernetes.Interface, dir string) (kubeconfig string, stop func(), err error) {
	core, ok := client.CoreV1().RESTClient().(*rest.RESTClient)
	if !ok {
		return "", nil, errors.New("serve proxy: the client of the test is not for a real API server")
	}
	address := core.Get().URL()
	reverse := httputil.NewSingleHostReverseProxy(&url.URL{Scheme: address.Scheme, Host: address.Host})
	reverse.Transport, reverse.FlushInterval = withoutToken{core.Client.Transport}, -1
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return "", nil, fmt.Errorf("serve proxy: %w", err)
	}
	server := &http.Server{Handler: reverse, ReadHeaderTimeout: time.Minute}
	go func() { _ = server.Serve(listener) }()
	kubeconfig = filepath.Join(dir, "kubeconfig")
	if err := os.WriteFile(kubeconfig, fmt.Appendf(nil, kubeconfigFormat, listener.Addr()), 0o600); err != nil {
		return "", nil, errors.Join(fmt.Errorf("write kubeconfig: %w", err), server.Close())
	}
	return kubeconfig, func() { _ = server.Close() }, nil
}

// withoutToken drops the program's token, so that the transport adds that of the test.
type withoutToken struct{ http.RoundTripper }

func (t withoutToken) RoundTrip(request *http.Request) (*http.Response, error) {
	request = request.Clone(request.Context())
	request.Header.Del("Authorization")
	return t.RoundTripper.RoundTrip(request)
}
