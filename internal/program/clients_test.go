package program

import (
	"context"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
)

func TestExhaustedClientDelaysNoOtherClient(t *testing.T) {
	var mu sync.Mutex
	var agents []string
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		agents = append(agents, r.UserAgent()[strings.LastIndex(r.UserAgent(), "/")+1:])
		w.WriteHeader(http.StatusNotFound)
	}))
	defer server.Close()
	clients := clientsFor(t, server.URL)
	releasing, err := clients.For("releasing")
	if err != nil {
		t.Fatal(err)
	}
	for _, client := range []kubernetes.Interface{clients.Objects, clients.Events, clients.Leases, releasing} {
		for range 2 { // of which the budget allows one
			ask(t, client)
		}
	}
	want := "program program-events program-leases program-releasing"
	if got := strings.Join(agents, " "); got != want {
		t.Errorf("requests by %q, want one of each: %q", got, want)
	}
}

// clientsFor returns clients of one request each, and no further one for an hour.
func clientsFor(t *testing.T, url string) *Clients {
	t.Helper()
	options, err := NewOptions(nil)
	if err != nil {
		t.Fatal(err)
	}
	options.Kubeconfig = filepath.Join(t.TempDir(), "kubeconfig")
	config := `{"apiVersion":"v1","kind":"Config","current-context":"c","contexts":[{"name":"c","context":{"cluster":"c","user":"u"}}],` +
		`"users":[{"name":"u","user":{}}],"clusters":[{"name":"c","cluster":{"server":"` + url + `"}}]}`
	if err := os.WriteFile(options.Kubeconfig, []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	options.QPS, options.Burst = 1.0/3600, 1
	clients, err := options.Clients("program")
	if err != nil {
		t.Fatal(err)
	}
	return clients
}

func ask(t *testing.T, client kubernetes.Interface) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute) // which a limiter that has nothing left does not wait for
	defer cancel()
	if _, err := client.CoreV1().PersistentVolumes().Get(ctx, "v", metav1.GetOptions{}); err == nil {
		t.Error("the request was answered")
	}
}
