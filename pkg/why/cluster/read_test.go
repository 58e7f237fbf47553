package cluster_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"

	"github.com/exeunt-io/exeunt/pkg/why/cluster"
	"github.com/exeunt-io/exeunt/pkg/why/cluster/clustertest"
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
	if _, presence := cluster.Get(t.Context(), r, cluster.Nodes, "", "n"); presence != cluster.Unseen {
		t.Errorf("the node is %v, though the proxy answered 404", presence)
	}
	if len(r.Incomplete()) != 2 {
		t.Errorf("incomplete is %q, want a sentence about Leases", r.Incomplete())
	}
	if _, seen := cluster.List(t.Context(), r, cluster.VolumeSnapshots, cluster.Selection{}); !seen {
		t.Error("VolumeSnapshots do not count as listed, though they are not defined")
	}
}

// expiringServer serves lists of two pages. The token of the first list expires, and meanwhile the
// object "gone" is deleted.
func expiringServer(t *testing.T) *cluster.Reader {
	t.Helper()
	lists := 0
	return clustertest.NewReader(t, func(w http.ResponseWriter, request *http.Request) {
		page := func(next, name string) map[string]any {
			return map[string]any{"metadata": map[string]any{"continue": next, "resourceVersion": "7"},
				"items": []any{map[string]any{"metadata": map[string]any{"name": name}}}}
		}
		answer, status := page("", "second"), http.StatusOK
		switch token := request.URL.Query().Get("continue"); {
		case token == "" && lists == 0:
			lists++
			answer = page("expires", "gone")
		case token == "":
			answer = page("lasts", "first")
		case token == "expires":
			status = http.StatusGone
			answer = map[string]any{"kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": "Expired",
				"code": http.StatusGone}
		}
		if kind := "PartialObjectMetadataList"; status == http.StatusOK &&
			strings.Contains(request.Header.Get("Accept"), kind) {
			answer["kind"], answer["apiVersion"] = kind, "meta.k8s.io/v1"
		}
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(status)
		if err := json.NewEncoder(w).Encode(answer); err != nil {
			t.Error(err)
		}
	})
}

func TestListThatStartsOverHasEachObjectOnce(t *testing.T) {
	for name, list := range map[string]func(*cluster.Reader) (names []string, seen bool){
		"List": func(r *cluster.Reader) (names []string, seen bool) {
			leases, seen := cluster.List(t.Context(), r, cluster.Leases, cluster.Selection{})
			for _, lease := range leases {
				names = append(names, lease.Name)
			}
			return names, seen
		},
		"Search": func(r *cluster.Reader) (names []string, seen bool) {
			leases, seen := cluster.Search(t.Context(), r, cluster.Leases, cluster.Selection{}, "all",
				func(*coordinationv1.Lease) bool { return true })
			for _, lease := range leases {
				names = append(names, lease.Name)
			}
			return names, seen
		},
		"Volumes": func(r *cluster.Reader) (names []string, seen bool) {
			volumes, seen := cluster.Volumes(t.Context(), r)
			for _, volume := range volumes {
				names = append(names, volume.Name)
			}
			return names, seen
		},
		"Metadata": func(r *cluster.Reader) (names []string, seen bool) {
			objects, seen := r.Metadata(t.Context(), schema.GroupVersionResource{Version: "v1", Resource: "pods"}, "")
			for _, object := range objects {
				names = append(names, object.Name)
			}
			return names, seen
		},
	} {
		t.Run(name, func(t *testing.T) {
			if names, seen := list(expiringServer(t)); !seen || fmt.Sprint(names) != "[first second]" {
				t.Errorf("objects are %v, all were seen: %v", names, seen)
			}
		})
	}
}

// Reading the rest of the cluster takes longer than a Lease lasts.
func TestLeasesAreJudgedByTheTimeOfTheirList(t *testing.T) {
	listed := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	r := clustertest.NewReader(t, func(w http.ResponseWriter, request *http.Request) {
		at := listed
		if !strings.Contains(request.URL.Path, "leases") {
			at = listed.Add(time.Hour)
		}
		w.Header().Set("Date", at.Format(http.TimeFormat))
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprint(w, `{"metadata": {"resourceVersion": "7", "name": "n"}, "items": []}`)
	})
	if _, seen := cluster.List(t.Context(), r, cluster.Leases, cluster.Selection{}); !seen {
		t.Fatal(r.Incomplete())
	}
	cluster.Get(t.Context(), r, cluster.Leases, "ns", "n")
	cluster.List(t.Context(), r, cluster.Nodes, cluster.Selection{})
	for what, at := range map[string]time.Time{
		"list":   cluster.ListedAt(t.Context(), r, cluster.Leases, cluster.Selection{}),
		"object": cluster.GotAt(t.Context(), r, cluster.Leases, "ns", "n"),
	} {
		if at.Sub(listed).Abs() > time.Minute {
			t.Errorf("the %s counts as read at %s, want %s", what, at, listed)
		}
	}
}

// Half of an object are managed fields. Those of what is being deleted tell of its finalizers.
func TestListsKeepManagersOfDeletedObjectsOnly(t *testing.T) {
	r := clustertest.NewReader(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		const fields = `"managedFields": [{"manager": "m"}]`
		fmt.Fprintf(w, `{"metadata": {"resourceVersion": "7"}, "items": [{"metadata": {"name": "lives", %s}}, {"metadata": {"name": "deleted", "deletionTimestamp": "2026-01-02T03:04:05Z", %s}}]}`, fields, fields)
	})
	pods, seen := cluster.List(t.Context(), r, cluster.Pods, cluster.Selection{})
	if !seen || len(pods) != 2 || len(pods[0].ManagedFields) != 0 || len(pods[1].ManagedFields) != 1 {
		t.Errorf("pods %+v, seen %v", pods, seen)
	}
}
