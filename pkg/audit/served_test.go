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

// The API server lists the group of a new definition before it finds its version.
func TestGroupOfANewDefinitionIsReadAgain(t *testing.T) {
	asked := map[string]int{}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		const group, version = "snapshot.storage.k8s.io", "snapshot.storage.k8s.io/v1"
		asked[r.URL.Path]++
		var answer any = metav1.Status{TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}, Status: metav1.StatusFailure, Reason: metav1.StatusReasonNotFound, Code: http.StatusNotFound}
		served := metav1.GroupVersionForDiscovery{GroupVersion: version, Version: "v1"}
		switch found := asked[r.URL.Path] > 1; {
		case r.URL.Path == "/apis":
			answer = metav1.APIGroupList{Groups: []metav1.APIGroup{{Name: group, Versions: []metav1.GroupVersionForDiscovery{served}, PreferredVersion: served}}}
		case r.URL.Path == "/apis/"+version && found:
			answer = metav1.APIResourceList{GroupVersion: version, APIResources: []metav1.APIResource{{Name: "volumesnapshotcontents"}}}
		case r.URL.Path == "/apis/"+version+"/volumesnapshotcontents":
			answer = map[string]any{"items": []any{}}
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
	cluster, err := NewCluster("c", &rest.Config{Host: server.URL})
	if err != nil {
		t.Fatal(err)
	}
	cluster.Timeout = time.Minute
	r := &reading{Cluster: cluster, refs: newReferences("d")}
	r.readSnapshots(t.Context())
	if missed := r.refs.incomplete; len(missed) > 0 || asked["/apis/snapshot.storage.k8s.io/v1/volumesnapshotcontents"] != 1 {
		t.Errorf("incomplete %q, requests %v", missed, asked)
	}
}
