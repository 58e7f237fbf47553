package serving

import (
	"net/http"
	"testing"
)

// servePublished serves with the CAs and request headers that the API server publishes.
func servePublished(t *testing.T, clients, proxies *authority, allowedNames string, flags ...string) *endpoint {
	t.Helper()
	published := map[string]string{
		"client-ca-file": clients.pem(), "requestheader-client-ca-file": proxies.pem(),
		"requestheader-allowed-names":    allowedNames,
		"requestheader-username-headers": `["X-Remote-User"]`, "requestheader-group-headers": `["X-Remote-Group"]`,
		"requestheader-extra-headers-prefix": `["X-Remote-Extra-"]`,
	}
	s, stop := serveUntilStop(t, publisher(t, published), Checks{}, flags...)
	t.Cleanup(stop)
	return s
}

func TestPublishedCAsAuthenticateClientsAndProxies(t *testing.T) {
	clients, proxies, others := newAuthority(t), newAuthority(t), newAuthority(t)
	s := servePublished(t, clients, proxies, `["proxy"]`)
	s.as(clients.client(reader), "").eventually("/metrics", http.StatusOK)
	s.as(proxies.client("proxy"), reader).eventually("/metrics", http.StatusOK)
	s.as(proxies.client("proxy"), "visitor").expect("/metrics", http.StatusForbidden, "visitor")
	s.as(clients.client("visitor"), "").expect("/metrics", http.StatusForbidden, "visitor")
	for name, refused := range map[string]*endpoint{
		"proxy of a CA of clients":         s.as(clients.client("proxy"), reader),
		"proxy of an unknown CA":           s.as(others.client("proxy"), reader),
		"proxy with another name":          s.as(proxies.client("other"), reader),
		"client of the CA of proxies":      s.as(proxies.client(reader), ""),
		"client of an unknown CA":          s.as(others.client(reader), ""),
		"visitor that names another user":  s.as(clients.client("visitor"), reader),
		"anonymous that names another one": s.withUser(reader),
	} {
		if status, body := refused.get("/metrics", ""); status != http.StatusForbidden && status != http.StatusUnauthorized {
			t.Errorf("%s: status %d %.40q", name, status, body)
		}
	}
}

func TestEmptyAllowedNamesTrustEveryProxyOfTheCA(t *testing.T) {
	clients, proxies := newAuthority(t), newAuthority(t)
	s := servePublished(t, clients, proxies, `[]`)
	s.as(proxies.client("other"), reader).eventually("/metrics", http.StatusOK)
	s.as(proxies.client(reader), "").expect("/metrics", http.StatusUnauthorized)
	s.as(clients.client("other"), reader).expect("/metrics", http.StatusForbidden)
}

func TestFlagsReplacePublishedCAs(t *testing.T) {
	clients, proxies, ours := newAuthority(t), newAuthority(t), newAuthority(t)
	s := servePublished(t, clients, proxies, `["proxy"]`, "--client-ca-file="+ours.file())
	s.as(ours.client(reader), "").expect("/metrics", http.StatusOK)
	s.as(proxies.client("proxy"), reader).eventually("/metrics", http.StatusOK)
	s.as(clients.client(reader), "").expect("/metrics", http.StatusUnauthorized)
}

func TestSkippedLookupTrustsNoPublishedCA(t *testing.T) {
	clients, proxies := newAuthority(t), newAuthority(t)
	s := servePublished(t, clients, proxies, `[]`, "--authentication-skip-lookup")
	s.as(clients.client(reader), "").expect("/metrics", http.StatusForbidden)
	s.as(proxies.client("proxy"), reader).expect("/metrics", http.StatusForbidden)
}
