package garbagecollector

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"
)

// TestAbsentServiceIsNamed is about the answers of kube-apiserver 1.36.3.
func TestAbsentServiceIsNamed(t *testing.T) {
	const name = "v1.example.com"
	for title, tc := range map[string]struct {
		body   string
		absent bool
	}{
		"the object": {`{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Failure","message":"apiservices.apiregistration.k8s.io \"v1.example.com\" not found",
			"reason":"NotFound","details":{"name":"v1.example.com","group":"apiregistration.k8s.io","kind":"apiservices"},"code":404}`, true},
		"the path": {"404 page not found\n", false},
	} {
		t.Run(title, func(t *testing.T) {
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, request *http.Request) {
				if want := "/apis/apiregistration.k8s.io/v1/apiservices/" + name; request.URL.Path != want {
					t.Errorf("the request is for %s, want %s", request.URL.Path, want)
				}
				if tc.absent {
					w.Header().Set("Content-Type", "application/json")
				}
				w.WriteHeader(http.StatusNotFound)
				_, _ = fmt.Fprint(w, tc.body)
			}))
			defer server.Close()
			client, err := NewWriteClient(&rest.Config{Host: server.URL})
			if err != nil {
				t.Fatal(err)
			}
			c := New(Config{REST: client, Clock: clock.RealClock{}})
			_, err = c.discovery.definitions.readWhole(t.Context(), services, name)
			if !apierrors.IsNotFound(err) {
				t.Errorf("got %v, want 404", err)
			}
			if got := namesAbsent(err, services, name); got != tc.absent {
				t.Errorf("absent: %v, want %v; the error is %v", got, tc.absent, err)
			}
		})
	}
}
