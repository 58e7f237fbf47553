package serving

import (
	"net"
	"strconv"
	"strings"
	"testing"
)

func TestAPortThatIsTakenIsNamed(t *testing.T) {
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
		t.Errorf("the error is %v, want one that names flags and address", err)
	}
}

func TestFlagsThatCannotServeAreRefused(t *testing.T) {
	for name, tc := range map[string]struct {
		flags []string
		want  string
	}{
		"a flag without a port":         {[]string{"--bind-address=127.0.0.1"}, "--bind-address has an effect only together with --secure-port"},
		"a port that is none":           {[]string{"--secure-port=70000"}, "--secure-port must be from 1 to 65535, or 0 to serve nothing"},
		"nothing":                       {nil, ""},
		"a flag and no port on purpose": {[]string{"--bind-address=127.0.0.1", "--secure-port=0"}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			got := ""
			if err := parsed(t, tc.flags...).Complete(""); err != nil {
				got = err.Error()
			}
			if !strings.HasPrefix(got, tc.want) || (got == "") != (tc.want == "") {
				t.Errorf("the error is %q, want %q", got, tc.want)
			}
		})
	}
}

func TestTheKubeconfigServesWhereNoOtherIsGiven(t *testing.T) {
	options := parsed(t, "--secure-port=1", "--authorization-kubeconfig=other")
	if err := options.Complete("own"); err != nil {
		t.Fatal(err)
	}
	if got := options.authentication.RemoteKubeConfigFile; got != "own" {
		t.Errorf("identities are asked for with %q, want the program's own kubeconfig", got)
	}
	if got := options.authorization.RemoteKubeConfigFile; got != "other" {
		t.Errorf("rights are asked for with %q, want what the flag says", got)
	}
}
