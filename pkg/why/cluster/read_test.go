package cluster_test

import (
	"net/http"
	"net/http/httptest"
	"testing"

	"k8s.io/client-go/rest"

	"github.com/exeunt-io/exeunt/pkg/why/cluster"
)

func TestHiddenKindIsNotEmpty(t *testing.T) {
	proxy := httptest.NewServer(http.NotFoundHandler())
	defer proxy.Close()
	r, err := cluster.NewReader(&rest.Config{Host: proxy.URL})
	if err != nil {
		t.Fatal(err)
	}
	if _, seen := cluster.List(t.Context(), r, cluster.Leases, cluster.Selection{}); seen {
		t.Error("Leases count as listed, though the proxy answered 404")
	}
	if len(r.Incomplete()) != 1 {
		t.Errorf("incomplete is %q, want a sentence about Leases", r.Incomplete())
	}
	if _, seen := cluster.List(t.Context(), r, cluster.VolumeSnapshots, cluster.Selection{}); !seen {
		t.Error("VolumeSnapshots do not count as listed, though they are not defined")
	}
}
