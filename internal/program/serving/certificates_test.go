package serving

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"math/big"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
	certutil "k8s.io/client-go/util/cert"
	"k8s.io/client-go/util/keyutil"
)

// authority is a CA that signs client certificates.
type authority struct {
	t    *testing.T
	key  *ecdsa.PrivateKey
	cert *x509.Certificate
}

func newAuthority(t *testing.T) *authority {
	t.Helper()
	a := &authority{t: t, key: newKey(t)}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "ca"}, NotBefore: time.Now().Add(-time.Hour),
		NotAfter: time.Now().Add(time.Hour),
		IsCA:     true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, a.key.Public(), a.key)
	if err != nil {
		t.Fatal(err)
	}
	if a.cert, err = x509.ParseCertificate(der); err != nil {
		t.Fatal(err)
	}
	return a
}

func newKey(t *testing.T) *ecdsa.PrivateKey {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return key
}

// file returns a file with the certificate of the CA.
func (a *authority) file() string {
	a.t.Helper()
	file := filepath.Join(a.t.TempDir(), "ca.crt")
	if err := os.WriteFile(file, []byte(a.pem()), 0o600); err != nil {
		a.t.Fatal(err)
	}
	return file
}

func (a *authority) pem() string {
	return string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: a.cert.Raw}))
}

// client returns a client certificate with the common name.
func (a *authority) client(name string) tls.Certificate {
	a.t.Helper()
	key := newKey(a.t)
	template := &x509.Certificate{
		SerialNumber: big.NewInt(2), Subject: pkix.Name{CommonName: name}, NotBefore: time.Now().Add(-time.Hour),
		NotAfter: time.Now().Add(time.Hour),
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, a.cert, key.Public(), a.key)
	if err != nil {
		a.t.Fatal(err)
	}
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}
}

// eventually waits until a request is answered with the status.
func (s *endpoint) eventually(path string, status int) {
	s.t.Helper()
	got := 0
	err := wait.PollUntilContextTimeout(s.t.Context(), 10*time.Millisecond, 30*time.Second, true,
		func(context.Context) (bool, error) {
			got, _ = s.get(path, "")
			return got == status, nil
		})
	if err != nil {
		s.t.Errorf("%s answers %d, want %d", path, got, status)
	}
}

func TestReplacedClientCAIsFollowed(t *testing.T) {
	before, after := newAuthority(t), newAuthority(t)
	file := before.file()
	s := serve(t, Checks{}, "--client-ca-file="+file)
	s.as(before.client(reader), "").expect("/metrics", http.StatusOK)
	if err := os.WriteFile(file, []byte(after.pem()), 0o600); err != nil {
		t.Fatal(err)
	}
	s.as(after.client(reader), "").eventually("/metrics", http.StatusOK)
	s.as(before.client(reader), "").expect("/metrics", http.StatusUnauthorized)
}

func TestReplacedCertificateIsServed(t *testing.T) {
	dir := t.TempDir()
	cert, key := filepath.Join(dir, "program.crt"), filepath.Join(dir, "program.key")
	writeSelfSigned(t, cert, key)
	s := serve(t, Checks{}, "--tls-cert-file="+cert, "--tls-private-key-file="+key)
	first := s.certificate()
	writeSelfSigned(t, cert, key)
	err := wait.PollUntilContextTimeout(t.Context(), 10*time.Millisecond, 30*time.Second, true,
		func(context.Context) (bool, error) {
			return !s.certificate().Equal(first), nil
		})
	if err != nil {
		t.Error("the replaced certificate is not served")
	}
}

// writeSelfSigned writes a new certificate and its key to the files.
func writeSelfSigned(t *testing.T, certFile, keyFile string) {
	t.Helper()
	cert, key, err := certutil.GenerateSelfSignedCertKey("localhost", nil, nil)
	if err == nil {
		err = errors.Join(certutil.WriteCert(certFile, cert), keyutil.WriteKey(keyFile, key))
	}
	if err != nil {
		t.Fatal(err)
	}
}

// certificate returns the certificate that a new connection is served with.
func (s *endpoint) certificate() *x509.Certificate {
	s.t.Helper()
	connection, err := (&tls.Dialer{Config: &tls.Config{InsecureSkipVerify: true}}).
		DialContext(s.t.Context(), "tcp", strings.TrimPrefix(s.url, "https://"))
	if err != nil {
		s.t.Fatal(err)
	}
	defer func() { _ = connection.Close() }()
	return connection.(*tls.Conn).ConnectionState().PeerCertificates[0]
}
