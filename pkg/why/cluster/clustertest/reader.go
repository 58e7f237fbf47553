// Package clustertest serves readers of package cluster in tests.
package clustertest

import (
	"net/http"
	"net/http/httptest"
	"testing"

	"k8s.io/client-go/rest"

	"github.com/exeunt-io/exeunt/pkg/why/cluster"
)

// NewReader returns a reader of an API server whose answers the handler writes, until the test ends.
func NewReader(t testing.TB, answer http.HandlerFunc) *cluster.Reader {
	t.Helper()
	server := httptest.NewServer(answer)
	t.Cleanup(server.Close)
	reader, err := cluster.NewReader(&rest.Config{Host: server.URL})
	if err != nil {
		t.Fatal(err)
	}
	return reader
}
