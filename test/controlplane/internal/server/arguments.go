package server

import (
	"fmt"
	"net"
	"slices"
	"strings"

	"github.com/exeunt-io/exeunt/test/controlplane/internal/credentials"
	"github.com/exeunt-io/exeunt/test/controlplane/internal/datadir"
)

const (
	// frontProxy is the name of the authority, and of its client, for requests that the API
	// server forwards to aggregated servers.
	frontProxy = "front-proxy"
	// serviceIP is the first address of the service network, used by the service
	// "kubernetes".
	serviceIP = "10.0.0.1"
	// serviceAccountPlugin is the admission plugin that gives pods a service account.
	serviceAccountPlugin = "ServiceAccount"
)

// auditPolicy logs one line per finished request, without bodies.
const auditPolicy = `apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived, ResponseStarted]
rules:
- level: Metadata
`

// certificates creates the certificates and keys of the API server.
func certificates(directory datadir.Dir) (*credentials.Authority, error) {
	cluster, err := credentials.EnsureAuthority(directory.PKI(), datadir.ClusterCA)
	if err != nil {
		return nil, err
	}
	serving, err := cluster.SignServer(
		[]string{"localhost", "kubernetes", "kubernetes.default", "kubernetes.default.svc"},
		[]net.IP{net.IPv4(127, 0, 0, 1), net.ParseIP(serviceIP)})
	if err != nil {
		return nil, err
	}
	if err := serving.Write(directory.PKI(), "apiserver"); err != nil {
		return nil, err
	}
	proxy, err := credentials.EnsureAuthority(directory.PKI(), frontProxy+"-ca")
	if err != nil {
		return nil, err
	}
	client, err := proxy.SignClient(credentials.Identity{User: frontProxy + "-client"})
	if err != nil {
		return nil, err
	}
	return cluster, client.Write(directory.PKI(), frontProxy+"-client")
}

// arguments returns the flags of kube-apiserver. Later flags override earlier ones, so the
// caller's flags come last.
func arguments(config Config) ([]string, error) {
	signingKey, err := credentials.EnsureSigningKey(config.Dir.PKI(), "service-account")
	if err != nil {
		return nil, err
	}
	audit, err := auditArguments(config)
	if err != nil {
		return nil, err
	}
	pki := config.Dir.PKI() + "/"
	flags := []string{
		"--advertise-address=127.0.0.1",
		"--allow-privileged=true",
		"--authorization-mode=Node,RBAC",
		"--client-ca-file=" + pki + datadir.ClusterCA + ".crt",
		"--service-account-issuer=https://kubernetes.default.svc",
		"--service-account-key-file=" + signingKey,
		"--service-account-signing-key-file=" + signingKey,
		"--service-cluster-ip-range=10.0.0.0/16",
		"--tls-cert-file=" + pki + "apiserver.crt",
		"--tls-private-key-file=" + pki + "apiserver.key",
		// A loopback address may not stand in an Endpoints object.
		"--endpoint-reconciler-type=none",
	}
	if !enablesServiceAccount(config.ExtraArgs) {
		// The plugin rejects pods in namespaces without the service account "default",
		// which only kube-controller-manager creates.
		flags = append(flags, "--disable-admission-plugins="+serviceAccountPlugin)
	}
	flags = append(flags, frontProxyArguments(pki)...)
	flags = append(flags, audit...)
	for _, extra := range config.ExtraArgs {
		flags = append(flags, "--"+strings.TrimLeft(extra, "-"))
	}
	return flags, nil
}

// enablesServiceAccount reports whether the caller's flags enable the plugin. The API server
// rejects flags that enable and disable it.
func enablesServiceAccount(extraArgs []string) bool {
	for _, extra := range extraArgs {
		key, plugins, _ := strings.Cut(strings.TrimLeft(extra, "-"), "=")
		if key == "enable-admission-plugins" && slices.Contains(strings.Split(plugins, ","), serviceAccountPlugin) {
			return true
		}
	}
	return false
}

// frontProxyArguments returns the flags that let aggregated API servers, and programs that
// delegate authentication, trust forwarded requests.
func frontProxyArguments(pki string) []string {
	return []string{
		"--proxy-client-cert-file=" + pki + frontProxy + "-client.crt",
		"--proxy-client-key-file=" + pki + frontProxy + "-client.key",
		"--requestheader-allowed-names=" + frontProxy + "-client",
		"--requestheader-client-ca-file=" + pki + frontProxy + "-ca.crt",
		"--requestheader-extra-headers-prefix=X-Remote-Extra-",
		"--requestheader-group-headers=X-Remote-Group",
		"--requestheader-username-headers=X-Remote-User",
	}
}

// auditArguments returns the flags of the audit log, and writes its policy.
func auditArguments(config Config) ([]string, error) {
	if config.AuditLog == "" {
		return nil, nil
	}
	policy := config.Dir.File("audit-policy.yaml")
	if err := credentials.WriteFile(policy, []byte(auditPolicy)); err != nil {
		return nil, fmt.Errorf("prepare audit log: %w", err)
	}
	return []string{
		"--audit-policy-file=" + policy,
		"--audit-log-path=" + config.AuditLog,
		"--audit-log-maxsize=0", // never rotated, because clients follow the file
		"--audit-log-mode=blocking",
	}, nil
}
