package cluster_test

import (
	"errors"
	"net/http"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/exeunt-io/exeunt/pkg/why/cluster"
	"github.com/exeunt-io/exeunt/pkg/why/cluster/clustertest"
)

// An expired token is no missing right.
func TestRuleIsNamedForForbiddenRequestsOnly(t *testing.T) {
	pods := schema.GroupResource{Resource: "pods"}
	for name, tc := range map[string]struct {
		err  error
		want string
	}{
		"forbidden":     {apierrors.NewForbidden(pods, "", errors.New("no")), "no right to list pods; grant the rule"},
		"token expired": {apierrors.NewUnauthorized("token expired"), "could not list pods: token expired"},
	} {
		if got := cluster.Failure("list", pods, "", tc.err); !strings.HasPrefix(got, tc.want) {
			t.Errorf("%s: %s, want %s", name, got, tc.want)
		}
	}
}

func TestReach(t *testing.T) {
	for code, reached := range map[int]bool{
		http.StatusOK: true, http.StatusForbidden: true, http.StatusNotFound: true, http.StatusInternalServerError: true,
		http.StatusUnauthorized: false, http.StatusGatewayTimeout: false,
	} {
		reader := clustertest.NewReader(t, func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(code) })
		if err := reader.Reach(t.Context()); (err == nil) != reached {
			t.Errorf("status %d: error %v, want that the server is reached: %t", code, err, reached)
		}
	}
}

func TestMissingRightIsNamedOnceForAllNamespaces(t *testing.T) {
	reader := clustertest.NewReader(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusForbidden)
		_, _ = w.Write([]byte(`{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Forbidden","code":403}`))
	})
	cluster.List(t.Context(), reader, cluster.Pods, cluster.Selection{Namespace: "kube-system"})
	cluster.List(t.Context(), reader, cluster.Leases, cluster.Selection{Namespace: "kube-system"})
	if got := reader.Incomplete(); len(got) != 2 || !strings.HasPrefix(got[0],
		"no right to list pods in namespace kube-system; ") {
		t.Errorf("not read: %q", got)
	}
	cluster.List(t.Context(), reader, cluster.Pods, cluster.Selection{})
	got := reader.Incomplete()
	if len(got) != 2 || !strings.HasPrefix(got[0], "no right to list leases in namespace kube-system; ") ||
		!strings.HasPrefix(got[1], "no right to list pods; ") {
		t.Errorf("not read: %q, want the pods of all namespaces once", got)
	}
}
