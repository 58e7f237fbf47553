package load

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/exeunt-io/exeunt/test/bench/measure"
)

func TestKindOfRequest(t *testing.T) {
	for target, want := range map[string]measure.Request{
		"GET /api/v1/persistentvolumes/pv":                              {Verb: "GET", Resource: "persistentvolumes"},
		"GET /api/v1/persistentvolumes":                                 {Verb: "LIST", Resource: "persistentvolumes"},
		"GET /api/v1/persistentvolumes?watch=true":                      {Verb: "WATCH", Resource: "persistentvolumes"},
		"PATCH /api/v1/persistentvolumes/pv/status":                     {Verb: "PATCH", Resource: "persistentvolumes/status"},
		"POST /api/v1/namespaces/ns/persistentvolumeclaims":             {Verb: "POST", Resource: "persistentvolumeclaims"},
		"DELETE /api/v1/namespaces/ns/persistentvolumeclaims/c":         {Verb: "DELETE", Resource: "persistentvolumeclaims"},
		"DELETE /api/v1/namespaces/ns/pods":                             {Verb: "DELETECOLLECTION", Resource: "pods"},
		"POST /api/v1/namespaces":                                       {Verb: "POST", Resource: "namespaces"},
		"GET /api/v1/namespaces/ns":                                     {Verb: "GET", Resource: "namespaces"},
		"GET /apis/storage.k8s.io/v1/storageclasses?limit=1":            {Verb: "LIST", Resource: "storageclasses"},
		"PUT /apis/coordination.k8s.io/v1/namespaces/ns/leases/journal": {Verb: "PUT", Resource: "leases"},
		"GET /metrics": {},
	} {
		method, path, _ := strings.Cut(target, " ")
		if got := kindOf(httptest.NewRequest(method, path, nil)); got != want {
			t.Errorf("kindOf(%s) = %v, want %v", target, got, want)
		}
	}
}

func TestMeterCountsRequestsAndWatchBytes(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodPatch {
			w.WriteHeader(http.StatusConflict)
		}
		_, _ = io.WriteString(w, "0123456789")
	}))
	defer server.Close()
	counts := newMeter()
	client := &http.Client{Transport: counts.wrap(http.DefaultTransport)}
	for _, target := range []string{"GET /api/v1/pods?watch=true", "PATCH /api/v1/nodes/n", "PATCH /api/v1/nodes/n",
		"GET /metrics"} {
		method, path, _ := strings.Cut(target, " ")
		request, err := http.NewRequest(method, server.URL+path, nil)
		if err != nil {
			t.Fatal(err)
		}
		response, err := client.Do(request)
		if err != nil {
			t.Fatal(err)
		}
		_, _ = io.Copy(io.Discard, response.Body)
		_ = response.Body.Close()
	}
	want := measure.Counters{
		Requests:   measure.Requests{{Verb: "PATCH", Resource: "nodes", Code: 409}: 2},
		WatchBytes: map[string]float64{"pods": 10},
	}
	if diff := cmp.Diff(want, counts.counters()); diff != "" {
		t.Errorf("counted (-want +got):\n%s", diff)
	}
}
