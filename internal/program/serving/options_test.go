package serving

import (
	"net"
	"strconv"
	"strings"
	"testing"
)

func TestUsedPortIsNamedInError(t *testing.T) {
	taken, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = taken.Close() }()
	port := strconv.Itoa(taken.Addr().(*net.TCPAddr).Port)
	options := parsed(t, "--bind-address=127.0.0.1", "--secure-port="+port)
	if err := options.Complete(""); err != nil {
		t.Fatal(err)
	}
	_, err = options.Serve(Checks{})
	if err == nil || !strings.HasPrefix(err.Error(), "serve on --bind-address=127.0.0.1 --secure-port="+port+": ") {
		t.Errorf("error %v, want one that names flags and address", err)
	}
}

func TestInvalidFlagsAreRefused(t *testing.T) {
	for name, tc := range map[string]struct {
		flags []string
		want  string
	}{
		"a flag without a port": {[]string{"--bind-address=127.0.0.1"}, "--bind-address has an effect only together with --secure-port"},
		"a port above 65535":    {[]string{"--secure-port=70000"}, "--secure-port must be from 1 to 65535, or 0 to serve nothing"},
		"no flags":              {nil, ""},
		"a flag with port 0":    {[]string{"--bind-address=127.0.0.1", "--secure-port=0"}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			got := ""
			if err := parsed(t, tc.flags...).Complete(""); err != nil {
				got = err.Error()
			}
			if !strings.HasPrefix(got, tc.want) || (got == "") != (tc.want == "") {
				t.Errorf("error %q, want %q", got, tc.want)
			}
		})
	}
}

func TestKubeconfigIsDefaultForReviews(t *testing.T) {
	options := parsed(t, "--secure-port=1", "--authorization-kubeconfig=other")
	if err := options.Complete("own"); err != nil {
		t.Fatal(err)
	}
	if got := options.authentication.RemoteKubeConfigFile; got != "own" {
		t.Errorf("tokens are reviewed with %q, want the kubeconfig of the program", got)
	}
	if got := options.authorization.RemoteKubeConfigFile; got != "other" {
		t.Errorf("access is reviewed with %q, want the kubeconfig of the flag", got)
	}
}
