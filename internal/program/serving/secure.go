package serving

import (
	"context"
	"crypto/tls"
	"fmt"
	"net"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"

	"github.com/spf13/pflag"
	"golang.org/x/sys/unix"
	"k8s.io/apiserver/pkg/server/dynamiccertificates"
	certutil "k8s.io/client-go/util/cert"
	"k8s.io/client-go/util/keyutil"
	cliflag "k8s.io/component-base/cli/flag"
	"k8s.io/klog/v2"
)

// secureOptions are the flags of the listener and its TLS configuration.
type secureOptions struct {
	bindAddress                   net.IP
	port                          int
	certDir, certFile, keyFile    string
	sniCerts                      []cliflag.NamedCertKey
	cipherSuites                  []string
	curves                        []int32
	minVersion                    string
	maxStreams                    int
	noHTTP2                       bool
	permitPortSharing, permitAddr bool
	// listener replaces bindAddress and port; nil outside of tests.
	listener net.Listener
}

func (o *secureOptions) addFlags(flags *pflag.FlagSet) {
	flags.IPVar(&o.bindAddress, "bind-address", o.bindAddress, "IP address to listen on for --"+portFlag+"; 0.0.0.0 or :: listens on all interfaces and address families")
	flags.IntVar(&o.port, portFlag, o.port, "port that serves /healthz, /livez, /readyz, /metrics, /configz, /flagz and profiles with authentication and authorization; "+
		"the default 0 serves nothing, so that several programs on one host never clash; 10270 is a good choice, beside 10257 of kube-controller-manager")
	flags.BoolVar(&o.noHTTP2, "disable-http2-serving", o.noHTTP2, "serve HTTP/1.1 only")
	flags.StringVar(&o.certDir, "cert-dir", o.certDir, "directory of the TLS certificate; a self-signed certificate is written there if there is none; ignored with --tls-cert-file and --tls-private-key-file")
	flags.StringVar(&o.certFile, "tls-cert-file", o.certFile, "file with the x509 certificate for HTTPS, followed by its CA certificates; without it, a self-signed certificate is generated")
	flags.StringVar(&o.keyFile, "tls-private-key-file", o.keyFile, "file with the private key of --tls-cert-file")
	flags.StringSliceVar(&o.cipherSuites, "tls-cipher-suites", o.cipherSuites, "comma-separated list of cipher suites; without it, those of Go are used\n"+
		"preferred: "+strings.Join(cliflag.PreferredTLSCipherNames(), ", ")+"\ninsecure: "+strings.Join(cliflag.InsecureTLSCipherNames(), ", "))
	flags.Int32SliceVar(&o.curves, "tls-curve-preferences", o.curves, "comma-separated list of CurveID numbers of Go's crypto/tls that key exchanges may use; without it, those of Go are used")
	flags.StringVar(&o.minVersion, "tls-min-version", o.minVersion, "minimum TLS version: "+strings.Join(cliflag.TLSPossibleVersions(), ", "))
	flags.Var(cliflag.NewNamedCertKeyArray(&o.sniCerts), "tls-sni-cert-key", "files of a certificate and its key for SNI, optionally with domain patterns, such as foo.crt,foo.key:*.foo.com,foo.com; "+
		"without patterns, the names of the certificate are used; can be given several times")
	flags.IntVar(&o.maxStreams, "http2-max-streams-per-connection", o.maxStreams, "maximum number of streams per HTTP/2 connection; 0 for the default")
	flags.BoolVar(&o.permitPortSharing, "permit-port-sharing", o.permitPortSharing, "listen with SO_REUSEPORT, so that several processes can share address and port")
	flags.BoolVar(&o.permitAddr, "permit-address-sharing", o.permitAddr, "listen with SO_REUSEADDR, so that the port can be bound while old connections are in TIME_WAIT")
}

func (o *secureOptions) listen(ctx context.Context) (net.Listener, error) {
	if o.listener != nil {
		return o.listener, nil
	}
	config := net.ListenConfig{Control: func(_, _ string, connection syscall.RawConn) error {
		return connection.Control(func(socket uintptr) {
			setOption(socket, o.permitPortSharing, unix.SO_REUSEPORT)
			setOption(socket, o.permitAddr, unix.SO_REUSEADDR)
		})
	}}
	listener, err := config.Listen(ctx, "tcp", net.JoinHostPort(o.bindAddress.String(), strconv.Itoa(o.port)))
	if err != nil {
		return nil, fmt.Errorf("serve on --bind-address=%s --%s=%d: %w", o.bindAddress, portFlag, o.port, err)
	}
	return listener, nil
}

func setOption(socket uintptr, enabled bool, option int) {
	if !enabled {
		return
	}
	if err := unix.SetsockoptInt(int(socket), unix.SOL_SOCKET, option, 1); err != nil {
		klog.Background().Error(err, "Socket option was not set", "option", option)
	}
}

