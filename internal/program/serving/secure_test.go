package serving

import (
	"crypto/tls"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/net/http2"
)

func TestSelfSignedCertificateIsKeptInCertDir(t *testing.T) {
	dir := t.TempDir()
	var certs []string
	for range 2 {
		s := serve(t, Checks{}, "--cert-dir="+dir)
		s.expect("/healthz", http.StatusOK, "ok")
		cert, err := os.ReadFile(filepath.Join(dir, "program.crt"))
		if err != nil {
			t.Fatal(err)
		}
		certs = append(certs, string(cert))
	}
	if certs[0] != certs[1] {
		t.Error("the certificate was generated twice")
	}
	pair := "--tls-cert-file=" + filepath.Join(dir, "program.crt")
	serve(t, Checks{}, pair, "--tls-private-key-file="+filepath.Join(dir, "program.key")).
		expect("/healthz", http.StatusOK, "ok")
	sni := filepath.Join(dir, "program.crt") + "," + filepath.Join(dir, "program.key") + ":example.com"
	serve(t, Checks{}, "--tls-sni-cert-key="+sni).expect("/healthz", http.StatusOK, "ok")
}

func TestProtocolFollowsHTTP2Flag(t *testing.T) {
	for flag, want := range map[string]string{"--disable-http2-serving=false": "h2",
		"--disable-http2-serving": "http/1.1"} {
		s := serve(t, Checks{}, flag, "--http2-max-streams-per-connection=7")
		config := &tls.Config{InsecureSkipVerify: true, NextProtos: []string{"h2", "http/1.1"}}
		connection, err := (&tls.Dialer{Config: config}).DialContext(t.Context(), "tcp",
			strings.TrimPrefix(s.url, "https://"))
		if err != nil {
			t.Fatal(err)
		}
		if got := connection.(*tls.Conn).ConnectionState().NegotiatedProtocol; got != want {
			t.Errorf("%s: protocol %s, want %s", flag, got, want)
		}
		if err := connection.Close(); err != nil {
			t.Error(err)
		}
	}
}

func TestStreamsOfOneConnectionAreLimited(t *testing.T) {
	for flag, want := range map[string]uint32{"--http2-max-streams-per-connection=7": 7,
		"--http2-max-streams-per-connection=0": 100} {
		s := serve(t, Checks{}, flag)
		config := &tls.Config{InsecureSkipVerify: true, NextProtos: []string{"h2"}}
		connection, err := (&tls.Dialer{Config: config}).DialContext(t.Context(), "tcp",
			strings.TrimPrefix(s.url, "https://"))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = connection.Close() })
		if _, err := connection.Write([]byte(http2.ClientPreface)); err != nil {
			t.Fatal(err)
		}
		frame, err := http2.NewFramer(connection, connection).ReadFrame()
		if err != nil {
			t.Fatal(err)
		}
		settings, ok := frame.(*http2.SettingsFrame)
		if !ok {
			t.Fatalf("%s: the server starts with %v, want its settings", flag, frame)
		}
		if got, ok := settings.Value(http2.SettingMaxConcurrentStreams); !ok || got != want {
			t.Errorf("%s: %d streams, want %d", flag, got, want)
		}
	}
}

func TestTLSFlagsAreApplied(t *testing.T) {
	options := listening(t, reviewer(t), "--tls-min-version=VersionTLS13", "--tls-curve-preferences=29",
		"--tls-cipher-suites=TLS_AES_128_GCM_SHA256")
	config, err := options.listen()
	if err != nil || config.MinTLSVersion != tls.VersionTLS13 || len(config.CurvePreferences) != 1 ||
		len(config.CipherSuites) != 1 {
		t.Errorf("configuration %+v, error %v", config, err)
	}
}

func TestOldTLSVersionIsRefusedByDefault(t *testing.T) {
	s := serve(t, Checks{})
	config := &tls.Config{InsecureSkipVerify: true, MaxVersion: tls.VersionTLS11, MinVersion: tls.VersionTLS10}
	connection, err := (&tls.Dialer{Config: config}).DialContext(t.Context(), "tcp", strings.TrimPrefix(s.url, "https://"))
	if err == nil {
		_ = connection.Close()
		t.Error("TLS 1.1 is served")
	}
}

func TestUnusableTLSFlagsAreNamed(t *testing.T) {
	for _, flag := range []string{"--tls-min-version=9", "--tls-cipher-suites=none", "--tls-curve-preferences=-1"} {
		err := parsed(t, flag, "--secure-port=1").Complete("")
		if name, _, _ := strings.Cut(flag, "="); err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("%s: error %v, want one that names the flag", flag, err)
		}
	}
}

func TestMissingFilesAreNamed(t *testing.T) {
	for _, flags := range []string{
		"--tls-cert-file=/missing --tls-private-key-file=/missing", "--tls-sni-cert-key=/missing,/missing",
		"--client-ca-file=/missing", "--requestheader-client-ca-file=/missing",
	} {
		stop, err := listening(t, reviewer(t), append(strings.Fields(flags), "--authentication-skip-lookup=true")...).
			Serve(Checks{})
		if err == nil {
			stop()
		}
		if err == nil || !strings.Contains(err.Error(), "/missing") {
			t.Errorf("%s: error %v, want one that names the file", flags, err)
		}
	}
}

// Go's server refuses such cipher suites for HTTP/2 only when it begins to serve.
func TestCipherSuitesWithoutHTTP2AreRefused(t *testing.T) {
	const strong, required = "--tls-cipher-suites=TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384",
		",TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256"
	for name, tc := range map[string]struct {
		flags   []string
		refused bool
	}{
		"required suite missing":     {flags: []string{strong}, refused: true},
		"required suite given":       {flags: []string{strong + required}},
		"HTTP/1.1 only":              {flags: []string{strong, "--disable-http2-serving"}},
		"TLS 1.3 ignores the suites": {flags: []string{strong, "--tls-min-version=VersionTLS13"}},
	} {
		t.Run(name, func(t *testing.T) {
			stop, err := listening(t, reviewer(t), append(tc.flags, "--authentication-skip-lookup=true")...).Serve(Checks{})
			if err == nil {
				stop()
			}
			if (err != nil) != tc.refused {
				t.Fatalf("error %v, want refused: %v", err, tc.refused)
			}
			if err != nil && (!strings.Contains(err.Error(), "--tls-cipher-suites") ||
				!strings.Contains(err.Error(), "--disable-http2-serving")) {
				t.Errorf("error %v, want one that names the flags", err)
			}
		})
	}
}

func TestSharedPortIsBoundTwice(t *testing.T) {
	first := parsed(t, "--bind-address=127.0.0.1", "--permit-port-sharing", "--permit-address-sharing", "--secure-port=1")
	first.secure.BindPort = freePort(t)
	again := parsed(t, "--bind-address=127.0.0.1", "--permit-port-sharing",
		fmt.Sprintf("--secure-port=%d", first.secure.BindPort))
	for _, options := range []*Options{first, again} {
		config, err := options.listen()
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = config.Listener.Close() }()
	}
}

// freePort returns a port that nobody listens on.
func freePort(t *testing.T) int {
	t.Helper()
	listener, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = listener.Close() }()
	return listener.Addr().(*net.TCPAddr).Port
}
