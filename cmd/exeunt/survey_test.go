package main

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/exeunt-io/exeunt/internal/terminal"
	"github.com/exeunt-io/exeunt/pkg/why/cluster/clustertest"
)

// partlyServed is an API server without namespaces and objects, of which one group does not answer.
func partlyServed(t *testing.T) string {
	t.Helper()
	served := map[string][]metav1.APIResource{
		"v1":                     {{Name: "pods", Kind: "Pod", Namespaced: true, Verbs: []string{"get", "list", "delete"}}},
		"metrics.k8s.io/v1beta1": nil,
	}
	server := httptest.NewServer(clustertest.Discovery{Served: served,
		Next: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if strings.HasSuffix(r.URL.Path, "/pods") {
				w.Header().Set("Content-Type", "application/json")
				_, _ = w.Write([]byte(`{"kind":"PartialObjectMetadataList","apiVersion":"meta.k8s.io/v1","metadata":{"resourceVersion":"7"},"items":[]}`))
				return
			}
			clustertest.Objects{}.ServeHTTP(w, r)
		})})
	t.Cleanup(server.Close)
	return writeKubeconfig(t, server.URL)
}

func TestNamesSayThatNotEverythingWasRead(t *testing.T) {
	out, err := execute(t.Context(), "exeunt", "why", "--all", "-o", "name", "--kubeconfig", partlyServed(t))
	if err == nil || !strings.Contains(err.Error(), "not everything was read") ||
		terminal.ExitStatus(err) != exitWaiting || out != "" {
		t.Errorf("%q, %v", out, err)
	}
}

func TestNothingIsGoneInMissingNamespace(t *testing.T) {
	for _, words := range [][]string{{"pod/a"}, {"pod/a", "pod/b"}} {
		out, err := execute(t.Context(), "exeunt", append([]string{"why", "-n", "shoop", "--kubeconfig", partlyServed(t)},
			words...)...)
		if err == nil || err.Error() != `there is no namespace "shoop", and nothing in it` ||
			terminal.ExitStatus(err) != exitError || strings.Contains(out, "gone") {
			t.Errorf("%v: %q, %v", words, out, err)
		}
	}
}
