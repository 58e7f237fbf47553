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
