package credentials

import (
	"bytes"
	"crypto/x509"
	"encoding/pem"
	"net"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"k8s.io/client-go/tools/clientcmd"
)

func TestParseUser(t *testing.T) {
	for name, tc := range map[string]struct {
		text   string
		want   Identity
		wantOK bool
	}{
		"a name alone has no groups":      {"bob", Identity{User: "bob"}, true},
		"what follows the name is groups": {"bob,devs,ops", Identity{User: "bob", Groups: []string{"devs", "ops"}}, true},
		"a name may contain colons":       {"system:kube-scheduler", Identity{User: "system:kube-scheduler"}, true},
		"an empty name is refused":        {"", Identity{}, false},
		"an empty group is refused":       {"bob,", Identity{}, false},
	} {
		t.Run(name, func(t *testing.T) {
			checkParsed(t, ParseUser, tc.text, tc.want, tc.wantOK)
		})
	}
}

func TestParseServiceAccount(t *testing.T) {
	robot := Identity{
		User:   "system:serviceaccount:lab:robot",
		Groups: []string{"system:serviceaccounts", "system:serviceaccounts:lab"},
	}
	for name, tc := range map[string]struct {
		text   string
		want   Identity
		wantOK bool
	}{
		"namespace and name":                {"lab/robot", robot, true},
		"a missing namespace is refused":    {"/robot", Identity{}, false},
		"a missing name is refused":         {"lab/", Identity{}, false},
		"a name without a slash is refused": {"robot", Identity{}, false},
		"a third part is refused":           {"lab/robot/arm", Identity{}, false},
	} {
		t.Run(name, func(t *testing.T) {
			checkParsed(t, ParseServiceAccount, tc.text, tc.want, tc.wantOK)
		})
	}
}

// checkParsed fails the test unless parse(text) returns want, or an error if want is nil.
func checkParsed(t *testing.T, parse func(string) (Identity, error), text string, want Identity, wantOK bool) {
	t.Helper()
	got, err := parse(text)
	if (err == nil) != wantOK {
		t.Fatalf("parse %q: error %v, want success %t", text, err, wantOK)
	}
	if got.User != want.User || !slices.Equal(got.Groups, want.Groups) {
		t.Errorf("parse %q = %+v, want %+v", text, got, want)
	}
}

func TestCertificateAuthorityIsReused(t *testing.T) {
	directory := t.TempDir()
	first := ensureAuthority(t, directory)
	second := ensureAuthority(t, directory)
	if !bytes.Equal(first.CertificatePEM(), second.CertificatePEM()) {
		t.Error("opening the authority again created a new authority")
	}
}

func TestClientCertificateNamesUserAndGroups(t *testing.T) {
	authority := ensureAuthority(t, t.TempDir())
	pair, err := authority.SignClient(ServiceAccount("lab", "robot"))
	if err != nil {
		t.Fatal(err)
	}
	certificate := verify(t, authority, pair, x509.ExtKeyUsageClientAuth)
	if got := certificate.Subject.CommonName; got != "system:serviceaccount:lab:robot" {
		t.Errorf("common name = %q", got)
	}
	want := []string{"system:serviceaccounts", "system:serviceaccounts:lab"}
	if got := certificate.Subject.Organization; !slices.Equal(got, want) {
		t.Errorf("organizations = %q, want %q", got, want)
	}
}

func TestServerCertificateIsValidForItsAddress(t *testing.T) {
	authority := ensureAuthority(t, t.TempDir())
	pair, err := authority.SignServer([]string{"localhost"}, []net.IP{net.IPv4(127, 0, 0, 1)})
	if err != nil {
		t.Fatal(err)
	}
	certificate := verify(t, authority, pair, x509.ExtKeyUsageServerAuth)
	for _, host := range []string{"localhost", "127.0.0.1"} {
		if err := certificate.VerifyHostname(host); err != nil {
			t.Error(err)
		}
	}
}

func TestKubeconfigIsCompleteAndPrivate(t *testing.T) {
	directory := t.TempDir()
	authority := ensureAuthority(t, directory)
	file := filepath.Join(directory, "admin.kubeconfig")
	if err := authority.WriteKubeconfig(file, "https://127.0.0.1:6443", Admin); err != nil {
		t.Fatal(err)
	}
	config, err := clientcmd.BuildConfigFromFlags("", file)
	if err != nil {
		t.Fatal(err)
	}
	if config.Host != "https://127.0.0.1:6443" || len(config.CAData) == 0 || len(config.CertData) == 0 ||
		len(config.KeyData) == 0 {
		t.Errorf("kubeconfig lacks something: host %s, %d bytes of CA, %d of certificate, %d of key",
			config.Host, len(config.CAData), len(config.CertData), len(config.KeyData))
	}
	if info, err := os.Stat(file); err != nil || info.Mode() != 0o600 {
		t.Errorf("stat kubeconfig: mode %v, error %v, want 0600", info.Mode(), err)
	}
}

// ensureAuthority returns the authority in directory.
func ensureAuthority(t *testing.T, directory string) *Authority {
	t.Helper()
	authority, err := EnsureAuthority(directory, "ca")
	if err != nil {
		t.Fatal(err)
	}
	return authority
}

// verify returns the pair's certificate after checking it against authority and usage.
func verify(t *testing.T, authority *Authority, pair KeyPair, usage x509.ExtKeyUsage) *x509.Certificate {
	t.Helper()
	block, _ := pem.Decode(pair.Cert)
	certificate, err := x509.ParseCertificate(block.Bytes)
	if err != nil {
		t.Fatal(err)
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(authority.CertificatePEM())
	if _, err := certificate.Verify(x509.VerifyOptions{Roots: roots, KeyUsages: []x509.ExtKeyUsage{usage}}); err != nil {
		t.Fatal(err)
	}
	return certificate
}
