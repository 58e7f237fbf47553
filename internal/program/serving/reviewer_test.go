package serving

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"

	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

// reader is the token and the name of the only user with rights.
const reader = "reader"

// reviewer serves reviews as the API server, and returns its address. Every token except
// "forged" is the name of its user.
func reviewer(t *testing.T) string {
	t.Helper()
	paths := http.NewServeMux()
	paths.HandleFunc("POST /apis/authentication.k8s.io/v1/tokenreviews", review(t, func(review *authenticationv1.TokenReview) {
		review.Status.Authenticated = review.Spec.Token != "forged"
		review.Status.User.Username = review.Spec.Token
	}))
	paths.HandleFunc("POST /apis/authorization.k8s.io/v1/subjectaccessreviews", review(t, func(review *authorizationv1.SubjectAccessReview) {
		review.Status.Allowed = review.Spec.User == reader
	}))
	server := httptest.NewServer(paths)
	t.Cleanup(server.Close)
	return server.URL
}

func review[T any](t *testing.T, decide func(*T)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		asked := new(T)
		if err := json.NewDecoder(r.Body).Decode(asked); err != nil {
			t.Errorf("read review: %v", err)
		}
		decide(asked)
		w.Header().Set("Content-Type", "application/json")
		if err := json.NewEncoder(w).Encode(asked); err != nil {
			t.Errorf("answer review: %v", err)
		}
	}
}

// kubeconfig returns a kubeconfig file of the server.
func kubeconfig(t *testing.T, server string) string {
	t.Helper()
	config := clientcmdapi.NewConfig()
	config.Clusters["test"] = &clientcmdapi.Cluster{Server: server}
	config.Contexts["test"] = &clientcmdapi.Context{Cluster: "test"}
	config.CurrentContext = "test"
	text, err := clientcmd.Write(*config)
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "kubeconfig")
	if err := os.WriteFile(file, text, 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}
