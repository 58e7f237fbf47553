package harness

import (
	"path/filepath"

	"github.com/exeunt-io/exeunt/test/faultproxy"
	"github.com/exeunt-io/exeunt/test/sandbox"
)

// NewFaultProxy starts a proxy with the credentials of account, and returns the kubeconfig
// of the proxy. The proxy ends with the test.
func (s *Session) NewFaultProxy(account sandbox.Identity, config faultproxy.Config) (*faultproxy.Proxy, string) {
	s.T.Helper()
	direct, err := s.Plane.Kubeconfig(s.Ctx, account)
	s.Must(err, "write kubeconfig")
	config.Upstream, err = sandbox.LoadConfig(direct)
	s.Must(err, "load kubeconfig")
	proxy, err := faultproxy.New(config)
	s.Must(err, "make proxy")
	s.Must(proxy.Start(), "start proxy")
	s.T.Cleanup(func() {
		if err := proxy.Close(); err != nil {
			s.T.Errorf("stop proxy: %v", err)
		}
	})
	file := filepath.Join(s.T.TempDir(), "kubeconfig")
	s.Must(proxy.Kubeconfig(file), "write kubeconfig of the proxy")
	return proxy, file
}
