package credentials

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"errors"
	"fmt"
	"io/fs"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"strings"
	"time"

	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/tools/clientcmd/api"
	certutil "k8s.io/client-go/util/cert"
	"k8s.io/client-go/util/keyutil"
)

const (
	// leafLifetime is the validity of signed certificates. Servers get a new one at every
	// start.
	leafLifetime = 365 * 24 * time.Hour
	// clockSkew is the time by which the validity of a certificate starts earlier.
	clockSkew = time.Hour
)

// Authority is a certificate authority.
type Authority struct {
	cert *x509.Certificate
	key  crypto.Signer
}

// KeyPair is a certificate and its private key, both PEM encoded.
type KeyPair struct {
	Cert, Key []byte
}

// OpenAuthority reads the authority name from its files in directory. The error is
// fs.ErrNotExist if there are none.
func OpenAuthority(directory, name string) (*Authority, error) {
	certs, err := certutil.CertsFromFile(certFile(directory, name))
	if err != nil {
		return nil, fmt.Errorf("read certificate authority %s: %w", name, err)
	}
	private, err := keyutil.PrivateKeyFromFile(keyFile(directory, name))
	if err != nil {
		return nil, fmt.Errorf("read key of certificate authority %s: %w", name, err)
	}
	key, ok := private.(crypto.Signer)
	if !ok {
		return nil, fmt.Errorf("read key of certificate authority %s: a %T cannot sign", name, private)
	}
	return &Authority{cert: certs[0], key: key}, nil
}

// EnsureAuthority opens the authority name in directory, or creates it.
func EnsureAuthority(directory, name string) (*Authority, error) {
	if _, err := os.Stat(certFile(directory, name)); !errors.Is(err, fs.ErrNotExist) {
		return OpenAuthority(directory, name)
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, fmt.Errorf("generate key of certificate authority %s: %w", name, err)
	}
	cert, err := certutil.NewSelfSignedCACert(certutil.Config{CommonName: name}, key)
	if err != nil {
		return nil, fmt.Errorf("sign certificate authority %s: %w", name, err)
	}
	pair, err := encode(cert.Raw, key)
	if err != nil {
		return nil, err
	}
	return &Authority{cert: cert, key: key}, pair.Write(directory, name)
}

// CertificatePEM returns the authority's certificate.
func (a *Authority) CertificatePEM() []byte {
	return encodeCertificate(a.cert.Raw)
}

// SignServer returns a certificate for a server at the given names and
// addresses.
func (a *Authority) SignServer(names []string, addresses []net.IP) (KeyPair, error) {
	return a.sign(&x509.Certificate{
		Subject:     pkix.Name{CommonName: names[0]},
		DNSNames:    names,
		IPAddresses: addresses,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	})
}

// SignClient returns a client certificate for identity.
func (a *Authority) SignClient(identity Identity) (KeyPair, error) {
	return a.sign(&x509.Certificate{
		Subject:     pkix.Name{CommonName: identity.User, Organization: identity.Groups},
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
	})
}

// sign completes template and signs it for a new key.
func (a *Authority) sign(template *x509.Certificate) (KeyPair, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return KeyPair{}, fmt.Errorf("generate key of %s: %w", template.Subject.CommonName, err)
	}
	template.SerialNumber, err = rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 127))
	if err != nil {
		return KeyPair{}, fmt.Errorf("choose serial number for %s: %w", template.Subject.CommonName, err)
	}
	now := time.Now()
	template.NotBefore, template.NotAfter = now.Add(-clockSkew), now.Add(leafLifetime)
	template.KeyUsage = x509.KeyUsageDigitalSignature
	raw, err := x509.CreateCertificate(rand.Reader, template, a.cert, key.Public(), a.key)
	if err != nil {
		return KeyPair{}, fmt.Errorf("sign certificate of %s: %w", template.Subject.CommonName, err)
	}
	return encode(raw, key)
}

// certFile and keyFile return the paths of the pair name.
func certFile(directory, name string) string { return filepath.Join(directory, name+".crt") }
func keyFile(directory, name string) string  { return filepath.Join(directory, name+".key") }

// clusterName is the name of cluster and context in kubeconfig files.
const clusterName = "exeunt"

// WriteKubeconfig signs a client certificate for identity and writes a self-contained
// kubeconfig for the API server at url.
func (a *Authority) WriteKubeconfig(file, url string, identity Identity) error {
	pair, err := a.SignClient(identity)
	if err != nil {
		return err
	}
	content, err := clientcmd.Write(api.Config{
		Clusters: map[string]*api.Cluster{
			clusterName: {Server: url, CertificateAuthorityData: a.CertificatePEM()},
		},
		AuthInfos: map[string]*api.AuthInfo{
			identity.User: {ClientCertificateData: pair.Cert, ClientKeyData: pair.Key},
		},
		Contexts: map[string]*api.Context{
			clusterName: {Cluster: clusterName, AuthInfo: identity.User},
		},
		CurrentContext: clusterName,
	})
	if err != nil {
		return fmt.Errorf("encode kubeconfig of %s: %w", identity.User, err)
	}
	return WriteFile(file, content)
}

// Identity is the user of a client certificate.
type Identity struct {
	// User is the user name for RBAC.
	User string
	// Groups are the groups for RBAC. The API server adds system:authenticated.
	Groups []string
}

// Admin is an identity with all rights.
var Admin = Identity{User: "kubernetes-admin", Groups: []string{"system:masters"}}

// ServiceAccount returns the identity of the service account name in
// namespace.
func ServiceAccount(namespace, name string) Identity {
	return Identity{
		User:   "system:serviceaccount:" + namespace + ":" + name,
		Groups: []string{"system:serviceaccounts", "system:serviceaccounts:" + namespace},
	}
}

// ParseUser reads NAME[,GROUP...].
func ParseUser(text string) (Identity, error) {
	parts := strings.Split(text, ",")
	for _, part := range parts {
		if part == "" {
			return Identity{}, fmt.Errorf("parse user %q: want NAME[,GROUP...] without empty names", text)
		}
	}
	return Identity{User: parts[0], Groups: parts[1:]}, nil
}

// ParseServiceAccount reads NAMESPACE/NAME.
func ParseServiceAccount(text string) (Identity, error) {
	namespace, name, _ := strings.Cut(text, "/")
	if namespace == "" || name == "" || strings.Contains(name, "/") {
		return Identity{}, fmt.Errorf("parse service account %q: want NAMESPACE/NAME", text)
	}
	return ServiceAccount(namespace, name), nil
}
