package audit

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
)

// missedSnapshots reads the snapshots of the server, and returns what could not be read.
func missedSnapshots(t *testing.T, url string) []string {
	t.Helper()
	cluster, err := NewCluster("c", &rest.Config{Host: url})
	if err != nil {
		t.Fatal(err)
	}
	cluster.Timeout = time.Minute
	r := &reading{Cluster: cluster, refs: newReferences("d")}
	r.readSnapshots(t.Context())
	return r.refs.incomplete
}

// The API server lists the group of a new definition before it finds its version.
func TestGroupOfANewDefinitionIsReadAgain(t *testing.T) {
	asked := map[string]int{}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		const group, version = "snapshot.storage.k8s.io", "snapshot.storage.k8s.io/v1"
		asked[r.URL.Path]++
		var answer any = metav1.Status{TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"},
			Status: metav1.StatusFailure, Reason: metav1.StatusReasonNotFound, Code: http.StatusNotFound}
		served := metav1.GroupVersionForDiscovery{GroupVersion: version, Version: "v1"}
		switch found := asked[r.URL.Path] > 1; {
		case r.URL.Path == "/apis":
			answer = metav1.APIGroupList{TypeMeta: metav1.TypeMeta{Kind: "APIGroupList"},
				Groups: []metav1.APIGroup{{Name: group, Versions: []metav1.GroupVersionForDiscovery{served},
					PreferredVersion: served}}}
		case r.URL.Path == "/apis/"+version && found:
			answer = metav1.APIResourceList{TypeMeta: metav1.TypeMeta{Kind: "APIResourceList"}, GroupVersion: version,
				APIResources: []metav1.APIResource{{Name: "volumesnapshotcontents"}}}
		case r.URL.Path == "/apis/"+version+"/volumesnapshotcontents":
			answer = map[string]any{"metadata": map[string]any{"resourceVersion": "7"}, "items": []any{}}
		}
		w.Header().Set("Content-Type", "application/json")
		if _, missing := answer.(metav1.Status); missing {
			w.WriteHeader(http.StatusNotFound)
		}
		if err := json.NewEncoder(w).Encode(answer); err != nil {
			t.Error(err)
		}
	}))
	defer server.Close()
	if missed := missedSnapshots(t, server.URL); len(missed) > 0 ||
		asked["/apis/snapshot.storage.k8s.io/v1/volumesnapshotcontents"] != 1 {
		t.Errorf("incomplete %q, requests %v", missed, asked)
	}
}

// Another server behind the address of the API server answers 200 to everything.
func TestAnswersOfAnotherServerAreNoSnapshots(t *testing.T) {
	group := metav1.GroupVersionForDiscovery{GroupVersion: "snapshot.storage.k8s.io/v1", Version: "v1"}
	groups := metav1.APIGroupList{TypeMeta: metav1.TypeMeta{Kind: "APIGroupList"},
		Groups: []metav1.APIGroup{{Name: "snapshot.storage.k8s.io", PreferredVersion: group}}}
	resources := metav1.APIResourceList{TypeMeta: metav1.TypeMeta{Kind: "APIResourceList"},
		APIResources: []metav1.APIResource{{Name: "volumesnapshotcontents"}}}
	for name, answers := range map[string]map[string]any{
		"groups":    {},
		"resources": {"/apis": groups},
		"contents":  {"/apis": groups, "/apis/snapshot.storage.k8s.io/v1": resources},
	} {
		t.Run(name, func(t *testing.T) {
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				answer := answers[r.URL.Path]
				if answer == nil {
					answer = struct{}{}
				}
				w.Header().Set("Content-Type", "application/json")
				if err := json.NewEncoder(w).Encode(answer); err != nil {
					t.Error(err)
				}
			}))
			defer server.Close()
			if len(missedSnapshots(t, server.URL)) == 0 {
				t.Error("nothing is missing")
			}
		})
	}
}