// tlsConfig returns a configuration that follows changes of all certificates until the
// context ends. Client certificates are requested and verified by authentication.
func (o *secureOptions) tlsConfig(ctx context.Context, program string, clientCA dynamiccertificates.CAContentProvider) (*tls.Config, error) {
	config, err := o.staticTLS()
	if err != nil {
		return nil, err
	}
	for _, suite := range o.cipherSuites {
		if _, insecure := cliflag.InsecureTLSCiphers()[suite]; insecure {
			klog.FromContext(ctx).Info("Cipher suite of --tls-cipher-suites is insecure", "suite", suite)
		}
	}
	if clientCA != nil {
		config.ClientAuth = tls.RequestClientCert
	}
	cert, err := o.certificate(program)
	if err != nil {
		return nil, err
	}
	sni, err := o.sniCertificates()
	if err != nil {
		return nil, err
	}
	certs := dynamiccertificates.NewDynamicServingCertificateController(config.Clone(), clientCA, cert, sni, nil)
	providers := []dynamiccertificates.Notifier{cert}
	for _, named := range sni {
		providers = append(providers, named)
	}
	if clientCA != nil {
		providers = append(providers, clientCA)
	}
	for _, provider := range providers {
		provider.AddListener(certs)
		follow(ctx, provider)
	}
	if err := certs.RunOnce(); err != nil {
		return nil, fmt.Errorf("load certificates: %w", err)
	}
	go certs.Run(1, ctx.Done())
	config.GetConfigForClient = certs.GetConfigForClient
	return config, nil
}

// follow loads the content of the provider and updates it until the context ends. A
// provider without content authenticates nobody.
func follow(ctx context.Context, provider dynamiccertificates.Notifier) {
	runner, dynamic := provider.(dynamiccertificates.ControllerRunner)
	if !dynamic {
		return
	}
	if err := runner.RunOnce(ctx); err != nil {
		klog.FromContext(ctx).Error(err, "Certificates were not loaded, retrying")
	}
	go runner.Run(ctx, 1)
}

// staticTLS returns the part of the configuration that flags determine.
func (o *secureOptions) staticTLS() (*tls.Config, error) {
	config := &tls.Config{NextProtos: []string{"h2", "http/1.1"}}
	if o.noHTTP2 {
		config.NextProtos = []string{"http/1.1"}
	}
	version, err := cliflag.TLSVersion(o.minVersion)
	if err != nil {
		return nil, fmt.Errorf("use --tls-min-version: %w", err)
	}
	config.MinVersion = version
	if len(o.cipherSuites) > 0 {
		if config.CipherSuites, err = cliflag.TLSCipherSuites(o.cipherSuites); err != nil {
			return nil, fmt.Errorf("use --tls-cipher-suites: %w", err)
		}
	}
	if len(o.curves) > 0 {
		if config.CurvePreferences, err = cliflag.TLSCurvePreferences(o.curves); err != nil {
			return nil, fmt.Errorf("use --tls-curve-preferences: %w", err)
		}
	}
	return config, nil
}

// certificate returns the certificate that the flags name, or a self-signed one.
func (o *secureOptions) certificate(program string) (dynamiccertificates.CertKeyContentProvider, error) {
	certFile, keyFile := o.certFile, o.keyFile
	switch generated := certFile == "" && keyFile == ""; {
	case generated && o.certDir == "":
		cert, key, err := o.selfSigned()
		if err != nil {
			return nil, err
		}
		return dynamiccertificates.NewStaticCertKeyContent("self-signed", cert, key)
	case generated:
		certFile, keyFile = filepath.Join(o.certDir, program+".crt"), filepath.Join(o.certDir, program+".key")
		if err := o.writeSelfSigned(certFile, keyFile); err != nil {
			return nil, err
		}
	}
	cert, err := dynamiccertificates.NewDynamicServingContentFromFiles("serving-cert", certFile, keyFile)
	if err != nil {
		return nil, fmt.Errorf("load certificate: %w", err)
	}
	return cert, nil
}

// writeSelfSigned writes the files unless both exist.
func (o *secureOptions) writeSelfSigned(certFile, keyFile string) error {
	exist, err := certutil.CanReadCertAndKey(certFile, keyFile)
	if err != nil || exist {
		return err
	}
	cert, key, err := o.selfSigned()
	if err != nil {
		return err
	}
	if err := certutil.WriteCert(certFile, cert); err != nil {
		return fmt.Errorf("write certificate to --cert-dir: %w", err)
	}
	if err := keyutil.WriteKey(keyFile, key); err != nil {
		return fmt.Errorf("write key to --cert-dir: %w", err)
	}
	return nil
}

func (o *secureOptions) selfSigned() (cert, key []byte, err error) {
	addresses, names := []net.IP{net.IPv4(127, 0, 0, 1)}, []string{"localhost"}
	if !o.bindAddress.IsUnspecified() {
		addresses, names = append(addresses, o.bindAddress), nil
	}
	cert, key, err = certutil.GenerateSelfSignedCertKey("localhost", addresses, names)
	if err != nil {
		return nil, nil, fmt.Errorf("generate self-signed certificate: %w", err)
	}
	return cert, key, nil
}

func (o *secureOptions) sniCertificates() ([]dynamiccertificates.SNICertKeyContentProvider, error) {
	var certs []dynamiccertificates.SNICertKeyContentProvider
	for _, files := range o.sniCerts {
		cert, err := dynamiccertificates.NewDynamicSNIContentFromFiles("sni-serving-cert", files.CertFile, files.KeyFile, files.Names...)
		if err != nil {
			return nil, fmt.Errorf("load certificate of --tls-sni-cert-key: %w", err)
		}
		certs = append(certs, cert)
	}
	return certs, nil
}
